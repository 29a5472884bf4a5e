"""A pilot that works in a folder and was started by somebody who is gone: its server was killed, and it was not.

It reads from the server's file where the next server is and comes over by itself, with the jobs that it runs. Only one
that does not come is killed; its slots go on, and the next pilot in the folder finds them."""

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
        """The first time it lets its jobs end within their grace, the second time it leaves at once. The second signal
        is another one: of two of a kind that a busy machine has not yet delivered, one is lost."""
        self._send(signal.SIGINT if self._asked else signal.SIGTERM)
        self._asked = True

    async def stop(self, patience_s: float) -> None:
        """Ask it to end its jobs and leave; insist if it does not."""
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
    """A lock that has just been taken may still name its last holder, and that number may be anybody's by now."""
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return not Path("/proc/self").exists()
    return b"mendflow" in arguments and b"pilot" in arguments
