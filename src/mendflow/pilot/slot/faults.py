"""Faults of attempts: the category, how far the attempt had come, and details for rules."""

import errno
import os
import shutil
import signal
from enum import StrEnum

from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.values import Value
from mendflow.core.recovery.error_lines import end_text, end_without_error, raised_error
from mendflow.core.scheduling.amounts import size
from mendflow.pilot.files.disk_usage import used_bytes
from mendflow.pilot.slot.memory import near_bound

DISK_FULL_BYTES = 1 << 20
"""With less free space than this, a failure is attributed to the disk."""

ROOM_BYTES = 16 << 20
"""A pilot takes jobs only with this much free space; a job whose own files take up as much has filled the disk
itself."""

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
NOT_FOUND = 127
SHELL_SAYS = {126: "a command cannot be executed", NOT_FOUND: "a command is not found"}


class StopReason(StrEnum):
    TIME = "time"
    MEMORY = "memory"
    CANCELLED = "cancelled"
    LEASE = "lease"
    KILLED = "killed"
    LEFT = "left"


def stop_fault(end: StopReason, *, wall_ms: int, memory_bytes: int, peak_bytes: int, ran_ms: int = 0) -> Fault:
    """The fault of an attempt that the slot itself has ended."""
    stage = AttemptStage.EXECUTION
    match end:
        case StopReason.TIME:
            text = f"it ran longer than the {wall_ms / 1000:g} s it asked for (wall time) and was killed"
            times: Value = {"ran_ms": ran_ms, "limit_ms": wall_ms}
            return Fault(name="timeLimit", category=Category.TIME, message=text, stage=stage, data=times)
        case StopReason.MEMORY:
            used = f"{peak_bytes / 1_000_000:.1f} MB"
            text = f"it used {used}, more than the {size(memory_bytes)} of memory it asked for, and was killed"
            sizes = _sizes(peak_bytes, memory_bytes)
            return Fault(name="memoryLimit", category=Category.MEMORY, message=text, stage=stage, data=sizes)
        case StopReason.CANCELLED:
            return Fault(name="cancelled", category=Category.CANCELLED, message="it was cancelled", stage=stage)
        case StopReason.LEASE:
            text = "the pilot could not renew its lease and killed the job before the lease ended"
            return Fault(name="leaseEnded", category=Category.RESOURCE, message=text, stage=stage)
        case StopReason.KILLED:
            text = "the pilot had to give the job up"
            return Fault(name="killed", category=Category.RESOURCE, message=text, stage=stage)
        case StopReason.LEFT:
            text = "it was ended together with its pilot, which was asked to leave"
            return Fault(name="lost", category=Category.RESOURCE, message=text, stage=stage, data={"left": "told"})


def exit_fault(
    status: int,
    folder: str,
    *,
    memory_bytes: int = 0,
    peak_bytes: int = 0,
    kernel_kill: bool = False,
    printed: str = "",
) -> Fault | None:
    """The fault that a command's wait status tells of, or None if it ended well. `kernel_kill`: the kernel has just
    killed somebody for memory. `printed` is the end of what the program printed: it may say what went wrong."""
    if status == 0:
        return None
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    code = os.WEXITSTATUS(status) if not number else 0
    if signal.SIGKILL in (number, code - 128) and (kernel_kill or near_bound(peak_bytes, memory_bytes)):
        return _killed_for_memory(number, code, memory_bytes, peak_bytes)
    error = raised_error(printed)
    if number:
        name = _signal_name(number)
        plain = end_without_error(f"it was ended by signal {number} ({name})", printed)
        text = end_text(f"signal {number}", error) if error else plain
        fault = Fault(
            name="signal",
            category=Category.JOB,
            message=text,
            signal=number,
            stage=AttemptStage.EXECUTION,
            data={"signal": name},
        )
    else:
        how = f"exit code {code}{_meaning(code)}"
        text = end_text(how, error) if error else end_without_error(f"it ended with {how}", printed)
        category = Category.INPUT if code == NOT_FOUND else Category.JOB
        fault = Fault(name="exitCode", category=category, message=text, exit_code=code, stage=AttemptStage.EXECUTION)
    return full_disk_fault(folder, fault.message) or fault


def _meaning(code: int) -> str:
    if code in SHELL_SAYS:
        return f", which a shell gives when {SHELL_SAYS[code]}"
    name = _signal_name(code - 128) if 128 < code <= 128 + 64 else ""
    return f", which a shell gives for {name}" if name else ""


def _killed_for_memory(number: int, code: int, memory_bytes: int, peak_bytes: int) -> Fault:
    asked = f"; it asked for {size(memory_bytes)}" if memory_bytes else ""
    text = f"it was killed, most likely by the system for its memory, at {peak_bytes / 1_000_000:.1f} MB{asked}"
    return Fault(
        name="memoryKilled",
        category=Category.MEMORY,
        message=text,
        exit_code=code or None,
        signal=number or None,
        stage=AttemptStage.EXECUTION,
        data=_sizes(peak_bytes, memory_bytes),
    )


def _sizes(peak_bytes: int, limit_bytes: int) -> dict[str, Value]:
    return {"peak_bytes": peak_bytes, "limit_bytes": limit_bytes}


def full_disk_fault(
    folder: str, what: str, *, stage: AttemptStage = AttemptStage.EXECUTION, known: bool = False
) -> Fault | None:
    """Blame the disk if it is full. It is the job's own fault if there would be enough space without its folder.
    `known`: a system call has reported the full disk."""
    where = os.path.dirname(folder)
    try:
        free = shutil.disk_usage(where).free
    except OSError:
        free = 0 if known else DISK_FULL_BYTES
    if free >= DISK_FULL_BYTES and not known:
        return None
    own = used_bytes(folder, enough=ROOM_BYTES) if stage in (AttemptStage.EXECUTION, AttemptStage.STAGE_OUT) else 0
    data = {"free_bytes": free, "folder": where}
    if own and free + own >= ROOM_BYTES:
        text = f"it has filled the pilot's disk itself, with {size(own)} or more in its own folder: {what}"
        return Fault(
            name="diskFilled", category=Category.JOB, message=text, stage=stage, data=data | {"own_bytes": own}
        )
    text = f"the pilot's disk is full ({free} bytes left at {where}): {what}"
    return Fault(name="diskFull", category=Category.RESOURCE, message=text, stage=stage, data=data)


def start_fault(error: OSError | ValueError, folder: str) -> Fault:
    """The pilot could not start a job. It is the pilot's fault, unless the command could not start anywhere because it
    is too large or contains a zero byte."""
    number = error.errno if isinstance(error, OSError) and error.errno else 0
    if full := full_disk_fault(folder, str(error), stage=AttemptStage.START, known=number in NO_ROOM):
        return full
    name, category = "cannotStart", Category.RESOURCE
    if not isinstance(error, OSError) or number == errno.E2BIG:
        name, category = "badCommand", Category.INPUT
    data = {"errno": errno.errorcode.get(number, "")}
    text = f"the pilot could not start the job: {error}"
    return Fault(name=name, category=category, message=text, stage=AttemptStage.START, data=data)


def leftover_fault(left: list[int]) -> Fault:
    """Processes of an ended attempt could not be killed: they may still write, so its result cannot be trusted. (A
    folder that cannot be removed is only litter: the next job gets another.)"""
    text = f"it is over, but {len(left)} of its processes would not die ({', '.join(map(str, left[:5]))})"
    data = {"left": list(left)}
    return Fault(name="notCleaned", category=Category.CLEANUP, message=text, stage=AttemptStage.CLEANUP, data=data)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""
