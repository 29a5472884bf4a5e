"""The guard: no job outlives its lease, even when both its agent and its slot were killed or stand still.

A slot kills its job before the lease ends, and an agent kills what a dead slot has left. When nobody is left to do so,
this process is: it sleeps until the lease that all see in mapped memory is over, and finds what belongs to the pilot by
the mark that every job carries in its environment. It outlives the agent, waits for the next, and ends when there is
neither an agent nor anything to guard."""

import os
import signal
import sys
import time
from pathlib import Path

from mendflow.pilot.lease import LeaseClock, boot_ms
from mendflow.pilot.locks import hold, holder
from mendflow.pilot.processes import below_any, descendants, marked, send, stands_still

IDLE_MS = 2_000
LATER_MS = 100
"""How long after the slots ought to have killed their jobs the guard looks whether they have."""

KILL_ROUNDS = 100
SLOT_MODULE = b"mendflow.pilot.slot"


class Guard:
    def __init__(self, folder: Path, pilot: str) -> None:
        self._folder = folder
        self._mark = f"MENDFLOW_PILOT={pilot}"
        self._lease = LeaseClock(folder / "lease")
        self._settled_at = 0  # the end of a lease after which nothing was left to kill

    def watch(self) -> None:
        """Until there is nothing more to guard."""
        while True:
            agent = self._agent_there()
            stop_at = self._lease.stop_at
            late = stop_at > 0 and self._lease.over(boot_ms() - LATER_MS)
            if not agent or (late and self._settled_at != stop_at):
                left = self._clear(late=late)
                if late and not left:
                    self._settled_at = stop_at
                if not agent and not marked(self._mark):
                    return
            until_late = stop_at + LATER_MS - boot_ms()
            time.sleep((min(until_late, IDLE_MS) if until_late > 0 else IDLE_MS) / 1000)

    def _agent_there(self) -> bool:
        return holder(self._folder / "agent.lock") is not None

    def _clear(self, *, late: bool) -> bool:
        """Kill what nobody watches, again until nothing is left of it; True if something would not die."""
        for _ in range(KILL_ROUNDS):
            doomed = self._unwatched(late=late)
            if not doomed:
                return False
            send(doomed, signal.SIGKILL)
            time.sleep(0.01)
        return True

    def _unwatched(self, *, late: bool) -> list[int]:
        """Processes of jobs whose slot is dead. When it is late, also of those whose slot stands still."""
        found = marked(self._mark)
        slots = {pid for pid in found if self._is_slot(pid)}
        watching = {pid for pid in slots if not stands_still(pid)} if late else slots
        lone = [pid for pid in found if pid not in slots and not below_any(pid, watching)]
        below = [child for pid in lone for child in descendants(pid)]  # a job may have cleared the environment
        return list({*lone, *below})

    def _is_slot(self, pid: int) -> bool:
        try:
            with open(f"/proc/{pid}/cmdline", "rb", buffering=0) as text:
                arguments = text.read().split(b"\0")
        except OSError:
            return False
        return arguments[1:4] == [b"-m", SLOT_MODULE, os.fsencode(self._folder)]


def main() -> None:
    """`guard.py FOLDER PILOT`: the pilot's work folder and its id."""
    folder, pilot = Path(sys.argv[1]), sys.argv[2]
    os.chdir("/")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    lock = hold(folder / "guard.lock")
    while lock is not None:
        Guard(folder, pilot).watch()
        os.close(lock)
        # An agent that came just now may have seen the lock held and relies on us.
        lock = hold(folder / "guard.lock") if holder(folder / "agent.lock") is not None else None


if __name__ == "__main__":
    main()
