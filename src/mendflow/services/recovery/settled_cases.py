"""Which cases are settled: what they failed by is nothing that anybody has still to take up.

A case is settled when it has completed after all, or when somebody has cancelled it. And whoever runs a case again has
taken up what it had failed by until then, with the same inputs or with corrected ones: the later case stands for it. If
that fails too, its own failure is the one that counts; so is what the earlier case fails by when it goes on after all.
A case that was cancelled stands for no other; but who runs that one again stands for both. One that only uses the
results of another does not stand for it. Later runs that were pruned are remembered with the cases that they stood
for."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, cast

import msgspec
from msgspec.structs import replace

from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.views import CaseStatus
from mendflow.services.base.cluster import CASE_KIND, LIVE_STATUSES
from mendflow.stores.contract import FieldCondition, Put, Store, WriteConflict

ASKED_AT_ONCE: Final = 500
READ_AT_ONCE: Final = 50  # some of them are large
PRUNED_RUNS_KIND: Final = "pruned-runs"
NEVER: Final[Instant] = -1


class SettledCase(msgspec.Struct, frozen=True):
    """What has settled a case. `run_again_at`: when the last case began that stands for it. `may_reopen`: that is under
    way, and if it is cancelled it stands for nothing. `reopened`: how often it has gone on after it had failed."""

    has_ended: bool = False  # it has completed after all, or was cancelled
    is_live: bool = False  # it goes on: what its loops let fail is left to nobody, unless it fails by that
    run_again_at: Instant = NEVER
    may_reopen: bool = False
    reopened: int = 0


SettledCases = Mapping[CaseId, SettledCase]
NONE_SETTLED: Final[SettledCases] = {}


class PrunedRuns(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Of a case: what stood for it and was pruned. It is named after the case, and goes with it. `last_at`: when the
    last of these began; `cancelled` are those that stood for nothing, but may have been run again."""

    id: CaseId
    last_at: Instant = NEVER
    cancelled: list[CaseId] = []


class PrunedRun(msgspec.Struct, frozen=True):
    """A case that is about to go, and stands for another that stays."""

    id: CaseId
    stands_for: CaseId
    status: str
    started_at: Instant


class _LaterRun(msgspec.Struct):
    id: CaseId
    status: CaseStatus = "running"
    started_at: Instant = 0
    stands_for: CaseId = CaseId("")


class _Case(msgspec.Struct):
    status: CaseStatus = "running"
    reopened: int = 0


_encode = msgspec.json.Encoder().encode
_decode_case = msgspec.json.Decoder(_Case).decode
_decode_run = msgspec.json.Decoder(_LaterRun).decode
_decode_pruned = msgspec.json.Decoder(PrunedRuns).decode


async def settled_cases(store: Store, cases: Collection[CaseId]) -> dict[CaseId, SettledCase]:
    """Those of these cases that are settled or go on, or were run again or reopened at least."""
    found = await _run_again(store, cases)
    for id, case in (await _read_cases(store, cases)).items():
        has_ended, is_live = case.status in ("completed", "cancelled"), case.status in LIVE_STATUSES
        if has_ended or is_live or case.reopened:
            known = found.get(id, SettledCase())
            found[id] = replace(known, has_ended=has_ended, is_live=is_live, reopened=case.reopened)
    return found


async def _run_again(store: Store, cases: Collection[CaseId]) -> dict[CaseId, SettledCase]:
    """Those of these cases that others stand for, also by way of cases that were cancelled."""
    found = dict[CaseId, SettledCase]()
    origins = {case: {case} for case in cases}  # of a case: those of the asked ones that its later runs stand for
    asked = list(cases)
    while asked:
        cancelled = dict[CaseId, None]()
        for run in await _runs_standing_for(store, asked):
            stood_for = origins.get(run.stands_for, set())
            if run.status != "cancelled":
                for case in stood_for:
                    found[case] = _latest(found.get(case), run)
            elif not stood_for <= origins.get(run.id, set()):
                origins.setdefault(run.id, set()).update(stood_for)
                cancelled[run.id] = None
        asked = list(cancelled)
    return found


def _latest(known: SettledCase | None, run: _LaterRun) -> SettledCase:
    if known is not None and known.run_again_at >= run.started_at:
        return known
    return SettledCase(run_again_at=run.started_at, may_reopen=run.status in LIVE_STATUSES)


async def _runs_standing_for(store: Store, cases: Sequence[CaseId]) -> list[_LaterRun]:
    runs = list[_LaterRun]()
    for some in _in_parts(cases):
        where, last = [FieldCondition("stands_for", some, "in")], None
        while page := await store.search(CASE_KIND, where, limit=ASKED_AT_ONCE, after=last):
            runs += (_decode_run(each.body) for each in page)
            if len(page) < ASKED_AT_ONCE:
                break
            last = page[-1]
        for found in await store.get_many(PRUNED_RUNS_KIND, some):
            runs += _as_runs(_decode_pruned(found.body))
    return runs


def _as_runs(pruned: PrunedRuns) -> Iterable[_LaterRun]:
    if pruned.last_at != NEVER:
        yield _LaterRun(CaseId(""), "completed", pruned.last_at, pruned.id)
    for id in pruned.cancelled:
        yield _LaterRun(id, "cancelled", stands_for=pruned.id)


async def failed_cases(store: Store, cases: Collection[CaseId]) -> set[CaseId]:
    """Those of these cases that have failed."""
    found = set[CaseId]()
    for some in _in_parts(sorted(cases)):
        found.update(CaseId(id) for id, status in (await store.statuses(CASE_KIND, some)).items() if status == "failed")
    return found


async def _read_cases(store: Store, cases: Collection[CaseId]) -> dict[CaseId, _Case]:
    """What became of these. Of those that have completed or were cancelled the status is enough; of the others their
    documents say how often they were reopened, and some of these are large."""
    found = dict[CaseId, _Case]()
    for some in _in_parts(sorted(cases)):
        statuses = await store.statuses(CASE_KIND, some)
        found |= {CaseId(id): _Case(status=cast(CaseStatus, status)) for id, status in statuses.items()}
    others = [id for id, case in found.items() if case.status not in ("completed", "cancelled")]
    for at in range(0, len(others), READ_AT_ONCE):
        for each in await store.get_many(CASE_KIND, others[at : at + READ_AT_ONCE]):
            found[CaseId(each.id)] = _decode_case(each.body)
    return found


def _in_parts(cases: Sequence[CaseId]) -> Iterable[list[CaseId]]:
    return ([*cases[at : at + ASKED_AT_ONCE]] for at in range(0, len(cases), ASKED_AT_ONCE))


async def remember_pruned(store: Store, runs: Collection[PrunedRun]) -> None:
    """Write, before these go, what the cases have to know that they stand for: whoever ran those again has taken up
    what they failed by, whether that is still there or not. Only one prune runs at a time."""
    before = await _pruned_runs(store, [run.id for run in runs])
    known = await _pruned_runs(store, {run.stands_for for run in runs})
    for run in runs:
        after, version = known.get(run.stands_for, (PrunedRuns(id=run.stands_for), 0))
        if run.status != "cancelled":
            after.last_at = max(after.last_at, run.started_at)
        else:
            through, _ = before.get(run.id, (PrunedRuns(id=run.id), 0))
            after.last_at = max(after.last_at, through.last_at)
            after.cancelled = list(dict.fromkeys((*after.cancelled, run.id, *through.cancelled)))
        known[run.stands_for] = after, version
    wanted = [Put(PRUNED_RUNS_KIND, id, _encode(after), version) for id, (after, version) in known.items()]
    for at in range(0, len(wanted), ASKED_AT_ONCE):
        made = await store.write(wanted[at : at + ASKED_AT_ONCE])
        assert not any(isinstance(each, WriteConflict) for each in made), "two prunes at a time"


async def _pruned_runs(store: Store, cases: Collection[CaseId]) -> dict[CaseId, tuple[PrunedRuns, int]]:
    found = dict[CaseId, tuple[PrunedRuns, int]]()
    for some in _in_parts(sorted(cases)):
        for each in await store.get_many(PRUNED_RUNS_KIND, some):
            found[CaseId(each.id)] = _decode_pruned(each.body), each.version
    return found
