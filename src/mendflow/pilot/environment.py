"""What this machine offers, and whether a pilot can run on it at all.

A pilot checks this before it registers: on an unsuitable machine it stops with a message, and no job is lost."""

import os
import platform
import shutil
import subprocess
from pathlib import Path

from mendflow.core.model.errors import RequestError
from mendflow.core.model.platforms import machine_of
from mendflow.core.model.sync import Capacity
from mendflow.pilot.agent.devices import visible_gpus
from mendflow.pilot.containers.runtime import find_runtime, options_from
from mendflow.pilot.slot.faults import ROOM_BYTES
from mendflow.pilot.slot.memory import machine_bytes
from mendflow.pilot.slot.script_shells import SHELL

DISK_BYTES_MIN = ROOM_BYTES


class BadEnvironment(RequestError):
    """A pilot cannot work here."""

    code = "bad-environment"
    status = 412


def check(folder: Path) -> None:
    """Raise `BadEnvironment` if jobs could not run in this folder on this machine."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe.{os.getpid()}"
        probe.write_bytes(b"x" * 4096)
        probe.unlink()
    except OSError as error:
        raise BadEnvironment(f"the work folder {folder} cannot be written to ({error}): choose another one") from None
    if short := shortage(folder):
        raise BadEnvironment(f"{short}, or choose another work folder")
    try:
        answer = subprocess.run([SHELL, "-c", "echo well"], capture_output=True, timeout=30, check=False, cwd=folder)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BadEnvironment(f"the shell {SHELL} cannot be started here: {error}") from None
    if answer.stdout != b"well\n":
        raise BadEnvironment(f"the shell {SHELL} does not work here: {answer.stderr.decode(errors='replace')[:200]}")


def shortage(folder: Path) -> str:
    """What jobs in this folder would lack; empty if nothing. Cheap."""
    try:
        disk = os.statvfs(folder)
    except OSError as error:
        return f"the work folder {folder} cannot be reached ({error}): bring it back"
    if disk.f_flag & os.ST_RDONLY:
        return f"the disk of {folder} can only be read: make it writable"
    if disk.f_files and not disk.f_favail:
        return f"the disk of {folder} has no room for another file: remove some"
    free = disk.f_bavail * disk.f_frsize
    if free < DISK_BYTES_MIN:
        return f"the disk of {folder} has only {free >> 20} MB left: free at least {DISK_BYTES_MIN >> 20} MB"
    return ""


def capacity(
    folder: Path,
    *,
    slots: int,
    cpus: float | None = None,
    memory_bytes: int | None = None,
    disk_bytes: int | None = None,
    gpus: int | None = None,
    runtime: str | None = None,
) -> Capacity:
    """The resources that the pilot offers: those of the machine, unless options override them. With more slots than
    processors, the slots count, because whoever set them wants that many jobs in parallel. `runtime` runs its
    containers."""
    return Capacity(
        slots=slots,
        cpus=cpus if cpus is not None else float(max(usable_cpus(), slots)),
        memory_bytes=memory_bytes if memory_bytes is not None else machine_bytes(),
        disk_bytes=disk_bytes if disk_bytes is not None else shutil.disk_usage(folder).free,
        gpus=gpus if gpus is not None else len(visible_gpus(os.environ)[1]),
        system=platform.system().lower(),
        machine=machine_of(platform.machine()),
        runtime=_runtime() if runtime is None else runtime,
    )


def _runtime() -> str:
    """What runs containers here, as the environment says."""
    found = find_runtime(options_from(os.environ), os.environ)
    return found.kind if found is not None else ""


def usable_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1
