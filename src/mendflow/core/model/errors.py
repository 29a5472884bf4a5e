"""Errors of the caller: typed, with a stable code, and a sentence that says what to do.

Failures of the world are `Fault` values; our own bugs are assertions. Only errors of the caller are exceptions."""

from collections.abc import Sequence
from typing import ClassVar, Final

import msgspec


class RequestError(Exception):
    """An error that the caller can fix. `code` is stable; `status` is the HTTP status."""

    code: ClassVar[str] = "bad-request"
    status: ClassVar[int] = 400

    def __init__(self, message: str, **fields: object) -> None:
        super().__init__(message)
        self.message = message
        self.fields = fields


class NotFound(RequestError):
    code = "not-found"
    status = 404


NOT_STORED: Final = "is not stored here"
"""What is wrong with a stored file that is not there."""


def unusable_file(sha256: str, flaw: str) -> NotFound:
    advice = "run the flow that made it again, and its job stores it anew; an input is to be uploaded again"
    return NotFound(f"the file with the digest {sha256} {flaw}: {advice}", sha256=sha256)


class Conflict(RequestError):
    """The request does not fit the current state."""

    code = "conflict"
    status = 409


class QuotaExceeded(RequestError):
    """The project has used up one of its quotas. `project`, `quota`, `used` and `limit` say which, and how much."""

    code = "quota-exceeded"
    status = 409


class Forbidden(RequestError):
    code = "forbidden"
    status = 403


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One problem in a document, and where: line and column count from 1, and are 0 if unknown. `suggestion` is what
    was probably meant."""

    file: str = ""
    line: int = 0
    column: int = 0
    message: str
    suggestion: str = ""

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        meant = f" (did you mean {self.suggestion}?)" if self.suggestion else ""
        return (f"{place}: " if place else "") + self.message + meant


class BadFlow(RequestError):
    """A flow with problems, refused as a whole; `problems` lists all of them."""

    code = "bad-flow"
    status = 422
    refused: ClassVar[str] = "the flow was refused"

    def __init__(self, message: str = "", *, problems: Sequence[Problem | str] = (), **fields: object) -> None:
        super().__init__(message or "\n".join(map(str, problems)), problems=list(problems), **fields)
        self.problems = [one if isinstance(one, Problem) else Problem(message=one) for one in problems]


class BadRules(BadFlow):
    """A rule set with problems, refused as a whole, like a flow."""

    code = "bad-rules"
    refused = "the rules were refused"


class BadFile(BadFlow):
    """A settings file with problems, refused as a whole, like a flow."""

    code = "bad-file"
    refused = "the file was refused"


STORE_AWAY: Final = (
    "the store of this server cannot be used now; nothing was acknowledged, and nothing is lost. The server's log says"
    " what is wrong; ask again in a moment"
)


class StoreUnavailable(RequestError):
    """The store is unavailable now; nothing was acknowledged, nothing is lost. The message says which store, for those
    who run the server; `told` is for whoever asks it, and names neither its address nor a path."""

    code = "store-unavailable"
    status = 503

    def __init__(self, message: str, *, told: str = STORE_AWAY, **fields: object) -> None:
        super().__init__(message, **fields)
        self.told = told


class InvalidRequest(RequestError):
    """The request is malformed; `field` says where."""

    code = "invalid"


class Unauthorized(RequestError):
    """No token, or an unknown one."""

    code = "unauthorized"
    status = 401


class TooLarge(RequestError):
    code = "too-large"
    status = 413


class TooManyRequests(RequestError):
    """The caller has used up what it may take of the server for now, or has sent too many unknown tokens.
    `retry_after_s` says when to come back."""

    code = "too-many-requests"
    status = 429


class Unreachable(RequestError):
    """The server did not answer, or is about to stop. Whether it carried out the request is unknown."""

    code = "unreachable"
    status = 503


class NotConnected(Unreachable):
    """No server took the connection, so this request was told to none. If it was sent before, an earlier try may have
    been."""


class TemporarilyUnavailable(Unreachable):
    """No server can decide about it at this moment, for instance while a case is being taken over. Nothing was done:
    retry."""

    code = "not-now"


class WrongServer(RequestError):
    """A forwarded request for a case that is no longer on this server."""

    code = "elsewhere"
    status = 421


class InternalError(RequestError):
    """The server has a bug. `id` finds the traceback in its log."""

    code = "internal"
    status = 500
