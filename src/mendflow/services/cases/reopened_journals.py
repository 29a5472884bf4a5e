"""The journal of a case that was reopened: what counts no more is left out, from its first entry on."""

import asyncio

import msgspec

from mendflow.core.engine import Case
from mendflow.core.engine.messages import CaseReopened, Event
from mendflow.core.engine.reopening import play
from mendflow.core.model.ids import CaseId
from mendflow.services.cases.live_case import journal_of
from mendflow.stores.contract import Store

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
