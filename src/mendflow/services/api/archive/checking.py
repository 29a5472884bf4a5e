"""Checks a whole archive before anything of it is imported: complete, of a known format, and consistent.

Every document is of a known kind, named after its tree, and decodes as that kind; journals have no gaps; a case that is
not over is replayed to see that it can continue; and files have the content that their digests say."""

import hashlib
from typing import BinaryIO, Final, NoReturn

import msgspec

from mendflow.core.engine import Replay, decide
from mendflow.core.engine.messages import Event, Suspend
from mendflow.core.model.ids import CaseId
from mendflow.services.api.archive.documents import read_document
from mendflow.services.api.archive.kinds import ID, ROOT, SHA256, SHARED_KINDS
from mendflow.services.api.archive.records import (
    AnyRecord,
    BadArchive,
    DocumentRecord,
    FileRecord,
    HeadRecord,
    JournalRecord,
    PieceRecord,
    TreeRecord,
    Unpacker,
)
from mendflow.services.api.domain_reader import LAST
from mendflow.services.base.cluster import root_of
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.messaging.message_store import ENDPOINT_KIND
from mendflow.services.retention.tree_kinds import TREE_KINDS

SHOWN: Final = 3

_decode_event = msgspec.json.Decoder(Event).decode


class TreeContents:
    """A tree in an archive. `journal` is the digest of the journal of its root."""

    def __init__(self, root: CaseId, live: list[CaseId]) -> None:
        self.root = root
        self.live = live
        self.lengths: dict[CaseId, int] = {}
        self.cases: set[str] = set()
        self.endpoint = False  # messages are sent to it, and it is not a case itself
        # the cases that were not called by another case and do not mend one, and their flows
        self.uncalled: dict[CaseId, str] = {}
        self.journal = hashlib.sha256()
        self.replayed: dict[CaseId, Replay] = {}

    @property
    def begun(self) -> list[CaseId]:
        """The cases that the tree began with: its root, or all cases that were started by messages."""
        if not self.endpoint:
            return [self.root]
        return sorted(self.uncalled, key=lambda case: (len(case), case))

    @property
    def title(self) -> str:
        """The name that people know it by."""
        if not self.endpoint:
            return f"case {self.root}"
        begun, flows = self.begun, sorted(set(self.uncalled.values()))
        more = f" and {len(begun) - SHOWN} more" if len(begun) > SHOWN else ""
        return f"what messages to {', '.join(flows)} began ({', '.join(begun[:SHOWN])}{more})"


class Inventory:
    """The contents of an archive that was read to its end. `digest` identifies the archive."""

    def __init__(self) -> None:
        self.digest = ""
        self.trees: list[TreeContents] = []
        self.files = 0
        self.left_out: list[CaseId] = []


def check_archive(source: BinaryIO) -> Inventory:
    """The contents of an archive. Raises BadArchive with the place and the reason."""
    unpacker, check = Unpacker(source), _Checker()
    for number, record in enumerate(unpacker.records(), 1):
        try:
            check.take(record)
        except BadArchive as error:
            raise BadArchive(f"record {number} of the archive: {error.message}", record=number) from None
        except (msgspec.MsgspecError, AssertionError, RecursionError) as error:
            raise BadArchive(f"record {number} of the archive cannot be read: {error!r:.300}", record=number) from None
        except Exception as error:  # whatever the decoder raises, the fault is in the archive that somebody sent
            raise BadArchive(f"record {number} of the archive makes no sense: {error!r:.300}", record=number) from error
    check.end()
    check.found.digest = unpacker.digest
    return check.found


class _Checker:
    def __init__(self) -> None:
        self.found = Inventory()
        self._tree: TreeContents | None = None
        self._ids: set[tuple[str, str]] = set()
        self._file: FileRecord | None = None
        self._content = hashlib.sha256()
        self._size = 0

    def take(self, record: AnyRecord) -> None:
        match record:
            case TreeRecord():
                self._begin(record)
            case DocumentRecord():
                self._document(record)
            case JournalRecord():
                self._journal(record)
            case FileRecord():
                self._begin_file(record)
            case PieceRecord():
                self._piece(record)
            case HeadRecord():
                self.found.left_out = record.left_out or []

    def end(self) -> None:
        self._end_tree()
        self._end_file()

    # Trees

    def _begin(self, record: TreeRecord) -> None:
        self._end_tree()
        if self._file is not None:
            _refuse("a case comes after files")
        if record.root == LAST:
            _refuse(f"no case can be called {LAST!r}: that is a word for the newest case")
        if not ROOT.fullmatch(record.root) or any(root_of(each) != record.root for each in record.live):
            _refuse(f"{record.root[:80]!r} is no case's id")
        if any(each.root == record.root for each in self.found.trees):
            _refuse(f"case {record.root} comes a second time")
        self._tree = TreeContents(record.root, record.live)
        self.found.trees.append(self._tree)

    def _end_tree(self) -> None:
        tree, self._tree, self._ids = self._tree, None, set()
        if tree is None:
            return
        if (
            not (tree.endpoint or tree.root in tree.cases)
            or set(tree.lengths) != tree.cases
            or not set(tree.live) <= tree.cases
        ):
            raise BadArchive(f"case {tree.root} is not whole: a document or a journal is missing")
        for replay in tree.replayed.values():
            if replay.case.status != "suspended":
                decide(replay.case, Suspend(), 0)  # an imported case is suspended in this way, unless it is to resume
        tree.replayed.clear()

    def _document(self, record: DocumentRecord) -> None:
        body = bytes(record.body)
        if not ID.fullmatch(record.id) or (record.kind, record.id) in self._ids:
            _refuse(f"{record.id[:80]!r} is no id, or comes a second time")
        self._ids.add((record.kind, record.id))
        if self._file is not None:
            _refuse("a document comes after files")
        if self._tree is None:
            if record.kind not in SHARED_KINDS:
                _refuse(f"a document of the kind {record.kind[:80]!r} stands before the first case")
            read_document(record.kind, record.id, body)
            return
        if record.kind not in TREE_KINDS or root_of(record.id) != self._tree.root:
            _refuse(f"{record.kind[:80]} {record.id[:80]!r} does not belong to case {self._tree.root}")
        self._read(record.kind, record.id, body, self._tree)

    def _read(self, kind: str, id: str, body: bytes, tree: TreeContents) -> None:
        found = read_document(kind, id, body, tree.root)
        if isinstance(found, CaseDocument):
            if found.live != (id in tree.live):
                _refuse(f"the document of case {id} is not what it should be")
            tree.cases.add(id)
            if found.parent is None and found.mends is None:
                tree.uncalled[found.id] = found.flow
        tree.endpoint |= kind == ENDPOINT_KIND and id == tree.root

    def _journal(self, record: JournalRecord) -> None:
        tree, case = self._tree, record.case
        if tree is None or root_of(case) != tree.root or not ID.fullmatch(case):
            _refuse(f"a journal of {case[:80]!r} does not belong here")
        if record.position != tree.lengths.get(case, 0) or not record.entries:
            _refuse(f"the journal of case {case} has a hole")
        tree.lengths[case] = record.position + len(record.entries)
        for raw in record.entries:
            event = _decode_event(bytes(raw))
            if case in tree.live:
                tree.replayed.setdefault(case, Replay()).take(event)
            if case == tree.root:
                tree.journal.update(bytes(raw) + b"\n")

    # Files

    def _begin_file(self, record: FileRecord) -> None:
        self._end_tree()
        self._end_file()
        if not SHA256.fullmatch(record.sha256) or record.size < 0:
            _refuse(f"{record.sha256[:80]!r} is no digest of a file")
        self._file, self._content, self._size = record, hashlib.sha256(), 0
        self.found.files += 1

    def _piece(self, record: PieceRecord) -> None:
        content = record.content()
        self._size += len(content)
        self._content.update(content)
        if self._file is None or self._size > self._file.size:
            _refuse("a piece belongs to no file, or is too long")

    def _end_file(self) -> None:
        if self._file is None:
            return
        if (self._content.hexdigest(), self._size) != (self._file.sha256, self._file.size):
            raise BadArchive(f"file {self._file.sha256[:12]} does not have the content that it is called by")


def _refuse(reason: str) -> NoReturn:
    raise BadArchive(reason)
