"""The guard: no job outlives its lease, even when both its agent and its slot were killed or stand still.

A slot kills its job before the lease ends, and an agent kills what a dead slot has left. When nobody is left to do so,
this process is: it sleeps until the lease that all see in mapped memory is over, and finds what belongs to the pilot by
the signs that every job carries. It outlives the agent, waits for the next, and ends when there is
neither an agent nor anything to guard."""

import os
import signal
import sys
import time
from pathlib import Path

from mendflow.pilot.files.locks import hold, holder
from mendflow.pilot.slot.lease import LeaseClock, boot_ms
from mendflow.pilot.slot.process_tags import find_slots, has_processes, kill_unwatched
from mendflow.pilot.slot.processes import stands_still

IDLE_MS = 2_000
LATER_MS = 100
"""How long after the slots ought to have killed their jobs the guard looks whether they have."""


class Guard:
    def __init__(self, folder: Path, pilot: str) -> None:
        self._folder = folder
        self._pilot = pilot
        self._lease = LeaseClock(folder / "lease")
        self._settled_at = 0  # the end of a lease after which nothing was left to kill

    def watch(self) -> None:
        """Until there is nothing more to guard."""
        while True:
            agent = self._agent_there()
            stop_at = self._lease.stop_at
            late = stop_at > 0 and self._lease.is_over(boot_ms() - LATER_MS)
            if not agent or (late and self._settled_at != stop_at):
                if self._clear(late=late) and late:
                    self._settled_at = stop_at
                if not agent and not has_processes(self._pilot):
                    return
            until_late = stop_at + LATER_MS - boot_ms()
            time.sleep((min(until_late, IDLE_MS) if until_late > 0 else IDLE_MS) / 1000)

    def _agent_there(self) -> bool:
        return holder(self._folder / "agent.lock") is not None

    def _clear(self, *, late: bool) -> bool:
        """Kill processes of jobs whose slot is dead. When it is late, also of those whose slot stands still; the slot
        itself will go on some day, and knows what it had. False if something would not die."""
        slots = find_slots(str(self._folder))
        watching = {pid for pid in slots if not (late and stands_still(pid))}
        return kill_unwatched(self._pilot, watching, spared=slots)


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
