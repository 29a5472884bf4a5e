"""Which cases have failed, and when others began that stand in their place.

Whoever runs a case again has taken up what it had failed by until then, with the same inputs or with corrected ones:
the later case stands for it. If that fails too, its own failure is the one that counts; so is what the earlier case
fails by when it goes on after all. A case that was cancelled stands for no other, and one that only uses the results of
another does not either."""

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from mendflow.core.model.ids import CaseId, Instant
from mendflow.services.base.cluster import CASE_KIND
from mendflow.stores.contract import FieldCondition, Store

ASKED_AT_ONCE: Final = 500
NOT_CANCELLED: Final = FieldCondition("status", "cancelled", "ne")

LaterStarts = Mapping[CaseId, Instant]
"""Of cases that were run again: when the last case began that stands for each."""


class _LaterRun(msgspec.Struct):
    id: CaseId
    status: str = "running"
    started_at: Instant = 0
    ended_at: Instant = 0
    stands_for: CaseId = CaseId("")


class _Ended(msgspec.Struct):
    id: CaseId
    status: str = "running"


_decode_run = msgspec.json.Decoder(_LaterRun).decode
_decode_ended = msgspec.json.Decoder(_Ended).decode


async def starts_of_later_runs(store: Store, cases: Collection[CaseId]) -> dict[CaseId, Instant]:
    """When the last case began, or now runs, that stands for each of these; without those that none stands for."""
    ids, found = sorted(cases), dict[CaseId, Instant]()
    for at in range(0, len(ids), ASKED_AT_ONCE):
        for run in await runs_that_stand_for(store, ids[at : at + ASKED_AT_ONCE]):
            found[run.stands_for] = max(run.started_at, found.get(run.stands_for, 0))
    return found


async def runs_that_stand_for(store: Store, cases: Collection[CaseId]) -> list[_LaterRun]:
    """The cases that were run in place of these, without those that were cancelled."""
    where, runs, last = [FieldCondition("stands_for", [*cases], "in"), NOT_CANCELLED], list[_LaterRun](), None
    while page := await store.search(CASE_KIND, where, limit=ASKED_AT_ONCE, after=last):
        runs += (_decode_run(each.body) for each in page)
        if len(page) < ASKED_AT_ONCE:
            break
        last = page[-1]
    return runs


async def failed_cases(store: Store, cases: Collection[CaseId]) -> set[CaseId]:
    """Those of these cases that have failed."""
    ids, found = sorted(cases), set[CaseId]()
    for at in range(0, len(ids), ASKED_AT_ONCE):
        ended = [_decode_ended(each.body) for each in await store.get_many(CASE_KIND, ids[at : at + ASKED_AT_ONCE])]
        found |= {each.id for each in ended if each.status == "failed"}
    return found
