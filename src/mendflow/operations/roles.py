"""Who may ask for an operation."""

import msgspec

ADMIN, USER, PILOT, READER, ENGINE, METRICS = "admin", "user", "pilot", "reader", "engine", "metrics"
BUILT_IN = frozenset({ADMIN, USER, PILOT, READER, ENGINE, METRICS})


class AllowedRoles(msgspec.Struct, frozen=True):
    """The built-in roles that may, besides administrators, who may do everything. `task_roles`: so may the roles that a
    site has made up for its user tasks. `own_task`: of those roles, only the one that the task names. `anybody`: even
    without a token."""

    roles: frozenset[str] = frozenset()
    task_roles: bool = False
    own_task: bool = False
    anybody: bool = False

    def allow(self, roles: frozenset[str]) -> bool:
        return (
            self.anybody
            or ADMIN in roles
            or not self.roles.isdisjoint(roles)
            or (self.task_roles and bool(roles - BUILT_IN))
        )

    def named(self) -> str:
        """The built-in roles, for people."""
        return ", ".join(sorted({*self.roles, ADMIN}))

    def __or__(self, role: str) -> "AllowedRoles":
        return msgspec.structs.replace(self, roles=self.roles | {role})


ADMINISTRATORS = AllowedRoles()
ANYBODY = AllowedRoles(anybody=True)
USERS = AllowedRoles(frozenset({USER}))
READERS = AllowedRoles(frozenset({USER, READER}), task_roles=True)
TASK_WORKERS = AllowedRoles(frozenset({USER}), task_roles=True, own_task=True)
PILOTS = AllowedRoles(frozenset({PILOT}))
ENGINES = AllowedRoles(frozenset({ENGINE}))
