"""Turns an exception, raised by a function or while it was loaded, into a fault: whose fault it is, and where.

The fault has the exception's name, so that a flow can catch it by that."""

import os
import subprocess
import traceback
from pathlib import Path
from types import TracebackType

import msgspec

from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.values import Value
from mendflow.pilot.slot.faults import NO_ROOM, full_disk_fault, start_fault
from mendflow.pilot.slot.logs import SHIPPED_BYTES
from mendflow.pilot.worker.arguments import BadArgument
from mendflow.pilot.worker.functions import CodeMismatch, NoSuchFunction

MESSAGE_CHARACTERS = 4000
TYPES_MAX = 8
EXIT_CODE_MAX = 255
CALLING = str(Path(__file__).parents[2] / "formats" / "python") + os.sep
"""Where the functions that `@job` makes are called from."""


class CallSetupFailed(Exception):
    """The environment for the call could not be prepared."""

    def __init__(self, reason: OSError | ValueError) -> None:
        super().__init__(str(reason))
        self.reason = reason


class ArgumentMissing(Exception):
    """A large argument is no longer where the pilot stored it."""


def fault_of(error: BaseException, stage: AttemptStage, folder: str, peak_bytes: int) -> Fault:
    """`stage` says whether the function had started."""
    match error:
        case CallSetupFailed():
            return start_fault(error.reason, folder)
        case ArgumentMissing():
            return Fault(name="missingInput", category=Category.DATA, message=str(error), stage=AttemptStage.STAGE_IN)
        case BadArgument():
            return Fault(name="badArgument", category=Category.INPUT, message=str(error), stage=AttemptStage.START)
        case CodeMismatch():
            return Fault(name="wrongCode", category=Category.DATA, message=str(error), stage=stage)
        case NoSuchFunction():
            return Fault(name="noSuchFunction", category=Category.INPUT, message=str(error), stage=stage)
        case OSError() if error.errno in NO_ROOM:
            full = full_disk_fault(folder, str(error), stage=stage, known=True)
            assert full is not None, "the disk is known to be full"
            return msgspec.structs.replace(full, file=error.filename if isinstance(error.filename, str) else "")
    return _own_fault(error, stage, peak_bytes)


def _own_fault(error: BaseException, stage: AttemptStage, peak_bytes: int) -> Fault:
    kind = type(error)
    types = [each.__name__ for each in kind.__mro__ if issubclass(each, BaseException)]
    data: dict[str, Value] = {"type": kind.__name__, "types": types[:TYPES_MAX]}
    message = str(error)[:MESSAGE_CHARACTERS] or kind.__name__
    category = Category.INPUT if stage is AttemptStage.START or _not_begun(error) else Category.JOB
    if isinstance(error, SystemExit):
        message = f"the function called sys.exit({error.code!r})"
    elif isinstance(error, MemoryError):
        category, data["peak_bytes"] = Category.MEMORY, peak_bytes
    elif isinstance(error, KeyError):
        message = f"KeyError: {message}"  # whose own text is the key and nothing else
    elif isinstance(error, FileNotFoundError):
        message += _elsewhere(error.filename)
    return Fault(
        name=kind.__name__, category=category, message=message, stage=stage, data=data, exit_code=_exit_code(error)
    )


def _exit_code(error: BaseException) -> int | None:
    """The exit code that an exception stands for: of the function's own end, or of a command that it ran."""
    match error:
        case SystemExit(code=int() as code) | subprocess.CalledProcessError(returncode=int() as code):
            return int(code) if 0 <= code <= EXIT_CODE_MAX else None
        case SystemExit(code=code):
            return 0 if code is None else 1
    return None


def _elsewhere(path: object) -> str:
    """What is said of a relative path that a function did not find. A bare word may be a command."""
    if not isinstance(path, str) or os.path.isabs(path) or not os.path.splitext(path)[1]:
        return ""
    return (
        "; it was looked for in the job's folder, which is its own: if it is a file of the flow's folder, take it as a "
        "parameter that is declared as Path, `def count(table: Path)`, and give its path when you call the job"
    )


def _not_begun(error: BaseException) -> bool:
    """Whether the arguments did not match the function: then none of its own lines is in the traceback."""
    return isinstance(error, TypeError) and _own_lines(error) is None


def traceback_of(error: BaseException) -> str:
    """The traceback, starting with the function's first line."""
    if isinstance(error, (CodeMismatch, NoSuchFunction, CallSetupFailed, ArgumentMissing, BadArgument)):
        return ""
    trace = _own_lines(error) or error.__traceback__
    return "".join(traceback.format_exception(type(error), error, trace))[-SHIPPED_BYTES:]


def _own_lines(error: BaseException) -> TracebackType | None:
    """The traceback from the function's first line on: how it was called is no business of its author. None if none of
    its lines is in it."""
    trace = error.__traceback__.tb_next if error.__traceback__ else None
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(CALLING):
        trace = trace.tb_next
    return trace
