"""Why an attempt was ended by its slot, and the fault that says so."""

import errno
import os
import shutil
import signal
from enum import StrEnum

from mendflow.core.model.faults import Category, Fault
from mendflow.core.scheduling.amounts import size

DISK_FULL_BYTES = 1 << 20
"""With less free space than this, a job's failure is laid to the disk."""


class End(StrEnum):
    TIME = "time"
    MEMORY = "memory"
    CANCELLED = "cancelled"
    LEASE = "lease"
    KILLED = "killed"


def stopped(end: End, *, wall_ms: int, memory_bytes: int, peak_bytes: int) -> Fault:
    """The fault of an attempt that the slot itself has ended."""
    match end:
        case End.TIME:
            text = f"it ran longer than the {wall_ms / 1000:g} s it asked for (wall time) and was killed"
            return Fault(name="timeLimit", category=Category.TIME, message=text)
        case End.MEMORY:
            used = f"{peak_bytes / 1_000_000:.1f} MB"
            text = f"it used {used}, more than the {size(memory_bytes)} of memory it asked for, and was killed"
            return Fault(name="memoryLimit", category=Category.MEMORY, message=text)
        case End.CANCELLED:
            return Fault(name="cancelled", category=Category.CANCELLED, message="it was cancelled")
        case End.LEASE:
            text = "the pilot could not renew its lease and killed the job before the lease ended"
            return Fault(name="leaseEnded", category=Category.RESOURCE, message=text)
        case End.KILLED:
            return Fault(name="killed", category=Category.RESOURCE, message="the pilot had to give the job up")


def died(status: int, folder: str) -> Fault | None:
    """The fault that a command's wait status tells of, or None if it ended well."""
    if status == 0:
        return None
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        text = f"it was ended by signal {number} ({_signal_name(number)})"
        fault = Fault(name="signal", category=Category.JOB, message=text, signal=number)
    else:
        code = os.WEXITSTATUS(status)
        text = f"it ended with exit code {code}"
        if 128 < code <= 128 + 64 and (name := _signal_name(code - 128)):
            text += f", which a shell gives for {name}"
        fault = Fault(name="exitCode", category=Category.JOB, message=text, exit_code=code)
    return full_disk(folder, fault.message) or fault


def full_disk(folder: str, what: str) -> Fault | None:
    """If the pilot's disk is full, that is the likelier reason of a failure, and not the job's own."""
    try:
        free = shutil.disk_usage(os.path.dirname(folder)).free
    except OSError:
        return None
    if free >= DISK_FULL_BYTES:
        return None
    text = f"the pilot's disk is full ({free} bytes left at {os.path.dirname(folder)}): {what}"
    return Fault(name="diskFull", category=Category.RESOURCE, message=text)


def cannot_start(error: OSError | ValueError) -> Fault:
    """The pilot could not start a job: its own trouble, except when the job could not be started anywhere, because it
    is too large or has a zero byte in it."""
    name, category = "cannotStart", Category.RESOURCE
    if isinstance(error, ValueError) or error.errno == errno.E2BIG:
        name, category = "badCommand", Category.INPUT
    return Fault(name=name, category=category, message=f"the pilot could not start the job: {error}")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""
