"""Exports cases to an archive, each as of one moment.

A live case changes while it is read. So its changes are recorded meanwhile: when all of it was read, everything that
changed is taken from memory in one step, together with the length of each journal at that moment. That is what the disk
would hold if the server were killed then, and from that a case can continue. Documents of a live case wait in a
temporary file until then; memory holds their positions and the changes. A case that lives on another server is exported
by that server in the same way."""

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

import msgspec

from mendflow.core.model.errors import NotFound
from mendflow.core.model.ids import CaseId
from mendflow.core.model.principals import DEFAULT_PROJECT
from mendflow.core.model.rules import DEFAULT_RULES, RuleSet
from mendflow.services.api.archive.kinds import NAMED_KINDS, SHARED_DOMAIN_KINDS, files_in
from mendflow.services.api.archive.records import (
    PIECE_BYTES,
    AnyRecord,
    DocumentRecord,
    FileRecord,
    HeadRecord,
    JournalRecord,
    Packer,
    PieceRecord,
    TreeRecord,
)
from mendflow.services.api.archive.remote_trees import RemoteTrees
from mendflow.services.base.cluster import CASE_KIND, Peers, ServerDocument, root_of
from mendflow.services.base.contracts import Clock, FileStore
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.flow_file_store import FLOW_FILE_KIND, id_of
from mendflow.services.cases.flows import FLOW_KIND
from mendflow.services.cases.live_case import CaseDocument, LiveCase, journal_of
from mendflow.services.messaging.message_store import ENDPOINT_KIND
from mendflow.services.recovery.rules.store import RULES_KIND, VERSION_KIND
from mendflow.services.retention.tree_kinds import TREE_KINDS
from mendflow.stores.contract import Store, StoredDocument

ENTRIES: Final = 500
ENTRIES_BYTES: Final = 1 << 20

_encode = msgspec.json.Encoder().encode
_decode_case = msgspec.json.Decoder(CaseDocument).decode
_decode_rules = msgspec.json.Decoder(RuleSet).decode
_Key = tuple[str, str]


class _Owned(msgspec.Struct):
    """What is read of a flow, or of rules."""

    project: str = DEFAULT_PROJECT


_decode_owned = msgspec.json.Decoder(_Owned).decode

ShownRules = Callable[[RuleSet], Awaitable[RuleSet]]
"""The part of a rule set that whoever exports may see."""


class ExportContext(Protocol):
    """The services that an export needs."""

    store: Store
    ledger: Ledger
    file_store: FileStore
    clock: Clock
    peers: Peers

    def live_cases(self) -> dict[CaseId, LiveCase]: ...
    async def home(self, root: CaseId) -> ServerDocument | None:
        """The other server to ask for the tree; None if it lives here, or is over and read from the store."""
        ...


class Exporter:
    """Writes one archive. `roots` are the cases, in their order in the archive; `everything` adds what no case refers
    to. `leave_out`: leave out the cases whose server cannot be asked. `bare`: only trees, as other servers ask for
    them. `shown`: rule sets come as it gives them; whole without it."""

    def __init__(
        self,
        around: ExportContext,
        roots: Sequence[CaseId],
        *,
        files: bool,
        everything: bool,
        by: str,
        leave_out: bool = False,
        bare: bool = False,
        shown: ShownRules | None = None,
    ) -> None:
        self._context = around
        self._roots = roots
        self._files = files
        self._everything = everything
        self._by = by
        self._leave_out = leave_out
        self._tree_only = bare
        self._shown = shown
        self._packer = Packer()
        self._seen_files: dict[str, None] = {}

    async def pack(self) -> AsyncIterator[bytes]:
        """The bytes of the file. Errors are raised before the first byte, where possible."""
        around = self._context
        with tempfile.TemporaryDirectory(prefix="mendflow-archive-") as folder:
            remote_trees = RemoteTrees(around, around.peers, around.clock, Path(folder))
            if not self._tree_only:
                await remote_trees.gather(self._roots, leave_out=self._leave_out)
            async for record in self._records(remote_trees):
                if pack := self._packer.pack(record):
                    yield pack
            yield self._packer.end()

    def _make_head(self, left_out: list[CaseId]) -> HeadRecord:
        now = self._context.clock.now()
        return HeadRecord(made_at=now, made_by=self._by, files=self._files, left_out=left_out or msgspec.UNSET)

    async def _records(self, remote_trees: RemoteTrees) -> AsyncIterator[AnyRecord]:
        yield self._make_head(remote_trees.left_out)
        if not self._tree_only:
            async for kept in self._shared():
                yield kept
        for root in self._roots:
            if root not in remote_trees.left_out:
                async for record in self._records_of_tree(root, remote_trees):
                    yield record
        if self._files:
            for sha256 in list(self._seen_files):
                async for piece in self._file(sha256):
                    yield piece

    # Shared documents

    async def _shared(self) -> AsyncIterator[DocumentRecord]:
        await self._context.ledger.settled()
        store, owners, flows = self._context.store, dict[str, str](), list[str]()
        used, versions_run = await self._used()
        for kind, versions in NAMED_KINDS.items():
            async for found in store.scan(kind):
                if self._everything or _is_used(found, used, owners):
                    for mark in ("@", "/"):
                        async for version in store.scan(versions, f"{found.id}{mark}"):
                            yield await self._named_record(versions, version.id, version.body)
                    yield await self._named_record(kind, found.id, found.body)
                    flows += [found.id] if kind == FLOW_KIND else []
        async for record in self._flow_files(flows, versions_run):
            yield record
        for kind in SHARED_DOMAIN_KINDS if self._everything else ():
            async for found in store.scan(kind):
                yield self._document_record(kind, found.id, found.body)

    async def _flow_files(self, flows: Sequence[str], versions_run: set[str]) -> AsyncIterator[DocumentRecord]:
        """The files of these flows, and of the versions that cases run; or all."""
        store, left = self._context.store, set(versions_run)
        for prefix in [""] if self._everything else [id_of(flow, "") for flow in flows]:
            async for found in store.scan(FLOW_FILE_KIND, prefix):
                left.discard(found.id)
                yield self._document_record(FLOW_FILE_KIND, found.id, found.body)
        for id in sorted(left):
            if (kept := await store.get(FLOW_FILE_KIND, id)) is not None:
                yield self._document_record(FLOW_FILE_KIND, id, kept.body)

    async def _used(self) -> tuple[dict[str, set[str]], set[str]]:
        """The names of the flows of all cases of the trees, with the projects of these cases; and their versions."""
        used: dict[str, set[str]] = {}
        versions: set[str] = set()
        for root in self._roots:
            async for found in self._context.store.scan(CASE_KIND, root):
                if root_of(found.id) == root:
                    case = _decode_case(found.body)
                    used.setdefault(case.flow, set()).add(case.project)
                    versions.add(id_of(case.flow, case.digest))
        return used, versions

    async def _named_record(self, kind: str, id: str, body: bytes) -> DocumentRecord:
        """What is not shown is left out before the files that it refers to are looked for."""
        if self._shown is not None and kind in (RULES_KIND, VERSION_KIND):
            body = _encode(await self._shown(_decode_rules(body)))
        return self._document_record(kind, id, body)

    def _document_record(self, kind: str, id: str, body: bytes) -> DocumentRecord:
        kept = DocumentRecord(kind, id, msgspec.Raw(body))
        self._note_files(kept)
        return kept

    # A tree of cases

    async def _records_of_tree(self, root: CaseId, remote_trees: RemoteTrees) -> AsyncIterator[AnyRecord]:
        """The records of a tree, from this server or from the one that it lives on by now."""
        if self._tree_only or not await remote_trees.is_fetched(root):
            async for record in self._tree(root):
                yield record
            return
        async for record in remote_trees.records(root):
            self._note_files(record)
            yield record

    def _note_files(self, record: AnyRecord) -> None:
        """Remember the files that these documents refer to: they are exported, too."""
        bodies = (
            [record.body]
            if isinstance(record, DocumentRecord)
            else record.entries
            if isinstance(record, JournalRecord)
            else []
        )
        for body in bodies:
            self._seen_files.update(dict.fromkeys(sorted(files_in(bytes(body)))))

    async def _tree(self, root: CaseId) -> AsyncIterator[AnyRecord]:
        ledger = self._context.ledger
        with tempfile.TemporaryFile() as spool:
            places: dict[_Key, tuple[int, int]] = {}
            with ledger.watch(root) as changed:
                await ledger.settled()
                for kind in TREE_KINDS:
                    async for found in self._context.store.scan(kind, root):
                        if root_of(found.id) == root:
                            places[kind, found.id] = (spool.tell(), len(found.body))
                            spool.write(found.body)
                # No await from here to the end of the block: this is the moment that the archive shows.
                lengths = {id: live.position for id, live in self._context.live_cases().items() if root_of(id) == root}
                live = [id for id, each in self._context.live_cases().items() if id in lengths and each.document.live]
                for key, document in changed.items():
                    if key[0] in TREE_KINDS:
                        places.pop(key, None)
                        if document is not None:
                            body = _encode(document)
                            places[key] = (spool.seek(0, 2), len(body))
                            spool.write(body)
            await ledger.settled()
            yield TreeRecord(root, sorted(live))
            ids = sorted(id for kind, id in places if kind == CASE_KIND)
            if root not in ids and (ENDPOINT_KIND, root) not in places:
                raise NotFound(f"there is no case {root!r}; `mendflow cases` lists them")
            for id in ids:
                async for journal in self._journal(CaseId(id), lengths.get(CaseId(id))):
                    yield journal
            for kind, id in sorted(places, key=lambda key: (TREE_KINDS.index(key[0]), key[1])):
                spool.seek(places[kind, id][0])
                yield self._document_record(kind, id, spool.read(places[kind, id][1]))

    async def _journal(self, case: CaseId, length: int | None) -> AsyncIterator[JournalRecord]:
        """The journal of a case that is over does not change."""
        stream, position = journal_of(case), 0
        end = await self._context.store.length(stream) if length is None else length
        while position < end:
            entries = await self._context.store.read(stream, position, min(ENTRIES, end - position))
            assert entries, f"{stream} is shorter than {end}"
            for part in _split_entries(entries):
                journal = JournalRecord(case, position, [msgspec.Raw(entry) for entry in part])
                self._note_files(journal)
                yield journal
                position += len(part)

    # Stored files

    async def _file(self, sha256: str) -> AsyncIterator[AnyRecord]:
        """The records of a file; none if the server no longer stores it."""
        size = await self._context.file_store.size(sha256)
        if size is None:
            return
        yield FileRecord(sha256, size)
        gathered = b""
        async for chunk in self._context.file_store.read(sha256):
            gathered += chunk
            while len(gathered) >= PIECE_BYTES:
                yield PieceRecord.of(gathered[:PIECE_BYTES])
                gathered = gathered[PIECE_BYTES:]
        if gathered:
            yield PieceRecord.of(gathered)


def _is_used(found: StoredDocument, used: Mapping[str, set[str]], owners: dict[str, str]) -> bool:
    """Whether the cases of the archive use this flow, or these rules: the default rules apply to every case. A flow
    that was sent along may have the name of one of another project, and is not that one. The project of a flow is that
    of its rules, so flows come first; `owners` remembers it."""
    if found.id == DEFAULT_RULES:
        return True
    projects = used.get(found.id)
    return projects is not None and owners.setdefault(found.id, _decode_owned(found.body).project) in projects


def _split_entries(entries: list[bytes]) -> list[list[bytes]]:
    """Split entries into parts that fit on one line each."""
    parts: list[list[bytes]] = [[]]
    size = 0
    for entry in entries:
        if parts[-1] and size + len(entry) > ENTRIES_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(entry)
        size += len(entry)
    return parts
