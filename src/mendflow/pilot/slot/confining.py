"""How a slot keeps an attempt from what is the pilot's."""

import fcntl
import os
import shutil
import stat
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mendflow.pilot.cache.entries import kept_path
from mendflow.pilot.files.memory_folders import attempt_memory
from mendflow.pilot.files.work_folder import WorkFolder
from mendflow.pilot.isolation.confinement import VALUES_END, WORKER_END, JobConfinement, NotConfined
from mendflow.pilot.slot.messages import SlotWork
from mendflow.pilot.slot.settings import SlotSettings
from mendflow.pilot.worker.progress import NUMBERS_BYTES

_READABLE, _PASSABLE = 0o444, 0o111


def confine(settings: SlotSettings, work_folder: WorkFolder, work: SlotWork) -> JobConfinement | None:
    """The confinement of an attempt; None: it runs as the pilot itself. Raises NotConfined."""
    isolation = settings.isolation
    if isolation.sandbox == "containers" and work.container is None:
        raise NotConfined("this pilot runs only jobs in containers, and it names none: give it a `container`")
    if not isolation.confines:
        return None
    folder = work_folder.attempt(work.job, work.fence)
    return JobConfinement(isolation, folder=folder, work=str(work_folder.folder), owner=work.owner)


def copy_values(work_folder: WorkFolder, folder: str, digests: Sequence[str]) -> str:
    """Copy what a call reads of the cache beside its folder, as the cache has it; where that is."""
    own = folder + VALUES_END
    os.makedirs(own, 0o700, exist_ok=True)
    for digest in dict.fromkeys(digests):
        shutil.copyfile(kept_path(str(work_folder.cache), digest), os.path.join(own, digest))
    return own


def memory_of(work: SlotWork, folder: str) -> list[str]:
    """The folder in memory with the secrets of an attempt, if it has one."""
    memory = attempt_memory(folder) if work.secrets.files else ""
    return [memory] if memory else []


def let_read(work_folder: WorkFolder, folder: str) -> None:
    """Let everybody read the code in a folder of the pilot; whoever does not know its name does not find it."""
    if not folder.startswith(f"{work_folder.code}{os.sep}"):
        return
    for at, _, names in os.walk(folder):
        os.chmod(at, stat.S_IMODE(os.stat(at).st_mode) | _READABLE | _PASSABLE)
        for name in names:
            path = os.path.join(at, name)
            if stat.S_ISREG(mode := os.lstat(path).st_mode):
                os.chmod(path, stat.S_IMODE(mode) | _READABLE)


class WorkerPlaces(NamedTuple):
    """What a worker of one call has of its own: its folder with the log, the reports and the folder that it works in,
    and the values that the call reads."""

    confinement: JobConfinement
    log: str
    report: str
    cwd: str
    values: str


def prepare_worker(
    confinement: JobConfinement, work_folder: WorkFolder, work: SlotWork, call_folder: str
) -> WorkerPlaces:
    """Make what a worker needs that serves this call alone; `call_folder` is where the call's code is."""
    folder = work_folder.attempt(work.job, work.fence)
    own, values = folder + WORKER_END, copy_values(work_folder, folder, work.values)
    os.makedirs(f"{own}/cwd", 0o700, exist_ok=True)
    os.close(os.open(f"{own}/log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600))
    let_read(work_folder, call_folder)
    confinement.prepare(
        files=[f"{folder}.log"],
        folders=[own, values, *memory_of(work, folder)],
        readable=[call_folder] if call_folder else [],
    )
    return WorkerPlaces(confinement, f"{own}/log", f"{own}/report", f"{own}/cwd", values)


def sealed_memory() -> int:
    """Memory for a worker's progress that nobody can shorten: whoever reads what is not there any more would die."""
    found = os.memfd_create("mendflow-calls", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.ftruncate(found, NUMBERS_BYTES)
    fcntl.fcntl(found, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return found


def outside(folder: str, paths: Iterable[str]) -> list[str]:
    """Which of the paths that a call has named lie elsewhere than in its folder."""
    own = os.path.realpath(folder) + os.sep
    return [path for path in paths if not os.path.realpath(os.path.join(folder, path)).startswith(own)]
