"""A pilot whose starter (a local server) was killed while the pilot lives on.

It reads the next server's address from the server file and moves there by itself, with the jobs that it runs. A pilot
that does not move is killed; its slots go on, and the next pilot in the folder adopts them."""

import asyncio
import signal
import time
from pathlib import Path

from mendflow.pilot.files.locks import holder
from mendflow.pilot.slot.processes import send

LOOK_EVERY_S = 0.02


class OrphanPilot:
    def __init__(self, work: Path) -> None:
        self._lock = work / "agent.lock"
        self.log = work / "pilot.log"
        self._asked = False

    @property
    def alive(self) -> bool:
        return holder(self._lock) is not None

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def ask_to_leave(self) -> None:
        """Ask it to leave: the first signal lets jobs end within their grace period, the second does not wait. The two
        are different signals, because two pending signals of one kind are delivered as one."""
        self._send(signal.SIGINT if self._asked else signal.SIGTERM)
        self._asked = True

    async def stop(self, patience_s: float) -> None:
        """Ask it to end its jobs and leave; kill it if it does not."""
        self.ask_to_leave()
        give_up_at = time.monotonic() + patience_s
        while self.alive:
            if time.monotonic() > give_up_at:
                self.kill()
                return
            await asyncio.sleep(LOOK_EVERY_S)

    def _send(self, number: int) -> None:
        found = holder(self._lock)
        if found is not None and found.isdigit() and _is_pilot(int(found)):
            send([int(found)], number)


def _is_pilot(pid: int) -> bool:
    """Whether this pid is a pilot. A lock that was just taken may still name its last holder, whose pid may belong to
    any process by now."""
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return not Path("/proc/self").exists()
    return b"mendflow" in arguments and b"pilot" in arguments
