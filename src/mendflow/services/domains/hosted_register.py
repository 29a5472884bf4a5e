"""The pieces of work that a host has taken: their documents, and what is in memory of those that are not over."""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from mendflow.core.model.domains import WorkStatus
from mendflow.core.model.ids import CaseId, Instant, JobId
from mendflow.services.base.contracts import TRIES
from mendflow.services.base.ledger import Ledger
from mendflow.services.domains.work_documents import HOSTED_KIND, HostedDocument, hosted_id_of
from mendflow.stores.contract import Store

AT_ONCE: Final = 500

_decode = msgspec.json.Decoder(HostedDocument).decode
NO_WORKS: Final[dict[str, "HostedWork"]] = {}


class HostedWork:
    """A piece of work in memory. `told` is the serial of the first request whose answer has had its status; work that
    was stopped counts as ended from `quiet_at` on, when no pilot can still be at it. `applied` is what was last done to
    its case because its origin wanted it; empty: unknown. `job` is its only job, if it is a single one and has begun
    here; why that waits was last looked at at `explained_ms`."""

    __slots__ = ("applied", "case", "document", "explained_ms", "job", "quiet_at", "status", "told", "version")

    def __init__(self, document: HostedDocument, version: int) -> None:
        self.document = document
        self.version = version
        self.case = CaseId("")
        self.status = WorkStatus(key=document.key, fence=document.fence, state="unknown")
        self.told = 0
        self.quiet_at = 0
        self.applied = ""
        self.job = JobId("")
        self.explained_ms: int | None = None

    @property
    def sender(self) -> tuple[str, str]:
        """The server of the origin that claims it."""
        return self.document.origin, self.document.sender


class HostedRegister:
    """`shared`: other servers are on the store, so documents may change behind us."""

    def __init__(self, store: Store, ledger: Ledger, *, shared: bool) -> None:
        self._store = store
        self._ledger = ledger
        self._shared = shared
        self.works: dict[str, HostedWork] = {}
        self.taking: set[str] = set()  # what is being taken at this moment
        self.by_case: dict[CaseId, HostedWork] = {}
        self._by_sender: dict[tuple[str, str], dict[str, HostedWork]] = {}
        self._scanning = asyncio.Lock()
        self._next_scan: asyncio.Task[None] | None = None
        self._files = Counter[tuple[str, str]]()  # by origin and digest: how many works have the file

    def claimed_by(self, sender: tuple[str, str]) -> list[HostedWork]:
        return list(self._by_sender.get(sender, NO_WORKS).values())

    def senders(self) -> list[tuple[str, str]]:
        return list(self._by_sender)

    def count(self, origin: str) -> int:
        return sum(len(works) for (of, _), works in self._by_sender.items() if of == origin)

    def bytes_of(self, origin: str) -> int:
        """How large the files are that a domain has here."""
        return sum(work.document.bytes for work in self.works.values() if work.document.origin == origin)

    def came_with(self, origin: str, digest: str) -> bool:
        """Whether a domain has brought this file with work that is here."""
        return self._files[(origin, digest)] > 0

    async def read(self, ids: Collection[str]) -> dict[str, HostedWork]:
        """These pieces of work, as far as they were ever taken; those that are over stay out of memory."""
        found = {id: work for id in ids if (work := self.works.get(id)) is not None}
        wanted = list(ids) if self._shared else [id for id in ids if id not in found]
        for start in range(0, len(wanted), AT_ONCE):
            for stored in await self._store.get_many(HOSTED_KIND, wanted[start : start + AT_ONCE]):
                known = found.get(stored.id)
                if known is None or known.version != stored.version:
                    found[stored.id] = self.know(_decode(stored.body), stored.version)
        return found

    async def read_all(self) -> list[HostedWork]:
        """Everything that is not over."""
        found = []
        async for stored in self._store.scan(HOSTED_KIND):
            known = self.works.get(stored.id)
            if known is None or known.version != stored.version:
                known = self.know(_decode(stored.body), stored.version)
            found.append(known)
        return [work for work in found if not work.document.over]

    async def files_sent(self, case_key: str) -> tuple[str, ...]:
        """The digests of the files that came with the work whose case has this key."""
        found = await self.read([hosted_id_of(case_key)])
        return next((work.document.files for work in found.values() if work.document.case_key == case_key), ())

    def know(self, document: HostedDocument, version: int) -> HostedWork:
        work = self.works.get(document.id)
        if work is None or work.document.fence != document.fence:
            work = HostedWork(document, version)
        self._set(work, document, version)
        return work

    def _set(self, work: HostedWork, document: HostedDocument, version: int) -> None:
        """What was written or read counts, unless something newer is known by now: answers of the store may overtake
        one another."""
        if version < work.version:
            return
        self._forget(document.id)
        work.document, work.version = document, version
        if not document.over:
            self.works[document.id] = work
            self._by_sender.setdefault(work.sender, {})[document.id] = work
            self._files.update((document.origin, digest) for digest in document.files)

    def _forget(self, id: str) -> None:
        """It is not here, or what was known of it is no longer so."""
        before = self.works.pop(id, None)
        if before is not None:
            self._files -= Counter((before.document.origin, digest) for digest in before.document.files)
            self._by_sender.get(before.sender, {}).pop(id, None)
            if not self._by_sender.get(before.sender, True):
                del self._by_sender[before.sender]

    def attach(self, work: HostedWork, case: CaseId) -> None:
        work.case = case
        self.by_case[case] = work

    def detach(self, work: HostedWork) -> None:
        """Its case is over, and nobody wants to know any more."""
        if self.by_case.get(work.case) is work:
            del self.by_case[work.case]

    async def add(self, document: HostedDocument, version: int) -> HostedWork | None:
        """Store a piece of work that is taken; None if another server was faster. If an earlier write of ours happened
        after all, although nobody heard of it, that one counts."""
        written = await self._ledger.put_now(HOSTED_KIND, document.id, document, version)
        if written is not None:
            return self.know(document, written)
        stored = await self._store.get(HOSTED_KIND, document.id)
        if stored is None:
            return None
        known = self.know(_decode(stored.body), stored.version)
        is_ours = (known.document.fence, known.document.sender) == (document.fence, document.sender)
        return known if is_ours and not known.document.over else None

    async def read_all_anew(self) -> None:
        """Read all documents, from a moment after this call on. Those who ask at the same time wait for one scan."""
        if self._next_scan is None:
            self._next_scan = asyncio.get_running_loop().create_task(self._scan_next())
        await asyncio.shield(self._next_scan)

    async def _scan_next(self) -> None:
        async with self._scanning:
            self._next_scan = None  # whoever asks from here on may have written something that this scan does not see
            await self.read_all()

    async def undo_add(self, work: HostedWork, before: HostedDocument | None) -> None:
        """Work that was added was not taken after all: what was there before is there again."""
        version = await self._ledger.put_now(HOSTED_KIND, work.document.id, before, work.version)
        if version is None:
            return  # another server has changed it meanwhile, and sees to it
        if before is not None:
            self.know(before, version)
        else:
            self._forget(work.document.id)

    async def change(self, work: HostedWork, **changes: object) -> None:
        for _ in range(TRIES):
            document = replace(work.document, **changes)
            version = await self._ledger.put_now(HOSTED_KIND, document.id, document, work.version)
            if version is not None:
                self._set(work, document, version)
                return
            stored = await self._store.get(HOSTED_KIND, document.id)
            if stored is None or (newer := _decode(stored.body)).fence != document.fence:
                return  # it was sent anew meanwhile
            self._set(work, newer, stored.version)

    async def change_all(self, changes: Sequence[tuple[HostedWork, Mapping[str, object]]]) -> None:
        """Change many, and write them together: an origin that was started anew claims everything at a time, and waits
        for the answer. What somebody else has changed meanwhile is changed by itself."""
        for start in range(0, len(changes), AT_ONCE):
            part = changes[start : start + AT_ONCE]
            documents = [replace(work.document, **wanted) for work, wanted in part]
            writes = [(each.id, each, work.version) for each, (work, _) in zip(documents, part, strict=True)]
            versions = await self._ledger.put_all_now(HOSTED_KIND, writes)
            for (work, wanted), document, version in zip(part, documents, versions, strict=True):
                if version is not None:
                    self._set(work, document, version)
                else:
                    await self.change(work, **wanted)

    async def purge(self, before: Instant) -> None:
        """Forget for good what was over before."""
        async for stored in self._store.scan(HOSTED_KIND):
            document = _decode(stored.body)
            if document.over and (document.over_at or document.taken_at) < before:
                await self._ledger.put_now(HOSTED_KIND, stored.id, None, stored.version)
