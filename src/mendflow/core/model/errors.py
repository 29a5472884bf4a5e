"""The caller's mistakes: typed, with a stable code, and a sentence that says what to do.

The world's faults are `Fault` values; our own bugs are assertions. Only mistakes of whoever called are exceptions."""

from collections.abc import Sequence
from typing import ClassVar

import msgspec


class RequestError(Exception):
    """Something that the caller can put right. `code` is stable; `status` is how HTTP says it."""

    code: ClassVar[str] = "bad-request"
    status: ClassVar[int] = 400

    def __init__(self, message: str, **fields: object) -> None:
        super().__init__(message)
        self.message = message
        self.fields = fields


class NotFound(RequestError):
    code = "not-found"
    status = 404


class Conflict(RequestError):
    """What was asked does not fit the present state."""

    code = "conflict"
    status = 409


class Forbidden(RequestError):
    code = "forbidden"
    status = 403


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that is wrong in a document, and where: line and column count from 1, and are 0 where there is none.
    `suggestion` is what was probably meant."""

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
    """A flow with problems, refused whole; `problems` lists all of them."""

    code = "bad-flow"
    status = 422
    refused: ClassVar[str] = "the flow was refused"

    def __init__(self, message: str = "", *, problems: Sequence[Problem | str] = (), **fields: object) -> None:
        super().__init__(message or "\n".join(map(str, problems)), problems=list(problems), **fields)
        self.problems = [one if isinstance(one, Problem) else Problem(message=one) for one in problems]


class BadRules(BadFlow):
    """A rule set with problems, refused whole like a flow."""

    code = "bad-rules"
    refused = "the rules were refused"


class BadFile(BadFlow):
    """A file of settings with problems, refused whole like a flow."""

    code = "bad-file"
    refused = "the file was refused"


class StoreUnavailable(RequestError):
    """The store cannot take what was asked just now; nothing was acknowledged, nothing is lost."""

    code = "store-unavailable"
    status = 503


class InvalidRequest(RequestError):
    """What was sent does not have the wanted form; `field` says where."""

    code = "invalid"


class Unauthorized(RequestError):
    """No token, or one that nobody knows."""

    code = "unauthorized"
    status = 401


class TooLarge(RequestError):
    code = "too-large"
    status = 413


class Unreachable(RequestError):
    """The server did not answer, or is about to stop. Whether it did what was asked is not known."""

    code = "unreachable"
    status = 503


class TemporarilyUnavailable(Unreachable):
    """Nobody can decide about it at this moment, such as while its server is being taken over. Nothing was done: ask
    again."""

    code = "not-now"


class WrongServer(RequestError):
    """What was passed on to this server is not at home here any more."""

    code = "elsewhere"
    status = 421


class InternalError(RequestError):
    """The server has a bug. `id` finds the story in its log."""

    code = "internal"
    status = 500
