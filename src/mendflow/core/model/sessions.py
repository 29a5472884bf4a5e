"""Who somebody is to a server, and how a browser signs in."""

from typing import Annotated, Literal

import msgspec

from mendflow.core.model.ids import Instant
from mendflow.core.model.principals import ProjectRole

SignedInBy = Literal["token", "session", "socket"]
"""How the server knows the caller: by the token that was sent, by the session of a browser, or because the kernel says
that the account which runs the server has opened the connection."""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """The caller, as the server sees it. `projects` says what it is in which project; whoever has the whole
    `installation` may do everything in all of them, and none is named. `may` has the ids of the operations that it may
    use on at least something. `teller` is what the server records when the caller says where a case came from
    (`origin.told_by`): its name, or its account. `no_jobs_by_tokens` tells who may make tokens why this server refuses
    those that let jobs run; empty if it does not."""

    name: str
    roles: list[str]
    projects: dict[str, ProjectRole]
    installation: bool
    may: list[str]
    server: str
    domain: str
    version: str
    signed_in_by: SignedInBy
    no_jobs_by_tokens: str = ""
    teller: str = ""


class SignInRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token, or a one-time code."""

    token: Annotated[str, msgspec.Meta(max_length=16_384)] = ""
    code: Annotated[str, msgspec.Meta(max_length=200)] = ""

    def __repr__(self) -> str:
        return "SignInRequest()"


class SignInCode(msgspec.Struct, frozen=True, kw_only=True):
    """A code that signs one browser in, once, as whoever asked for it."""

    code: str
    expires_at: Instant

    def __repr__(self) -> str:
        return f"SignInCode(expires_at={self.expires_at})"


class SignInOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a browser can sign in here. `signed_in`: whoever asks is known already. `issuer` is the OpenID Connect issuer
    where browsers sign in, by way of `/sign-in/issuer`; empty if there is none."""

    signed_in: bool
    issuer: str = ""
