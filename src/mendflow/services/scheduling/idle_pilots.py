"""Pilots that wait for work: their exchanges are held until something is put into the queue, or their time is over."""

import asyncio

from mendflow.core.scheduling.queue import JobQueue
from mendflow.services.scheduling.facts import WorkAnnouncer
from mendflow.services.scheduling.pilot_records import PilotRecord


class IdlePilots:
    """`signals` announces work to the other servers, if there are some."""

    def __init__(self, queue: JobQueue, signals: WorkAnnouncer | None) -> None:
        self._queue = queue
        self._signals = signals
        self._waits: dict[int, PilotRecord] = {}  # by number of the wait
        self._wait_count = 0
        self._is_scheduled = False

    def wake(self) -> None:
        """Wake them, once for everything that is put into the queue now."""
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._wake)

    async def wait_for_work(self, pilot: PilotRecord, most_s: float) -> bool:
        """Wait until there is something for a pilot; false if there was nothing in that time."""
        pilot.wake.clear()
        self._wait_count += 1
        wait = self._wait_count
        if pilot.want > 0:
            self._waits[wait] = pilot
        try:
            await asyncio.wait_for(pilot.wake.wait(), most_s)
        except TimeoutError:
            return False
        finally:
            self._waits.pop(wait, None)
        return True

    def _wake(self) -> None:
        self._is_scheduled = False
        if len(self._queue):  # otherwise the caller has taken them along
            for pilot in self._waits.values():
                pilot.wake.set()
        if self._signals is not None:
            self._signals.work_waits()
