"""Reads journals: applies the entries that memory does not have yet. In a case that was reopened, the failures that no
longer count are left out."""

import asyncio
from contextlib import nullcontext
from typing import Final

import msgspec

from mendflow.core.engine import Case, evolve, snapshot
from mendflow.core.engine.messages import CaseMoved, CaseReopened, Event
from mendflow.core.engine.reopening import play
from mendflow.core.expressions.work_budget import LongWork
from mendflow.core.model.ids import CaseId
from mendflow.services.base.contracts import Clock
from mendflow.services.cases.live_case import LiveCase, journal_of
from mendflow.services.cases.long_steps import LongSteps
from mendflow.stores.contract import Store

BREATH_EVERY_WORK: Final = 30_000
"""How much work, as the engine's meter counts it, is replayed before other tasks get a turn."""

PAGE: Final = 2_000

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


async def catch_up(store: Store, clock: Clock, live: LiveCase, long_steps: LongSteps | None = None) -> bool:
    """Apply the journal entries that memory does not have yet; true if another server has taken the case meanwhile.
    With `long_steps`, what turns out to be long is done aside."""
    moved = False
    while entries := await store.read(journal_of(live.id), live.position, PAGE):
        events = [_decode(entry) for entry in entries]
        moved |= any(isinstance(event.fact, CaseMoved) for event in events)
        if long_steps is None or any(isinstance(event.fact, CaseReopened) for event in events):
            await _apply(store, live, events)
        else:
            before = snapshot(live.case) if live.position else b""
            try:
                await _apply(store, live, events, long_steps)
            except LongWork:
                live.case = await long_steps.replay(before, entries)
        live.position += len(entries)
        clock.catch_up(events[-1].at)
    return moved


async def _apply(store: Store, live: LiveCase, events: list[Event], long_steps: LongSteps | None = None) -> None:
    work = 0
    for event in events:
        if isinstance(event.fact, CaseReopened):
            live.case = await before_reopening(store, live.id, live.case.position, event.fact)
        with long_steps.interrupting(live.case) if long_steps is not None else nullcontext():
            evolve(live.case, event)
        work += live.case.meter.work
        live.work += live.case.meter.work
        if work >= BREATH_EVERY_WORK:
            work = 0
            await asyncio.sleep(0)
