"""Reads journals: applies the entries that memory does not have yet. In a case that was reopened, the failures that no
longer count are left out."""

import asyncio

import msgspec

from mendflow.core.engine import Case, evolve
from mendflow.core.engine.messages import CaseMoved, CaseReopened, Event
from mendflow.core.engine.reopening import play
from mendflow.core.model.ids import CaseId
from mendflow.services.base.contracts import Clock
from mendflow.services.cases.live_case import LiveCase, journal_of
from mendflow.stores.contract import Store

BREATH_EVERY_WORK = 200_000
"""How much work on XML, as the engine's meter counts it, is replayed before other tasks get a turn."""

_decode = msgspec.json.Decoder(Event).decode


async def before_reopening(store: Store, case: CaseId, position: int, fact: CaseReopened) -> Case:
    """The case without the failures that count no more. It was reopened at this place of its journal."""
    entries: list[Event] = []
    while len(entries) < position and (
        page := await store.read(journal_of(case), len(entries), position - len(entries))
    ):
        entries += map(_decode, page)
        await asyncio.sleep(0)
    return play(entries, set(fact.void))


async def catch_up(store: Store, clock: Clock, live: LiveCase) -> bool:
    """Apply the journal entries that memory does not have yet; true if another server has taken the case meanwhile."""
    moved, work = False, 0
    while entries := await store.read(journal_of(live.id), live.position):
        for entry in entries:
            event = _decode(entry)
            if isinstance(event.fact, CaseReopened):
                live.case = await before_reopening(store, live.id, live.case.position, event.fact)
            evolve(live.case, event)
            moved |= isinstance(event.fact, CaseMoved)
            work += live.case.meter.work
            live.work += live.case.meter.work
            if work >= BREATH_EVERY_WORK:
                work = 0
                await asyncio.sleep(0)
        live.position += len(entries)
        clock.catch_up(event.at)
    return moved
