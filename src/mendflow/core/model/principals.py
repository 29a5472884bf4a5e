"""People and programs that ask the server for something, and what they may do where."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from mendflow.core.model.errors import Forbidden
from mendflow.lazy import lazy_pattern

ADMIN, USER, PILOT, READER, ENGINE, METRICS = "admin", "user", "pilot", "reader", "engine", "metrics"
BUILT_IN = frozenset({ADMIN, USER, PILOT, READER, ENGINE, METRICS})
"""The roles in the installation that we know. A site may make up others, for its user tasks."""

ProjectRole = Literal["viewer", "operator", "author", "admin"]
PROJECT_ROLES: tuple[ProjectRole, ...] = ("viewer", "operator", "author", "admin")
"""What somebody is in a project. Each may do what those before may, and more: look; start and steer cases; deploy flows
and teach rules; change who may do what."""

DEFAULT_PROJECT = "default"
"""What names no project belongs to this one. Tokens that name no project have their role in it."""

NO_PROJECT = "(none)"
"""Of a case that nobody knows. No project can have this name: what is in it is for those who see everything."""

LOCAL = "local"
"""Whoever asks a server without tokens, from its own machine, and has neither said a name nor an account with one."""


def person_text(who: str) -> str:
    """Who did something, in a sentence."""
    return "somebody on the server's machine" if who == LOCAL else who


def account_teller(account: str) -> str:
    """An account, in a form that neither a token nor a person at an issuer can have as its name: of an account that
    runs a server, somebody else may have a token by the same name."""
    return f"account {account}"


_PROJECT_NAME = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def project_name_flaw(name: str) -> str:
    """What is wrong with the name of a project; empty if nothing is."""
    if _PROJECT_NAME.fullmatch(name):
        return ""
    return f"{name!r:.100} is no name of a project: use up to 64 letters, digits, and . - _, a letter or digit first"


class Sight(msgspec.Struct, frozen=True):
    """The projects that somebody's lists, searches and counts are about; None: all that there are."""

    projects: frozenset[str] | None = None

    def sees(self, project: str) -> bool:
        return self.projects is None or project in self.projects

    @property
    def stored_values(self) -> list[str | None]:
        """What the field `project` of a document has to be. One that was written before there were projects has
        none, and belongs to the default one."""
        named = sorted(self.projects or ())
        return [*named, None] if DEFAULT_PROJECT in named else [*named]


EVERYTHING = Sight()
NOTHING = Sight(frozenset())


class Principal(msgspec.Struct, frozen=True):
    """Whoever sent a request. `projects` is what its token, or its issuer, says that it is in which project;
    `memberships` what administrators of projects say, besides. `account` is the account of the server's machine by
    which it was admitted, if it was not by a token or an issuer: whatever name it gave, it is the same one."""

    name: str
    roles: frozenset[str]
    projects: Mapping[str, ProjectRole] = msgspec.field(default_factory=dict)
    memberships: Mapping[str, ProjectRole] = msgspec.field(default_factory=dict)
    account: str = ""

    @property
    def teller(self) -> str:
        """By what it is recorded who said something of his own machine."""
        return account_teller(self.account) if self.account else self.name

    @property
    def is_admin(self) -> bool:
        """Whether it administers the installation, and so may do everything."""
        return ADMIN in self.roles

    @property
    def may_let_jobs_run(self) -> bool:
        """Whether jobs run because it wants so, in whatever project."""
        return bool(self.roles & {ADMIN, USER, ENGINE}) or self.may_somewhere("operator")

    def role_in(self, project: str) -> ProjectRole | None:
        """What it is in a project. A token that names no projects is in the default one what its role in the
        installation says."""
        if self.is_admin:
            return "admin"
        found = {self._own_role_in(project), self.memberships.get(project)}
        return next((each for each in reversed(PROJECT_ROLES) if each in found), None)

    def _own_role_in(self, project: str) -> ProjectRole | None:
        if self.projects or project != DEFAULT_PROJECT:
            return self.projects.get(project)
        if USER in self.roles:
            return "author"
        return "viewer" if READER in self.roles or self.roles - BUILT_IN else None

    def may(self, role: ProjectRole, project: str) -> bool:
        has = self.role_in(project)
        return has is not None and PROJECT_ROLES.index(has) >= PROJECT_ROLES.index(role)

    @property
    def own_projects(self) -> list[str]:
        """The projects that it is anything in, by name; of an administrator, who is in all, none is named."""
        own = {*self.projects, *self.memberships}
        return sorted({*own, DEFAULT_PROJECT} if self.role_in(DEFAULT_PROJECT) and not self.is_admin else own)

    @property
    def usual_project(self) -> str:
        """Where what it makes belongs, if it does not say."""
        own = self.own_projects
        return own[0] if len(own) == 1 else DEFAULT_PROJECT

    def may_somewhere(self, role: ProjectRole) -> bool:
        return self.is_admin or any(self.may(role, project) for project in self.own_projects)

    def may_everywhere(self, role: ProjectRole) -> bool:
        """Whether it may in every project that it can look into."""
        return self.is_admin or (bool(self.own_projects) and all(self.may(role, each) for each in self.own_projects))

    def sight(self, role: ProjectRole = "viewer") -> Sight:
        """The projects in which it has this role, or more."""
        if self.is_admin:
            return EVERYTHING
        return Sight(frozenset(each for each in self.own_projects if self.may(role, each)))

    def require_task_role(self, role: str) -> None:
        if role and role not in self.roles and not self.is_admin:
            raise Forbidden(f"this user task is for the role {role!r}, which {self.name!r} does not have", role=role)
