"""Members of projects: who is what in a project, as its administrators say and see it."""

from typing import Literal

import msgspec

from mendflow.core.model.access_tokens import NAME, NAME_RULE
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.ids import Instant
from mendflow.core.model.principals import ProjectRole, project_name_flaw


class MemberRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody is to be in a project."""

    role: ProjectRole


class MemberView(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who may do something in a project. `through` says by what: a `membership`, which administrators of the
    project set, or a `token` in the store that names the project, which only administrators of the installation
    make and revoke."""

    name: str
    role: ProjectRole
    through: Literal["membership", "token"] = "membership"
    set_by: str = ""
    set_at: Instant = 0


def require_member(project: str, name: str) -> None:
    """Refuse a member that nobody could be."""
    if flaw := project_name_flaw(project):
        raise InvalidRequest(flaw, field="name")
    if not NAME.fullmatch(name):
        raise InvalidRequest(f"{name!r:.100} is not a valid name for a member; {NAME_RULE}", field="member")
