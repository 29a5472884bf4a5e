"""Cases that stand in the middle of an event, because it turned out to be long: each is made anew from what the store
has of it."""

import asyncio
from typing import Final

from mendflow.core.engine import Case
from mendflow.core.engine.state import beside
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.case_reader import CaseReader
from mendflow.services.cases.live_case import LiveCase

AGAIN: Final = "loading everything again"


class InterruptedCases:
    def __init__(self, reader: CaseReader, ledger: Ledger) -> None:
        self._reader = reader
        self._ledger = ledger
        self._under_way: set[asyncio.Task[None]] = set()

    async def take_back(self, live: LiveCase) -> None:
        """Make the case as it was before the event, also if whoever sent that leaves meanwhile. Nobody else changes it
        before."""
        if not live.position:
            live.case = Case.blank()
            return
        live.away = asyncio.Event()
        task = asyncio.create_task(self._make_anew(live), name=f"take back {live.id}")
        self._under_way.add(task)
        task.add_done_callback(self._ended)
        try:
            await asyncio.shield(task)
        finally:  # who is still here goes on before anybody who waits
            if task.done():
                _release(live)
            else:
                task.add_done_callback(lambda _: _release(live))

    async def _make_anew(self, live: LiveCase) -> None:
        try:
            live.case = beside(await self._reader.before(live), live.case)
        except BaseException as error:
            self._ledger.give_up(f"case {live.id} stands in the middle of an event ({error!r:.200}); {AGAIN}")
            raise

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # the ledger knows of it, also if nobody waits any more


def _release(live: LiveCase) -> None:
    if live.away is not None:
        live.away.set()
        live.away = None
