"""What is left of a case that was pruned: a small document, which says when, by whom and why.

It is written before anything of the case goes, with the names of its journals and files. So a prune that was killed is
finished by the next one, whichever server that runs on."""

from collections.abc import AsyncIterator, Sequence
from typing import Final, Literal

import msgspec

from mendflow.core.model.errors import Conflict
from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.principals import DEFAULT_PROJECT
from mendflow.core.scheduling.amounts import moment
from mendflow.services.base.cluster import CASE_KIND, first_case_of
from mendflow.stores.contract import Delete, FieldCondition, Put, Store, Write, WriteConflict

PRUNED_KIND: Final = "pruned"
RUN_KIND: Final = "prune-run"
KEPT_MS: Final = 366 * 24 * 3_600_000
WRITTEN_TOGETHER: Final = 1_000


class PrunedDocument(msgspec.Struct, kw_only=True):
    """`stands_for` is the case whose failures it had taken up. `state` is removing until all documents and journals are
    gone, sweeping while files may be left, then gone."""

    id: CaseId
    flow: str
    status: str
    started_at: Instant
    ended_at: Instant
    pruned_at: Instant
    by: str = ""
    project: str = DEFAULT_PROJECT
    reason: str = ""
    stands_for: CaseId | None = None
    state: Literal["removing", "sweeping", "gone"] = "removing"
    cases: list[CaseId] = []
    files: list[str] = []

    def sentence(self) -> str:
        by = f" by {self.by}" if self.by else ""
        why = f", because {self.reason}" if self.reason else ""
        return (
            f"case {self.id} of flow {self.flow} was pruned{by} on {moment(self.pruned_at)}{why};"
            f" it was {self.status} since {moment(self.ended_at)}"
        )


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(PrunedDocument).decode


class PrunedCases:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def find(self, case: CaseId) -> PrunedDocument | None:
        """What is left of a case, or of the case that called it."""
        found = await self._store.get(PRUNED_KIND, first_case_of(case))
        return _decode(found.body) if found is not None else None

    async def unfinished(self) -> list[PrunedDocument]:
        """Those of which something may be left."""
        await self._store.refresh()
        return [each async for each in self._with_states(("removing", "sweeping"))]

    async def _with_states(self, states: Sequence[str]) -> AsyncIterator[PrunedDocument]:
        after, where = None, [FieldCondition("state", list(states), "in")]
        while page := await self._store.search(PRUNED_KIND, where, limit=WRITTEN_TOGETHER, after=after):
            after = page[-1]
            for found in page:
                yield _decode(found.body)

    async def put(self, documents: Sequence[PrunedDocument]) -> None:
        """Write these, whatever is there: only one prune runs at a time. Raises Conflict if another does."""
        for start in range(0, len(documents), WRITTEN_TOGETHER):
            some = documents[start : start + WRITTEN_TOGETHER]
            known = {each.id: each.version for each in await self._store.get_many(PRUNED_KIND, [e.id for e in some])}
            made = await self._store.write([Put(PRUNED_KIND, e.id, _encode(e), known.get(e.id, 0)) for e in some])
            if refused := [each.id for each in made if isinstance(each, WriteConflict)]:
                raise Conflict(f"another server prunes case {refused[0]} at the same time")

    async def withdraw(self, case: CaseId) -> None:
        """The case stays after all."""
        found = await self._store.get(PRUNED_KIND, case)
        if found is not None:
            await self._store.write([Delete(PRUNED_KIND, case, found.version)])

    async def forget_old(self, now: Instant) -> None:
        old: list[Write] = []
        async for found in self._store.scan(PRUNED_KIND):
            document = _decode(found.body)
            is_old = document.state == "gone" and document.pruned_at < now - KEPT_MS
            if is_old and not await self._leads_to_a_case(document):
                old.append(Delete(PRUNED_KIND, found.id, found.version))
        for start in range(0, len(old), WRITTEN_TOGETHER):
            await self._store.write(old[start : start + WRITTEN_TOGETHER])

    async def _leads_to_a_case(self, note: PrunedDocument) -> bool:
        """Whether this run was cancelled, and a case is still there that it was run in place of, at once or by way of
        others that were cancelled: who has run this one again has taken up that case, and only this note tells so."""
        passed, run = set[CaseId](), note
        while run.status == "cancelled" and run.stands_for is not None and run.id not in passed:
            if await self._store.get(CASE_KIND, run.stands_for) is not None:
                return True
            passed.add(run.id)
            earlier = await self.find(run.stands_for)
            if earlier is None:
                return False
            run = earlier
        return False
