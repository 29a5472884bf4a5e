"""Named limits in the store: one document each, with everyone who uses the limit in it.

So a limit is never exceeded, whatever server dies when: a job is granted only after its hold was written, by
compare-and-set on the document in which all other holds stand. And there is no counter that could drift: what is in use
is the sum of the holds, each of which names its job."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from mendflow.core.model.errors import Conflict, NotFound
from mendflow.core.model.ids import Instant, JobId
from mendflow.core.model.named_limits import LimitDemand, LimitDocument
from mendflow.core.scheduling.limit_decisions import (
    Grantor,
    HoldRequest,
    decide_holds,
    with_demand,
    without_hold,
)
from mendflow.services.base.contracts import TRIES
from mendflow.services.base.ledger import Ledger
from mendflow.stores.contract import Store

LIMIT_KIND: Final = "limit"
_decode = msgspec.json.Decoder(LimitDocument).decode

Changer = Callable[[LimitDocument], LimitDocument]


class LimitStore:
    """`documents` are the limits as they were last read or written here."""

    def __init__(self, store: Store, ledger: Ledger) -> None:
        self._store = store
        self._ledger = ledger
        self.documents: dict[str, LimitDocument] = {}
        self._versions: dict[str, int] = {}

    async def read_all(self) -> None:
        found = {each.id: each async for each in self._store.scan(LIMIT_KIND)}
        self.documents = {name: _decode(each.body) for name, each in sorted(found.items())}
        self._versions = {name: each.version for name, each in found.items()}

    async def read(self, names: Iterable[str]) -> None:
        """Read these anew."""
        wanted = sorted(set(names))
        found = {each.id: each for each in await self._store.get_many(LIMIT_KIND, wanted)}
        for name in wanted:
            if name in found:
                self._note(name, _decode(found[name].body), found[name].version)
            else:
                self._forget(name)

    async def take(self, wanted: Sequence[HoldRequest], grantor: Grantor, now: Instant) -> frozenset[JobId]:
        """Let these jobs hold what they use, as far as it is free; those that may start."""
        names = {name for request in wanted for name, _ in request.named}
        for _ in range(TRIES):
            documents = {name: self._of(name) for name in names}
            decision = decide_holds(documents, wanted, grantor, now=now)
            if await self._write(decision.changed):
                return decision.granted
        return await self._take_none(wanted, now)

    async def _take_none(self, wanted: Sequence[HoldRequest], now: Instant) -> frozenset[JobId]:
        """Others change the same limits all the time: nothing is taken, and nothing may stay behind."""
        for request in wanted:
            await self.give_back(request.job, request.fence, [name for name, _ in request.named], now)
        return frozenset()

    async def give_back(self, job: JobId, fence: int, names: Iterable[str], now: Instant) -> None:
        """The job's attempt under this fence, or an earlier one, uses these limits no longer."""
        await self.read(names)
        for name in names:
            await self.change(name, lambda document: without_hold(document, job, fence, now=now))

    async def say_demand(self, server: str, demands: Mapping[str, LimitDemand | None], now: Instant) -> None:
        for name, demand in demands.items():

            def changed(document: LimitDocument, demand: LimitDemand | None = demand) -> LimitDocument:
                return with_demand(document, server, demand, now=now)

            await self.change(name, changed)

    async def change(self, name: str, new: Changer) -> LimitDocument:
        """Change a limit, from whatever it is by now."""
        for _ in range(TRIES * TRIES):
            before = self._of(name)
            after = new(before)
            if after is before or await self._write({name: after}):
                return after
        raise Conflict(f"limit {name} is changed by several at once, again and again; try again")

    async def get(self, name: str) -> LimitDocument:
        await self.read([name])
        if name not in self.documents:
            raise NotFound(f"there is no limit {name!r:.100}; `mendflow limits` lists them")
        return self.documents[name]

    def _of(self, name: str) -> LimitDocument:
        return self.documents.get(name) or LimitDocument(name=name)

    async def _write(self, changed: Mapping[str, LimitDocument]) -> bool:
        """Write these; those that another server has changed are read again. Whether all were written."""
        if not changed:
            return True
        names = list(changed)
        writes = [
            (name, None if changed[name].is_empty else changed[name], self._versions.get(name, 0))
            for name in names
            if not (changed[name].is_empty and name not in self._versions)
        ]
        versions = await self._ledger.put_all_now(LIMIT_KIND, writes)
        refused = []
        for (name, document, _), version in zip(writes, versions, strict=True):
            if version is None:
                refused.append(name)
            elif document is None:
                self._forget(name)
            else:
                self._note(name, changed[name], version)
        if refused:
            await self.read(refused)
        return not refused

    def _note(self, name: str, document: LimitDocument, version: int) -> None:
        self.documents[name] = document
        self._versions[name] = version

    def _forget(self, name: str) -> None:
        self.documents.pop(name, None)
        self._versions.pop(name, None)
