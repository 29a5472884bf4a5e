"""The guard: makes sure that no job outlives its lease, even when its agent and its slot were killed or are stopped.

A slot kills its job before the lease ends, and an agent kills what a dead slot leaves. When neither is left, the guard
does it: it sleeps until the lease in shared memory has ended, and finds the pilot's processes by their tags. It
outlives the agent, waits for the next, and ends when there is neither an agent nor anything to guard."""

import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mendflow.lazy import LazyModule
from mendflow.pilot.containers.start import ContainerNotes
from mendflow.pilot.files.locks import hold, holder
from mendflow.pilot.files.memory_folders import remove_memory
from mendflow.pilot.files.work_folder import CONTAINER_NOTES
from mendflow.pilot.isolation.hidden_process import hide_memory
from mendflow.pilot.slot.lease import LeaseClock, boot_ms
from mendflow.pilot.slot.process_tags import find_slots, has_processes, kill_unwatched
from mendflow.pilot.slot.processes import stands_still

if TYPE_CHECKING:
    from mendflow.pilot.containers import records
else:  # most pilots run no containers
    records = LazyModule("mendflow.pilot.containers.records")

IDLE_MS = 2_000
TRIES_MAX = 30
LATER_MS = 100
"""How long after the slots should have killed their jobs the guard checks."""


class Guard:
    def __init__(self, folder: Path, pilot: str) -> None:
        self._folder = folder
        self._pilot = pilot
        self._lease = LeaseClock(folder / "lease")
        self._settled_at = 0  # the lease end after which nothing was left to kill

    def watch(self) -> None:
        """Run until there is nothing more to guard. A container that cannot be removed just now, such as one that its
        runtime is about to remove itself, is tried again; in the end it is left to the next pilot."""
        tries = 0
        while True:
            agent = self._agent_there()
            stop_at = self._lease.stop_at
            late = stop_at > 0 and self._lease.is_over(boot_ms() - LATER_MS)
            if not agent or (late and self._settled_at != stop_at):
                is_clear = self._clear(late=late)
                if is_clear and late:
                    self._settled_at = stop_at
                tries = 0 if agent else tries + 1
                if not agent and not has_processes(self._pilot) and (is_clear or tries > TRIES_MAX):
                    remove_memory(str(self._folder))
                    return
            until_late = stop_at + LATER_MS - boot_ms()
            time.sleep((min(until_late, IDLE_MS) if until_late > 0 else IDLE_MS) / 1000)

    def _agent_there(self) -> bool:
        return holder(self._folder / "agent.lock") is not None

    def _clear(self, *, late: bool) -> bool:
        """Kill processes of jobs whose slot is dead. When late, also those whose slot is stopped; that slot will
        continue some day and knows what it had. False if a process could not be killed."""
        slots = find_slots(str(self._folder))
        watching = {pid for pid in slots if not (late and stands_still(pid))}
        return kill_unwatched(self._pilot, watching, spared=slots) and self._remove_containers()

    def _remove_containers(self) -> bool:
        """Remove the containers of slots that are dead: killing their processes leaves what the runtime knows of them,
        and of docker they still run. False if one could not be removed."""
        try:
            notes = msgspec.json.decode((self._folder / CONTAINER_NOTES).read_bytes(), type=ContainerNotes)
        except (OSError, msgspec.MsgspecError):
            return True
        return not records.remove_leftovers(notes)


def main() -> None:
    """`guard.py FOLDER PILOT`: the pilot's work folder and its id."""
    hide_memory()
    folder, pilot = Path(sys.argv[1]), sys.argv[2]
    os.chdir("/")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    lock = hold(folder / "guard.lock")
    while lock is not None:
        Guard(folder, pilot).watch()
        os.close(lock)
        # An agent that has just started may have seen the lock held and rely on this guard.
        lock = hold(folder / "guard.lock") if holder(folder / "agent.lock") is not None else None


if __name__ == "__main__":
    main()
