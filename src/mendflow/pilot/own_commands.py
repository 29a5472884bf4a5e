"""The commands that a pilot runs for itself, beside its jobs: it fetches images, builds environments, removes
containers, looks whether the site is well.

What a dead slot leaves behind becomes a child of the agent, which kills all of its children that are no slots. Commands
of its own are not among these, and whoever waits for one gets its exit code: taken away by another, a command that was
killed would look as if it had done its work."""

import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mendflow.pilot.slot.processes import children, kill_tree


class OwnCommands:
    """Those of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[int] = set()

    @contextmanager
    def started(self, words: Sequence[str], **options: Any) -> Iterator["subprocess.Popen[bytes]"]:
        """A command that this process waits for within the block, with the options of `subprocess.Popen`."""
        with self._lock:  # whoever lists the children sees it started and known, or not at all
            process = subprocess.Popen(words, **options)
            self._running.add(process.pid)
        try:
            yield process
        finally:
            self._running.discard(process.pid)

    def run(self, words: Sequence[str], *, timeout_s: float, **options: Any) -> "subprocess.CompletedProcess[bytes]":
        """Run it to its end, and read what it prints. One that takes longer is killed; raises TimeoutExpired then."""
        pipe = subprocess.PIPE
        with self.started(words, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, **options) as process, process:
            try:
                out, errors = process.communicate(timeout=timeout_s)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(words, process.returncode, out, errors)

    def other_children(self, parent: int) -> list[int]:
        """The children of this process that are none of these."""
        with self._lock:
            return [pid for pid in children(parent) if pid not in self._running]

    def kill(self) -> None:
        """Kill them with all below them; whoever waits for one sees that it was killed."""
        with self._lock:
            for pid in [*self._running]:
                kill_tree(pid)


OWN_COMMANDS = OwnCommands()
