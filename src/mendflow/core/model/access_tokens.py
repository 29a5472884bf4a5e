"""Tokens by which people and programs are known, as an administrator makes and sees them."""

from typing import Final

import msgspec

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.ids import Instant
from mendflow.core.model.principals import PROJECT_ROLES, READER, USER, ProjectRole, project_name_flaw
from mendflow.lazy import lazy_pattern

NAME: Final = lazy_pattern(r"[\w.@+-]{1,64}")
ROLE: Final = lazy_pattern(r"[a-z][a-z0-9_-]{0,63}")
NAME_RULE: Final = "use up to 64 letters, digits, and . @ + - _"
ROLE_RULE: Final = "use small letters, digits, -"
EXPIRES_MS_MAX: Final = 100 * 366 * 86_400_000
TOKEN_CHARS_MIN: Final = 20
DIFFERENT_CHARS_MIN: Final = 8


class TokenRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token that is wanted. Without roles it has the one that its projects need: `reader` if it only looks there,
    else `user`. `expires_ms` is how long it holds; 0: until it is revoked."""

    name: str
    roles: list[str] = []
    projects: dict[str, ProjectRole] = {}
    expires_ms: int = 0


class TokenView(msgspec.Struct, frozen=True, kw_only=True):
    """A token as people see it: never the token itself. `used_at` is exact to some minutes; 0: not used yet. A token
    whose `expires_at` is 0 holds until it is revoked."""

    id: str
    name: str
    roles: list[str]
    projects: dict[str, ProjectRole] = {}
    made_by: str = ""
    made_at: Instant = 0
    expires_at: Instant = 0
    used_at: Instant = 0
    expired: bool = False


class CreatedToken(msgspec.Struct, frozen=True, kw_only=True):
    """A new token. `token` is told now and never again."""

    token: str
    view: TokenView

    def __repr__(self) -> str:
        return f"CreatedToken(view={self.view!r})"


def require_token_request(request: TokenRequest) -> None:
    """Refuse a token that could not be."""
    if not NAME.fullmatch(request.name):
        raise InvalidRequest(f"{request.name!r:.100} is not a valid name for a token; {NAME_RULE}", field="name")
    for role in request.roles:
        if not ROLE.fullmatch(role):
            raise InvalidRequest(f"{role!r:.100} is no role; {ROLE_RULE}", field="roles")
    for project, role in request.projects.items():
        if flaw := project_name_flaw(project):
            raise InvalidRequest(flaw, field="projects")
        if role not in PROJECT_ROLES:
            raise InvalidRequest(f"{role!r:.100} is no role in a project; it is one of {', '.join(PROJECT_ROLES)}")
    if not 0 <= request.expires_ms <= EXPIRES_MS_MAX:
        raise InvalidRequest("a token holds for a hundred years at most; 0 is until it is revoked", field="expires_ms")


def roles_of(request: TokenRequest) -> list[str]:
    """The roles of a new token."""
    if request.roles:
        return sorted(set(request.roles))
    only_looks = bool(request.projects) and set(request.projects.values()) == {"viewer"}
    return [READER if only_looks else USER]


def project_role(text: str) -> tuple[str, ProjectRole]:
    """What PROJECT:ROLE says."""
    project, _, named = text.rpartition(":")
    role = next((each for each in PROJECT_ROLES if each == named), None)
    if role is None or project_name_flaw(project):
        raise InvalidRequest(
            f"{text!r:.100} names no role in a project: write PROJECT:ROLE, where ROLE is one of"
            f" {', '.join(PROJECT_ROLES)}"
        )
    return project, role


def weakness(token: str) -> str:
    """Why a token that somebody made up could be guessed; empty if it could not."""
    if len(token) < TOKEN_CHARS_MIN:
        return f"it has {len(token)} characters, and {TOKEN_CHARS_MIN} are the least"
    if len(set(token)) < DIFFERENT_CHARS_MIN:
        return f"it has only {len(set(token))} different characters, and {DIFFERENT_CHARS_MIN} are the least"
    return ""
