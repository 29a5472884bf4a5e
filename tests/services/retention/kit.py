"""A store with cases that are nothing but documents, journals and files, and the prune that works on it."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mendflow.core.model.ids import CaseId
from mendflow.core.model.retention import GRACE_MS, PruneRequest, PruneRule, PruneView
from mendflow.services.base.clock import SystemClock
from mendflow.services.base.contracts import FileStore
from mendflow.services.base.events import EventStream
from mendflow.services.base.homes import HomeRegistry
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.membership import SingleServer
from mendflow.services.base.notices import Notices
from mendflow.services.cases.live_case import journal_of
from mendflow.services.retention.assembly import retention_services
from mendflow.services.retention.service import Retention
from mendflow.stores.contract import Append, Put, Store

DAY_MS = 86_400_000
OLD = PruneRule(older_than_ms=10 * DAY_MS)


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Shelf:
    """Cases and files of a store. A file is known by the text that it holds."""

    def __init__(self, store: Store, files: FileStore, folder: Path | None = None, *, quiet: bool = False) -> None:
        self.store = store
        self.files = files
        self.folder = folder
        self.clock = SystemClock()
        self.ledger = Ledger(store, lambda reason: None)
        membership = SingleServer()
        self.homes = HomeRegistry(store, self.ledger, membership)
        self.retention: Retention = retention_services(
            store=store,
            ledger=self.ledger,
            clock=self.clock,
            homes=self.homes,
            file_store=files,
            membership=membership,
            notices=Notices(store, self.ledger, self.clock, EventStream(0)),
            quiet=quiet,
            new_id=lambda: os.urandom(4).hex(),
        )
        self.ledger.start()

    async def close(self) -> None:
        await self.retention.stop()
        await self.ledger.stop()

    async def keep(self, *texts: str) -> None:
        """Store files that nobody has asked for since long ago."""

        async def chunks(text: str) -> AsyncIterator[bytes]:
            yield text.encode()

        for text in texts:
            ref = await self.files.keep("x", chunks(text))
            if self.folder is not None:
                os.utime(self.folder / ref.sha256[:2] / ref.sha256, (1, 1))

    async def case(
        self,
        id: str,
        *,
        files: Iterable[str] = (),
        status: str = "completed",
        days_ago: float = 20,
        cached_from: Iterable[str] = (),
        rerun_of: str = "",
        flow: str = "f",
        **more: Any,
    ) -> None:
        """A case with a job for each file, and one for each case that it took a result from."""
        at = self.clock.now() - int(days_ago * DAY_MS)
        document = {"id": id, "flow": flow, "status": status, "started_at": at, "ended_at": at, **more}
        if rerun_of:
            document["rerun_of"] = rerun_of
        names = [digest_of(text) for text in files]
        entries = [msgspec.json.encode({"at": at, "fact": {"$file": name}}) for name in names] or [b"{}"]
        jobs: list[dict[str, Any]] = [{"id": f"{id}/{n}", "case": id, "state": "completed"} for n in range(len(names))]
        jobs += [
            {"id": f"{id}/{n + 100}", "case": id, "outcome": {"cached_from": f"{other}/0"}}
            for n, other in enumerate(cached_from)
        ]
        await self.put("case", id, document)
        for job in jobs:
            await self.put("job", str(job["id"]), job)
        await self.store.write([Append(journal_of(CaseId(id)), entries, 0)])

    async def put(self, kind: str, id: str, document: object) -> None:
        await self.store.write([Put(kind, id, msgspec.json.encode(document), 0)])

    def hours_pass(self) -> None:
        """Nobody has asked for any file recently."""
        self.clock.catch_up(self.clock.now() + 2 * GRACE_MS)

    async def prune(self, *rules: PruneRule, **more: Any) -> PruneView:
        return await self._run(PruneRequest(rules=list(rules) or [OLD], **more))

    async def prune_named(self, *cases: str) -> PruneView:
        return await self._run(PruneRequest(cases=[CaseId(case) for case in cases]))

    async def _run(self, request: PruneRequest) -> PruneView:
        view = await self.retention.prune(request, who="me")
        while view.state == "running":
            await asyncio.sleep(0.005)
            view = await self.retention.run(view.id)
        assert view.state == "done", view.problem
        return view

    async def cases(self) -> list[str]:
        return [found.id async for found in self.store.scan("case")]

    async def stored(self, texts: Sequence[str]) -> set[str]:
        """Which of these files are there."""
        sizes = await self.files.stored_bytes([digest_of(text) for text in texts])
        return {text for text in texts if digest_of(text) in sizes}

    async def traces(self, case: str) -> list[str]:
        """What is left of a case, but for the note that it was pruned."""
        kinds = [kind for kind in await self.store.kinds() if kind != "pruned"]
        left = [f"{kind} {found.id}" for kind in kinds async for found in self.store.scan(kind, case)]
        return left + ["journal"] * bool(await self.store.length(journal_of(CaseId(case))))
