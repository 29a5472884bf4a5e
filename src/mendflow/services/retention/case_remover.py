"""Removes groups that are over: documents, results in the cache, alerts and journals.

The home of each is claimed first, so nobody reopens it meanwhile. Then it is noted as pruned, with all that has to go.
Then its first case goes, at the version that was read: from then on there is no such case, and whatever is left is
removed by whoever finds the note."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from mendflow.core.model.ids import CaseId
from mendflow.services.base.alerts import ALERT_KIND
from mendflow.services.base.cluster import CASE_KIND, LIVE_STATUSES, first_case_of, root_of
from mendflow.services.base.homes import HomeRegistry
from mendflow.services.base.ledger import RESULT_KIND, Ledger
from mendflow.services.cases.live_case import journal_of
from mendflow.services.recovery.settled_cases import PRUNED_RUNS_KIND, PrunedRun, remember_pruned
from mendflow.services.retention.pruned_cases import PrunedCases, PrunedDocument
from mendflow.services.retention.references import IMPORTED_KIND, CaseGroupContents, ReferenceReader
from mendflow.stores.contract import Delete, FieldCondition, RemoveStream, Store, Write, WriteConflict, WriteDone

PRUNING: Final = "prune"
TOGETHER: Final = 1_000
WRITES_TOGETHER: Final = 1_000
"""So many that SQLite writes them in its thread, and nobody waits for that."""
STILL_HELD: Final = "something of it is still under way"


class _Result(msgspec.Struct):
    job: str = ""


class _Status(msgspec.Struct):
    status: str
    posted: bool = False


_decode_result = msgspec.json.Decoder(_Result).decode
_decode_status = msgspec.json.Decoder(_Status).decode


class CaseRemover:
    def __init__(
        self, store: Store, ledger: Ledger, homes: HomeRegistry, notes: PrunedCases, reader: ReferenceReader
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._homes = homes
        self._notes = notes
        self._reader = reader

    async def remove(
        self, going: Sequence[PrunedDocument], contents: Mapping[CaseId, CaseGroupContents]
    ) -> list[PrunedDocument]:
        """Remove these groups; returns those that went. One that somebody uses, or that has changed since its contents
        were read, stays."""
        held = [each for each, ours in zip(going, await self._claim(going), strict=True) if ours]
        try:
            await self._ledger.settled()
            unchanged = await self._unchanged(held, contents)
            await self._notes.put(unchanged)
            await self._remember_runs(unchanged)
            gone = await self._remove_roots(unchanged, contents)
            await self._remove_rest(gone, contents)
            return gone
        finally:
            self._release(held)

    async def _remember_runs(self, going: Sequence[PrunedDocument]) -> None:
        """The cases that stay remember which of those that go stood for them, at once or by way of others that go, or
        have gone, and were cancelled."""
        runs = [(each, await self._stays_behind(each, {one.id: one for one in going})) for each in going]
        await remember_pruned(
            self._store,
            [PrunedRun(each.id, case, each.status, each.started_at) for each, case in runs if case is not None],
        )

    async def _stays_behind(self, run: PrunedDocument, going: Mapping[CaseId, PrunedDocument]) -> CaseId | None:
        """The case that stays, of those that this one stands for; none where another run stands between the two."""
        passed, case = {run.id}, run.stands_for
        while case is not None and case not in passed:
            gone = going.get(case)
            if gone is None and await self._store.get(CASE_KIND, case) is not None:
                return case
            gone = gone or await self._notes.find(case)
            passed.add(case)
            case = gone.stands_for if gone is not None and gone.status == "cancelled" else None
        return None

    async def is_whole(self, note: PrunedDocument) -> bool:
        """Whether nothing is removed yet of a group that is noted to go: its first case goes first."""
        await self._ledger.settled()
        return await self._store.get(CASE_KIND, note.id) is not None

    async def finish(self, note: PrunedDocument) -> bool:
        """Remove what is left of a group whose first case is gone; false if somebody holds it."""
        if not all(await self._claim([note])):
            return False
        try:
            await self._remove_rest([note], {note.id: await self._reader.remaining_contents(note.id)})
            return True
        finally:
            self._release([note])

    async def _claim(self, going: Sequence[PrunedDocument]) -> list[bool]:
        """Hold the trees. A group that a message has begun shares its tree with others, and cannot be reopened."""
        return list(await asyncio.gather(*(self._claim_one(each.id) for each in going)))

    async def _claim_one(self, group: CaseId) -> bool:
        return root_of(group) != group or await self._homes.claim(group, PRUNING)

    def _release(self, held: Sequence[PrunedDocument]) -> None:
        for each in held:
            if root_of(each.id) == each.id:
                self._homes.release(each.id, PRUNING)

    async def _unchanged(
        self, going: Sequence[PrunedDocument], contents: Mapping[CaseId, CaseGroupContents]
    ) -> list[PrunedDocument]:
        found = {each.id: each for each in await self._store.get_many(CASE_KIND, [each.id for each in going])}
        return [
            each
            for each in going
            if each.id in found
            and found[each.id].version == _root_version(each.id, contents)
            and not is_live(found[each.id].body)
        ]

    async def _remove_roots(
        self, going: Sequence[PrunedDocument], contents: Mapping[CaseId, CaseGroupContents]
    ) -> list[PrunedDocument]:
        made = await self._store.write([Delete(CASE_KIND, each.id, _root_version(each.id, contents)) for each in going])
        gone: list[PrunedDocument] = []
        for each, result in zip(going, made, strict=True):
            if isinstance(result, WriteDone):
                gone.append(each)
            else:
                await self._notes.withdraw(each.id)
        return gone

    async def _remove_rest(self, gone: Sequence[PrunedDocument], contents: Mapping[CaseId, CaseGroupContents]) -> None:
        writes: list[Write] = []
        writes += await self._results(gone, contents)
        for each in gone:
            writes += [
                Delete(kind, id, version)
                for kind, id, version in contents[each.id].documents
                if (kind, id) != (CASE_KIND, each.id)
            ]
            writes += [RemoveStream(journal_of(case)) for case in each.cases]
        writes += await self._alerts(gone)
        writes += [
            Delete(found.kind, found.id, found.version)
            for kind in (IMPORTED_KIND, PRUNED_RUNS_KIND)
            for found in await self._store.get_many(kind, [each.id for each in gone])
        ]
        for start in range(0, len(writes), WRITES_TOGETHER):
            await self._write(writes[start : start + WRITES_TOGETHER])
        for each in gone:
            each.state = "sweeping"
        await self._notes.put(gone)

    async def _write(self, writes: Sequence[Write]) -> None:
        """What was changed since it was read goes all the same: it belongs to a case that is gone."""
        todo = list(writes)
        while todo:
            refused = [each for each in await self._store.write(todo) if isinstance(each, WriteConflict)]
            todo = [Delete(each.kind, each.id, each.actual) for each in refused if each.actual]

    async def _results(
        self, gone: Sequence[PrunedDocument], contents: Mapping[CaseId, CaseGroupContents]
    ) -> list[Write]:
        ids = {each.id for each in gone}
        keys = list(dict.fromkeys(key for each in gone for key in contents[each.id].results))
        return [
            Delete(RESULT_KIND, found.id, found.version)
            for found in await self._store.get_many(RESULT_KIND, keys)
            if first_case_of(_decode_result(found.body).job) in ids
        ]

    async def _alerts(self, gone: Sequence[PrunedDocument]) -> list[Write]:
        where = [FieldCondition("case", [case for each in gone for case in (each.cases or [each.id])], "in")]
        writes, last = list[Write](), None
        while page := await self._store.search(ALERT_KIND, where, limit=TOGETHER, after=last):
            last = page[-1]
            writes += [Delete(ALERT_KIND, each.id, each.version) for each in page]
        return writes


def _root_version(group: CaseId, contents: Mapping[CaseId, CaseGroupContents]) -> int:
    documents = contents[group].documents
    return next((version for kind, id, version in documents if kind == CASE_KIND and id == group), 0)


def is_live(body: bytes) -> bool:
    status = _decode_status(body)
    return status.status in LIVE_STATUSES or status.posted
