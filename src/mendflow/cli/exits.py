"""How a command ends: a number for scripts, and one sentence for people.

The numbers are a promise (docs/reference/cli.md has the table). A mistake that the caller can put right never shows a
traceback, unless MENDFLOW_DEBUG=1 asks for it."""

import os
import sys
from enum import IntEnum

from mendflow.cli.problems import show_problems
from mendflow.core.model.problems import (
    BadFlow,
    Conflict,
    Forbidden,
    Mistake,
    NotFound,
    ServerFailed,
    StoreUnavailable,
    Unauthorized,
    Unreachable,
)
from mendflow.pages.words import plain


class Exit(IntEnum):
    OK = 0
    CASE_FAILED = 1
    BAD_INPUT = 2
    ENVIRONMENT = 3
    UNREACHABLE = 4
    NOT_FOUND = 5
    REFUSED = 6
    BUG = 70
    INTERRUPTED = 130


class Unfit(Mistake):
    """This machine, as it is now, cannot do what was asked."""

    code = "unfit"


BY_MISTAKE: list[tuple[type[Mistake], Exit]] = [
    (BadFlow, Exit.BAD_INPUT),
    (Unreachable, Exit.UNREACHABLE),
    (NotFound, Exit.NOT_FOUND),
    (Conflict, Exit.REFUSED),
    (Forbidden, Exit.REFUSED),
    (Unauthorized, Exit.REFUSED),
    (Unfit, Exit.ENVIRONMENT),
    (StoreUnavailable, Exit.ENVIRONMENT),
    (ServerFailed, Exit.ENVIRONMENT),
]


def debugging() -> bool:
    return os.environ.get("MENDFLOW_DEBUG", "") not in ("", "0")


def complain(sentence: str) -> None:
    print(f"mendflow: {plain(sentence)}", file=sys.stderr)


def exit_of(error: BaseException) -> Exit:
    """The number for an error, after having told it."""
    if isinstance(error, KeyboardInterrupt):
        complain("interrupted")
        return Exit.INTERRUPTED
    if isinstance(error, BadFlow) and error.problems:
        show_problems(error.problems)
        complain(f"{error.refused}; put right what is told above")
        return Exit.BAD_INPUT
    if isinstance(error, Unauthorized):
        complain(f"{_first_part(error.message)}; give yours by MENDFLOW_TOKEN or --token-file FILE")
        return Exit.REFUSED
    if isinstance(error, Mistake):
        complain(error.message)
        return next((code for kind, code in BY_MISTAKE if isinstance(error, kind)), Exit.BAD_INPUT)
    if isinstance(error, OSError):
        complain(_told(error))
        return Exit.ENVIRONMENT
    complain(f"a fault of mendflow itself: {type(error).__name__}: {error}. Set MENDFLOW_DEBUG=1 to see where")
    return Exit.BUG


def _first_part(sentence: str) -> str:
    """What is wrong, without the advice for those who speak HTTP."""
    return sentence.partition(":")[0].partition(";")[0]


def _told(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}; put that right and try again"
