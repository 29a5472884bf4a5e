"""Cases that were about to begin when their server died, and whether they did.

A server that was paused may still write the first document and the first journal entry of a case that others found not
begun. So the name of the case is not given up before this is settled: either the case has begun, or its document says
for good that it never did, and the journal has no place left for a first entry. A server that wakes up then is refused,
and has told nobody."""

import msgspec

from mendflow.core.engine.messages import CaseMoved, Event, StartCase
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId, Instant
from mendflow.services.base.cluster import CASE_KIND
from mendflow.services.base.contracts import Clock
from mendflow.services.cases.live_case import CaseDocument, journal_of
from mendflow.stores.contract import Append, Put, Store, WriteDone

CASE_NEVER_BEGAN = "neverBegan"
_SENTENCE = "it never began: its server was lost before anybody was told that it would; start it again"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(CaseDocument).decode
_decode_event = msgspec.json.Decoder(Event).decode


async def has_begun(store: Store, case: CaseId) -> bool:
    """Whether the journal says so. The document alone does not: it may exist without the first entry."""
    entries = await store.read(journal_of(case), 0, 1)
    return bool(entries) and isinstance(_decode_event(entries[0]).fact, StartCase)


async def settle(store: Store, clock: Clock, server: str, case: CaseId) -> bool:
    """Make sure that a case of our own home has begun, or never will; returns whether it has."""
    while True:
        document, version = CaseDocument(id=case, flow=case.rpartition("-")[0], digest=""), 0
        found = await store.get(CASE_KIND, case)
        if found is not None:
            document, version = _decode(found.body), found.version
            if not document.live:
                return not document.void
        # The first entry may still be on its way. If this one is refused, that one has arrived.
        await store.write([Append(journal_of(case), [_encode(Event(clock.now(), CaseMoved(server=server)))], 0)])
        if found is not None and await has_begun(store, case):
            return True
        [result] = await store.write([Put(CASE_KIND, case, _encode(_voided(document, clock.now())), version)])
        if isinstance(result, WriteDone):
            return False


def _voided(document: CaseDocument, now: Instant) -> CaseDocument:
    """It keeps its name, so that no other case gets it, and loses its key, so that nobody finds it by that."""
    fault = Fault(name=CASE_NEVER_BEGAN, category=Category.CANCELLED, message=_SENTENCE)
    return msgspec.structs.replace(
        document,
        status="cancelled",
        started_at=document.started_at or now,
        ended_at=now,
        fault=fault,
        key="",
        notify="",
        void=True,
    )
