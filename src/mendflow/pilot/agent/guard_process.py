"""The agent's side of the guard: there is one for each work folder, and it is started again should it be killed."""

import os
import signal
import subprocess
import sys

from mendflow.pilot.files.locks import holder
from mendflow.pilot.files.work_folder import WorkFolder
from mendflow.pilot.slot.lease import boot_ms
from mendflow.pilot.slot.processes import HAS_PROC, send

LOOK_EVERY_MS = 1_000


class GuardProcess:
    def __init__(self, work_folder: WorkFolder, pilot: str) -> None:
        self._work_folder = work_folder
        self._pilot = pilot
        self._process: subprocess.Popen[bytes] | None = None
        self._next_look = 0

    @property
    def pid(self) -> int:
        """The guard, if this agent has started it; one of an earlier agent is not a child of this process."""
        return self._process.pid if self._process is not None else 0

    def keep(self) -> None:
        """See that there is a guard; one that an earlier agent has started will do. To be called again and again."""
        now = boot_ms()
        if now < self._next_look or not HAS_PROC:
            return
        self._next_look = now + LOOK_EVERY_MS
        if self._process is not None and self._process.poll() is None:
            return
        self._process = None if holder(self._work_folder.guard_lock) is not None else self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "-m", "mendflow.pilot.slot.guard", str(self._work_folder.folder), self._pilot],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={name: value for name, value in os.environ.items() if name != "MENDFLOW_TOKEN"},
        )

    def end(self) -> None:
        """There is nothing left to guard."""
        found = holder(self._work_folder.guard_lock)
        if found is not None and found.isdigit():
            send([int(found)], signal.SIGKILL)
        if self._process is not None:
            self._process.kill()
            self._process.wait()
