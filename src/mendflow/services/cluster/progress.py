"""Writes the progress of cases every few seconds, for those who ask another server than their home.

At home the counts of a case are in memory and exact. Other servers show the counts in the case's document; so, where
there may be other servers, the home writes them there from time to time, if they have changed."""

import asyncio
from collections.abc import Mapping
from itertools import islice
from typing import Final

from mendflow.core.model.ids import CaseId
from mendflow.services.base.background_tasks import cancel_tasks
from mendflow.services.base.cluster import CASE_KIND
from mendflow.services.base.contracts import Clock
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.live_case import LiveCase

INTERVAL_MS: Final = 3_000
CASES_AT_ONCE_MAX: Final = 500
"""How many cases are written each time; the others have their turn later."""


class ProgressWriter:
    def __init__(self, live: Mapping[CaseId, LiveCase], ledger: Ledger, clock: Clock) -> None:
        self._live = live
        self._ledger = ledger
        self._clock = clock
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="progress")

    async def stop(self) -> None:
        await cancel_tasks(self._task)

    async def _run(self) -> None:
        while not self._ledger.broken:
            await self._clock.sleep(INTERVAL_MS)
            self.write()

    def write(self) -> None:
        """Write the counts of the cases that have changed."""
        moved = (live for live in self._live.values() if live.tally.moved and live.document.live)
        for live in list(islice(moved, CASES_AT_ONCE_MAX)):
            live.document.counts = live.tally.counts()
            live.tally.moved = False
            self._ledger.touch(CASE_KIND, live.id, live.document)
