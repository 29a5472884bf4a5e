"""Whoever reads the log of a job that runs waits here until its pilot has sent the next part.

Parts are never gathered: each goes to those who wait for it, and is forgotten."""

import asyncio

from mendflow.core.model.ids import JobId
from mendflow.core.model.sync import LogPart, LogRequest
from mendflow.services.scheduling.facts import WorkAnnouncer
from mendflow.services.scheduling.pilot_records import PilotRecord

PATIENCE_S = 10.0
"""How long a pilot may take to answer; one that is away is not waited for by people."""


class LiveLogReader:
    def __init__(self, signals: WorkAnnouncer | None) -> None:
        self._signals = signals
        self._waiting: dict[LogRequest, asyncio.Future[LogPart]] = {}

    async def read(self, wanted: LogRequest, pilot: PilotRecord) -> LogPart | None:
        """The part, or None if it did not come. Those who want the same share an answer."""
        waiting = self._waiting.get(wanted)
        if waiting is None:
            waiting = self._waiting[wanted] = asyncio.get_running_loop().create_future()
            pilot.log_requests.append(wanted)
            pilot.wake.set()
            if pilot.front and self._signals is not None:
                self._signals.summon(pilot)
        try:
            part = await asyncio.wait_for(asyncio.shield(waiting), PATIENCE_S)
        except TimeoutError:
            return None
        finally:
            if self._waiting.get(wanted) is waiting:
                del self._waiting[wanted]
        return part if part.size >= 0 else None

    def hear(self, part: LogPart) -> None:
        waiting = self._waiting.pop(LogRequest(part.job, part.fence, part.asked), None)
        if waiting is not None and not waiting.done():
            waiting.set_result(part)

    def end(self, job: JobId) -> None:
        """The attempt is over: nobody will answer any more."""
        if not self._waiting:
            return
        for wanted in [each for each in self._waiting if each.job == job]:
            self.hear(LogPart(wanted.job, wanted.fence, wanted.offset))
