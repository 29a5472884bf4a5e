"""How a command ends: a number for scripts, and one sentence for people.

The numbers are a promise (docs/reference/cli.md has the table). A mistake that the caller can put right never shows a
traceback, unless MENDFLOW_DEBUG=1 asks for it."""

import os
import sys
from enum import IntEnum

from mendflow.cli.problems import show_problems
from mendflow.core.model.errors import (
    BadFlow,
    Conflict,
    Forbidden,
    InternalError,
    NotFound,
    RequestError,
    StoreUnavailable,
    Unauthorized,
    Unreachable,
)
from mendflow.pages.formatting import plain_text


class ExitCode(IntEnum):
    OK = 0
    CASE_FAILED = 1
    BAD_INPUT = 2
    ENVIRONMENT = 3
    UNREACHABLE = 4
    NOT_FOUND = 5
    REFUSED = 6
    BUG = 70
    INTERRUPTED = 130


class EnvironmentUnfit(RequestError):
    """This machine, as it is now, cannot do what was asked."""

    code = "unfit"


EXIT_BY_ERROR: list[tuple[type[RequestError], ExitCode]] = [
    (BadFlow, ExitCode.BAD_INPUT),
    (Unreachable, ExitCode.UNREACHABLE),
    (NotFound, ExitCode.NOT_FOUND),
    (Conflict, ExitCode.REFUSED),
    (Forbidden, ExitCode.REFUSED),
    (Unauthorized, ExitCode.REFUSED),
    (EnvironmentUnfit, ExitCode.ENVIRONMENT),
    (StoreUnavailable, ExitCode.ENVIRONMENT),
    (InternalError, ExitCode.ENVIRONMENT),
]


def is_debugging() -> bool:
    return os.environ.get("MENDFLOW_DEBUG", "") not in ("", "0")


def complain(sentence: str) -> None:
    print(f"mendflow: {plain_text(sentence)}", file=sys.stderr)


def report_error(error: BaseException) -> ExitCode:
    """The number for an error, after having told it."""
    if isinstance(error, KeyboardInterrupt):
        complain("interrupted")
        return ExitCode.INTERRUPTED
    if isinstance(error, BadFlow) and error.problems:
        show_problems(error.problems)
        complain(f"{error.refused}; put right what is told above")
        return ExitCode.BAD_INPUT
    if isinstance(error, Unauthorized):
        complain(f"{_without_advice(error.message)}; give yours by MENDFLOW_TOKEN or --token-file FILE")
        return ExitCode.REFUSED
    if isinstance(error, RequestError):
        complain(error.message)
        return next((code for kind, code in EXIT_BY_ERROR if isinstance(error, kind)), ExitCode.BAD_INPUT)
    if isinstance(error, OSError):
        complain(_error_text(error))
        return ExitCode.ENVIRONMENT
    complain(f"a fault of mendflow itself: {type(error).__name__}: {error}. Set MENDFLOW_DEBUG=1 to see where")
    return ExitCode.BUG


def _without_advice(sentence: str) -> str:
    """What is wrong, without the advice for those who speak HTTP."""
    return sentence.partition(":")[0].partition(";")[0]


def _error_text(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}; put that right and try again"
