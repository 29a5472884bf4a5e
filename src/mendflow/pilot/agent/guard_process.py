"""Starts the guard, one per work folder, and restarts it if it is killed."""

import os
import signal
import subprocess
import sys

from mendflow.pilot.files.locks import holder
from mendflow.pilot.files.work_folder import WorkFolder
from mendflow.pilot.isolation.variables import PassedVariables
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
        """The guard's pid, if this agent started it; the guard of an earlier agent is not a child of this process."""
        return self._process.pid if self._process is not None else 0

    def keep(self) -> None:
        """Start a guard unless one is running, whichever agent started it. Call it repeatedly."""
        now = boot_ms()
        if now < self._next_look or not HAS_PROC:
            return
        self._next_look = now + LOOK_EVERY_MS
        if self._process is not None and self._process.poll() is None:
            return
        self._process = None if holder(self._work_folder.guard_lock) is not None else self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "mendflow.pilot.slot.guard", str(self._work_folder.folder), self._pilot],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=PassedVariables().select(os.environ),
        )

    def end(self) -> None:
        """Stop the guard: there is nothing left to guard."""
        found = holder(self._work_folder.guard_lock)
        if found is not None and found.isdigit():
            send([int(found)], signal.SIGKILL)
        if self._process is not None:
            self._process.kill()
            self._process.wait()
