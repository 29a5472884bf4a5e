"""Who may ask for an operation at all. What it may be asked about, its subject says (operations/subjects.py)."""

import msgspec

from mendflow.core.model.principals import ADMIN, BUILT_IN, ENGINE, PILOT, Principal, ProjectRole


class AllowedRoles(msgspec.Struct, frozen=True):
    """Who may, besides administrators of the installation, who may do everything: whoever has one of the `roles` in the
    installation, or at least the role `project` in the project of what is asked about. `own_task`: whoever has the role
    of the user task, and may see it. `known`: whoever has a token, whatever it is for. `anybody`: even without a
    token."""

    roles: frozenset[str] = frozenset()
    project: ProjectRole | None = None
    own_task: bool = False
    known: bool = False
    anybody: bool = False

    def allow(self, caller: Principal) -> bool:
        """Whether there can be anything that this caller may ask it about."""
        if self.anybody or self.known or caller.is_admin or self.allow_without_project(caller):
            return True
        if self.own_task and caller.roles - BUILT_IN and caller.may_somewhere("viewer"):
            return True
        return self.project is not None and caller.may_somewhere(self.project)

    def allow_without_project(self, caller: Principal) -> bool:
        """Whether a role in the installation is enough, whatever it is about."""
        return not self.roles.isdisjoint(caller.roles)

    def named(self) -> str:
        """The roles, for people."""
        of_project = [f"{self.project} in the project"] if self.project is not None else []
        return ", ".join([*of_project, *sorted({*self.roles, ADMIN})])

    def __or__(self, role: str) -> "AllowedRoles":
        return msgspec.structs.replace(self, roles=self.roles | {role})


ADMINISTRATORS = AllowedRoles()
ANYBODY = AllowedRoles(anybody=True)
KNOWN = AllowedRoles(known=True)
VIEWERS = AllowedRoles(project="viewer")
OPERATORS = AllowedRoles(project="operator")
AUTHORS = AllowedRoles(project="author")
PROJECT_ADMINS = AllowedRoles(project="admin")
TASK_WORKERS = AllowedRoles(project="operator", own_task=True)
PILOTS = AllowedRoles(frozenset({PILOT}))
ENGINES = AllowedRoles(frozenset({ENGINE}))
