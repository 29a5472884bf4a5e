"""Imports an archive into a store. An import that is killed and started again ends with the same result.

A tree is announced before its first document and marked as complete after its last; its cases are written last. So
nobody sees what a killed import left, and the next import completes it. A case that was not over is imported suspended,
because the original may still run somewhere: whoever resumes it states that it does not. Attempts that ran when the
archive was made count as lost."""

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import BinaryIO, Final, Protocol

import msgspec

from mendflow.core.engine import Replay, decide
from mendflow.core.engine.messages import Event, Suspend
from mendflow.core.model.errors import Conflict
from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.import_reports import AddedDocuments, ImportReport
from mendflow.core.model.jobs import Job
from mendflow.core.scheduling import job_events
from mendflow.core.scheduling import jobs as job_lifecycle
from mendflow.services.api.archive.checking import Inventory, TreeContents
from mendflow.services.api.archive.kinds import IMPORTED_KIND, NAMED_KINDS, name_of_version, renamed
from mendflow.services.api.archive.records import (
    AnyRecord,
    DocumentRecord,
    FileRecord,
    JournalRecord,
    PieceRecord,
    TreeRecord,
    Unpacker,
)
from mendflow.services.base.cluster import CASE_KIND, JOB_KIND, root_of
from mendflow.services.base.contracts import FileStore
from mendflow.services.cases.flow_file_store import FLOW_FILE_KIND
from mendflow.services.cases.flows import FLOW_KIND
from mendflow.services.cases.live_case import CaseDocument, journal_of
from mendflow.services.data.catalogue.elements import STORAGE_KIND
from mendflow.services.data.catalogue.files import FILE_KIND
from mendflow.services.messaging.message_store import ENDPOINT_KIND
from mendflow.services.recovery.proxy.patterns import PATTERN_KIND
from mendflow.services.recovery.rules.store import RULES_KIND
from mendflow.services.recovery.unwinding import COMPENSATION_KIND
from mendflow.stores.contract import Append, Put, Store, Write, WriteConflict, WriteDone

BATCH: Final = 200
USED_AT: Final = "used_at"
LOST: Final = job_lifecycle.RetryPolicy(losses_max=2**31, loss_wait_ms=0)
LOSS_REASON: Final = "it ran when the archive was made that this case was restored from"

_encode = msgspec.json.Encoder().encode
_decode_event = msgspec.json.Decoder(Event).decode
_decode_case = msgspec.json.Decoder(CaseDocument).decode
_decode_job = msgspec.json.Decoder(Job).decode


class ImportRecord(msgspec.Struct, kw_only=True):
    """The origin of an imported tree. `done`: all of it is imported."""

    root: CaseId
    archive: str
    name: CaseId  # its id in the archive
    at: Instant
    by: str
    resumed: bool
    done: bool = False


class ImportHost(Protocol):
    """Lets imported live cases continue."""

    async def expect(self, root: CaseId, title: str) -> None:
        """Announce a tree that will be imported, with the title that people know it by. Raises Conflict if another
        server has it."""
        ...

    async def go_on(self, root: CaseId) -> None:
        """Everything of a tree that is not over was imported: let its cases continue."""
        ...


class TreePlan(msgspec.Struct, kw_only=True):
    """What is done with a tree of the archive, and the id that it gets here."""

    found: TreeContents
    root: CaseId
    skip: bool = False
    mark: int = 0  # the version of its document, if it has one

    @property
    def begun(self) -> list[CaseId]:
        """The cases that were not called by others, by their ids here."""
        return [self.id_here(each) for each in self.found.begun]

    def id_here(self, case: CaseId) -> CaseId:
        return CaseId(self.root + case.removeprefix(self.found.root))


class Importer:
    def __init__(self, store: Store, file_store: FileStore, source: BinaryIO, inventory: Inventory) -> None:
        self._store = store
        self._file_store = file_store
        self._source = source
        self._inventory = inventory
        self.report = ImportReport()
        self._added: dict[str, dict[str, None]] = {}  # the names of what is shared, by kind

    # Planning

    async def plan(self, *, as_new: bool, skip_existing: bool) -> list[TreePlan]:
        """What will be done with each case. Raises Conflict for the whole archive if a case exists here with other
        content."""
        plans = [
            TreePlan(found=tree, root=self._new_root(tree.root) if as_new else tree.root)
            for tree in self._inventory.trees
        ]
        for plan in plans:
            await self._plan_tree(plan, skip_existing)
        return plans

    def _new_root(self, root: CaseId) -> CaseId:
        """A new id, the same for the same archive, so that an import that is started again does not make another
        copy."""
        return CaseId(f"{root}-{self._inventory.digest[:8]}")

    async def _plan_tree(self, plan: TreePlan, skip_existing: bool) -> None:
        mark = await self._store.get(IMPORTED_KIND, plan.root)
        if mark is not None:
            before = msgspec.json.decode(mark.body, type=ImportRecord)
            plan.mark, plan.skip = mark.version, before.done
            if before.archive == self._inventory.digest:
                self.report.present += plan.begun if plan.skip else []
                return
        elif await self._store.get(ENDPOINT_KIND if plan.found.endpoint else CASE_KIND, plan.root) is None:
            if await self._store.length(journal_of(plan.root)):
                raise Conflict(f"there is a journal of case {plan.root} here already; import it --as-new")
            return
        plan.skip = True
        if await self._has_same_journal(plan):
            self.report.present += plan.begun
        elif skip_existing:
            self.report.skipped += plan.begun
        else:
            raise Conflict(
                f"{plan.found.title} is here already, with other content; nothing was imported. Leave such cases out"
                " by --skip-existing, or take all of them under new ids by --as-new"
            )

    async def _has_same_journal(self, plan: TreePlan) -> bool:
        """Whether the journal here is the one in the archive. The tree of a flow's messages has no journal of its
        own."""
        if plan.found.endpoint:
            return False
        digest, position, stream = TreeContents(plan.root, []).journal, 0, journal_of(plan.root)
        while entries := await self._store.read(stream, position):
            position += len(entries)
            for entry in entries:
                digest.update(entry + b"\n")
        return digest.hexdigest() == plan.found.journal.hexdigest()

    # Writing

    async def take_files(self) -> None:
        """Store the files first: everything else refers to them."""
        records = Unpacker(self._source).records()
        pieces: list[AnyRecord] = []
        for record in records:
            if isinstance(record, FileRecord):
                pieces = [record]
                break
        while pieces and isinstance(first := pieces.pop(), FileRecord):
            if await self._file_store.size(first.sha256) is None:
                await self._file_store.keep(first.sha256, _content(records, pieces), sha256=first.sha256)
                self.report.files += 1
            else:
                async for _ in _content(records, pieces):
                    pass

    async def take_shared(self, *, now: Instant) -> None:
        """Write the shared documents whose names are not known here; the others stay as they are."""
        known: dict[tuple[str, str], bool] = {}
        for record in Unpacker(self._source).records():
            if isinstance(record, TreeRecord | FileRecord):
                break
            if isinstance(record, DocumentRecord):
                await self._take_shared(record, known, now)
        added = {kind: list(names) for kind, names in self._added.items()}
        self.report.added = AddedDocuments(
            flows=added.get(FLOW_KIND, []),
            rules=added.get(RULES_KIND, []),
            compensations=added.get(COMPENSATION_KIND, []),
            patterns=added.get(PATTERN_KIND, []),
            elements=added.get(STORAGE_KIND, []),
            data_files=len(added.get(FILE_KIND, [])),
        )

    async def _take_shared(self, record: DocumentRecord, known: dict[tuple[str, str], bool], now: Instant) -> None:
        kind = next((kind for kind, versions in NAMED_KINDS.items() if versions == record.kind), record.kind)
        name = name_of_version(record.id) if kind != record.kind else record.id
        if (kind, name) not in known:
            known[kind, name] = await self._store.get(kind, name) is not None
        here = await self._store.get(record.kind, record.id)
        if here is not None and _said(here.body) != _said(record.body):
            self.report.notes.append(f"{record.kind} {record.id} is another here, and stays as it is")
        body = here.body if here is not None else bytes(record.body)
        if record.kind == FLOW_FILE_KIND:  # until its cases are here, nothing else says that it is in use
            await self._store.write([Put(record.kind, record.id, _used(body, now), here.version if here else 0)])
        elif here is None and not known[kind, name]:
            [result] = await self._store.write([Put(record.kind, record.id, body, 0)])
            if isinstance(result, WriteDone):
                self._added.setdefault(kind, {})[name] = None

    async def take_trees(
        self, plans: list[TreePlan], host: "ImportHost", *, resume: bool, now: Instant, by: str
    ) -> None:
        """Write tree by tree, in one pass through the archive. What a killed import has written already is left as it
        is."""
        known = {plan.found.root: plan for plan in plans}
        wanted = {root: plan for root, plan in known.items() if not plan.skip}
        writer: _TreeWriter | None = None
        for record in Unpacker(self._source).records():
            if isinstance(record, TreeRecord | FileRecord):
                await self._end(writer, host, resume=resume, now=now, by=by)
                writer, plan = None, wanted.get(record.root) if isinstance(record, TreeRecord) else None
                if plan is not None:
                    await host.expect(plan.root, plan.found.title)
                    await self._mark(plan, done=False, resume=resume, now=now, by=by)
                    writer = _TreeWriter(self._store, plan, known, resume=resume, now=now, by=by)
            elif writer is not None:
                await writer.take(record)
        await self._end(writer, host, resume=resume, now=now, by=by)

    async def _end(
        self, writer: "_TreeWriter | None", host: "ImportHost", *, resume: bool, now: Instant, by: str
    ) -> None:
        if writer is None:
            return
        await writer.end()
        if writer.plan.found.live or writer.plan.found.endpoint:
            await host.go_on(writer.plan.root)
        await self._mark(writer.plan, done=True, resume=resume, now=now, by=by)
        self.report.imported += writer.plan.begun
        self.report.cases += len(writer.plan.found.cases)
        self.report.suspended += writer.suspended

    async def _mark(self, plan: TreePlan, *, done: bool, resume: bool, now: Instant, by: str) -> None:
        mark = ImportRecord(
            root=plan.root,
            archive=self._inventory.digest,
            name=plan.found.root,
            at=now,
            by=by,
            resumed=resume,
            done=done,
        )
        [result] = await self._store.write([Put(IMPORTED_KIND, plan.root, _encode(mark), plan.mark)])
        if isinstance(result, WriteConflict):
            raise Conflict(
                f"{plan.found.title} is being imported by another client; try again when that import has ended"
            )
        plan.mark = result.version


class _TreeWriter:
    """Writes one tree: journals, then documents, then its cases, the root last. `plans` are those of all trees that
    come with it, by their names in the archive."""

    def __init__(
        self,
        store: Store,
        plan: TreePlan,
        plans: Mapping[CaseId, TreePlan],
        *,
        resume: bool,
        now: Instant,
        by: str,
    ) -> None:
        self._store = store
        self.plan = plan
        self._plans = plans
        self._resume = resume
        self._now = now
        self._by = by
        self._batch: list[Write] = []
        self._cases: list[Put] = []
        self._replayed: dict[CaseId, Replay] = {}
        self._lengths: dict[CaseId, int] = {}
        self.suspended: list[CaseId] = []

    async def take(self, record: AnyRecord) -> None:
        if isinstance(record, JournalRecord):
            await self._journal(record)
        elif isinstance(record, DocumentRecord):
            await self._document(record)

    async def end(self) -> None:
        await self._flush()
        last = sorted(self._cases, key=lambda put: (put.id == self.plan.root, put.id))
        for put in last:
            await self._store.write([put])

    async def _journal(self, record: JournalRecord) -> None:
        case = CaseId(self._rename_id(record.case.encode()).decode())
        entries = [self._rename(bytes(raw)) for raw in record.entries]
        await self._append(case, record.position, entries)
        if record.case in self.plan.found.live and not self._resume:
            replay = self._replayed.setdefault(case, Replay())
            for entry in entries:
                replay.take(_decode_event(entry))

    async def _append(self, case: CaseId, position: int, entries: list[bytes]) -> None:
        """Append the missing entries. Existing ones were written by an earlier import of the same archive."""
        there = await self._store.length(journal_of(case))
        missing = entries[max(0, there - position) :]
        if missing and there <= position + len(entries):
            await self._store.write([Append(journal_of(case), missing, max(there, position))])
        self._lengths[case] = position + len(entries)

    async def _document(self, record: DocumentRecord) -> None:
        id, body = self._rename_id(record.id.encode()).decode(), bytes(record.body)
        if record.kind == CASE_KIND and self._is_copy:
            body = self._with_earlier_copies(body)
        if record.kind == CASE_KIND:
            body = _without_teller(body)
        body = self._rename(body)
        if record.kind == JOB_KIND and self.plan.found.live:
            body = self._suspended_job(body)
        if record.kind == CASE_KIND:
            self._cases.append(Put(CASE_KIND, id, await self._suspended_case(body), 0))
            return
        self._batch.append(Put(record.kind, id, body, 0))
        if len(self._batch) >= BATCH:
            await self._flush()

    async def _flush(self) -> None:
        if self._batch:
            await self._store.write(self._batch)
        self._batch = []

    def _suspended_job(self, body: bytes) -> bytes:
        job = _decode_job(body)
        if job.finished:
            return body
        for event in job_lifecycle.lose(job, now=self._now, policy=LOST, why=LOSS_REASON):
            job_events.evolve(job, event)
        if not self._resume:
            for event in job_lifecycle.suspend(job):
                job_events.evolve(job, event)
        return _encode(job)

    async def _suspended_case(self, body: bytes) -> bytes:
        document = _decode_case(body)
        replay = self._replayed.pop(document.id, None)
        if replay is None:
            return body
        state = replay.case
        self.suspended.append(document.id)
        if state.status != "suspended":
            events = decide(state, Suspend(by=self._by), self._now)
            await self._append(document.id, self._lengths[document.id], [_encode(event) for event in events])
            document.status = "suspended"
        return _encode(document)

    @property
    def _is_copy(self) -> bool:
        """Whether the tree gets a new id, beside an original that may be here, too."""
        return self.plan.root != self.plan.found.root

    def _with_earlier_copies(self, body: bytes) -> bytes:
        """A case that runs another again is copied with it: the copy stands for the other copy, and never for the
        original, which knows nothing of it."""
        document = _decode_case(body)
        if document.rerun_of is None and document.stands_for is None:
            return body
        document.rerun_of = self._copy_of(document.rerun_of)
        document.stands_for = self._copy_of(document.stands_for)
        return _encode(document)

    def _copy_of(self, case: CaseId | None) -> CaseId | None:
        """The new id of a case of this archive; of any other there is none."""
        plan = self._plans.get(root_of(case)) if case is not None else None
        return plan.id_here(case) if case is not None and plan is not None and case in plan.found.cases else None

    def _rename(self, body: bytes) -> bytes:
        return renamed(body, self.plan.found.root, self.plan.root) if self._is_copy else body

    def _rename_id(self, id: bytes) -> bytes:
        """Replace the tree's name at the start of an id."""
        return self.plan.root.encode() + id[len(self.plan.found.root.encode()) :]


def _without_teller(body: bytes) -> bytes:
    """A case whose paths nobody here has told: an archive may be anybody's, and say what it likes."""
    document = _decode_case(body)
    if document.origin is None or not document.origin.told_by:
        return body
    document.origin = msgspec.structs.replace(document.origin, told_by="")
    return _encode(document)


def _said(body: bytes) -> object:
    """What a document says, but for when it was used last."""
    said = msgspec.json.decode(body)
    return {name: each for name, each in said.items() if name != USED_AT} if isinstance(said, dict) else said


def _used(body: bytes, now: Instant) -> bytes:
    said = msgspec.json.decode(body)
    return _encode({**said, USED_AT: now}) if isinstance(said, dict) else body


async def _content(records: Iterator[AnyRecord], left: list[AnyRecord]) -> AsyncIterator[bytes]:
    """The pieces of a file; the record that follows them is put into `left`."""
    for record in records:
        if not isinstance(record, PieceRecord):
            left.append(record)
            return
        yield record.content()
