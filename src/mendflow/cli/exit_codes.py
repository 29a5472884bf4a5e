"""How a command ends: an exit code for scripts, and one sentence for people.

The codes are stable (docs/reference/cli.md has the table). An error of the caller never shows a traceback, unless
MENDFLOW_DEBUG=1 is set."""

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
    TooManyRequests,
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
    """This machine cannot do what was asked."""

    code = "unfit"


EXIT_BY_ERROR: list[tuple[type[RequestError], ExitCode]] = [
    (BadFlow, ExitCode.BAD_INPUT),
    (Unreachable, ExitCode.UNREACHABLE),
    (NotFound, ExitCode.NOT_FOUND),
    (Conflict, ExitCode.REFUSED),
    (Forbidden, ExitCode.REFUSED),
    (Unauthorized, ExitCode.REFUSED),
    (TooManyRequests, ExitCode.REFUSED),
    (EnvironmentUnfit, ExitCode.ENVIRONMENT),
    (StoreUnavailable, ExitCode.ENVIRONMENT),
    (InternalError, ExitCode.ENVIRONMENT),
]


def is_debugging() -> bool:
    return os.environ.get("MENDFLOW_DEBUG", "") not in ("", "0")


def complain(sentence: str) -> None:
    print(f"mendflow: {plain_text(sentence)}", file=sys.stderr)


def report_error(error: BaseException) -> ExitCode:
    """Print an error; returns its exit code."""
    if isinstance(error, KeyboardInterrupt):
        complain("interrupted")
        return ExitCode.INTERRUPTED
    if isinstance(error, BadFlow) and error.problems:
        show_problems(error.problems)
        complain(f"{error.refused}; fix the problems listed above")
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
    complain(f"internal error of mendflow: {type(error).__name__}: {error}. Set MENDFLOW_DEBUG=1 to see the traceback")
    return ExitCode.BUG


def _without_advice(sentence: str) -> str:
    """The message without its advice for users of HTTP."""
    return sentence.partition(": ")[0].partition("; ")[0]


def _error_text(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}; fix that and try again"
