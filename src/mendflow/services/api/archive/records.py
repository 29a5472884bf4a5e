"""The format of an archive: gzipped JSON lines, one record a line, the last one with the digest of all before.

People can read it (`zcat FILE | less`), and a program needs to hold only one line at a time. A file without its last
line, or with any line changed, is not a valid archive: a reader that checks it to the end before doing anything can
refuse it as a whole. docs/reference/archive.md describes each record."""

import base64
import binascii
import hashlib
import zlib
from collections.abc import Iterator
from typing import BinaryIO, ClassVar, Final, Literal, NoReturn, Self, Union

import msgspec

from mendflow.core.model.errors import RequestError
from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.values import MADE_PARTS_MAX

VERSION: Final = 1
LINE_BYTES_MAX: Final = 64 << 20
LINE_PARTS_MAX: Final = 8 * MADE_PARTS_MAX
"""How many parts the values in a line may have together. Each takes many times its length in memory; a document has few
values, and none of them may have more than MADE_PARTS_MAX."""
UNPACKED_BYTES_MAX: Final = 1 << 40
PIECE_BYTES: Final = 192 << 10
CHUNK_BYTES: Final = 1 << 18
_GZIP: Final = 31


class BadArchive(RequestError):
    """The file is not an archive, or was changed since it was written. Nothing of it is imported."""

    code: ClassVar[str] = "bad-archive"
    status: ClassVar[int] = 422


class ArchiveRecord(msgspec.Struct, frozen=True, tag_field="record", forbid_unknown_fields=True):
    """One line."""


class HeadRecord(ArchiveRecord, frozen=True, tag="head"):
    """The first record. `files` says whether stored files are included. `left_out` are trees that are missing because
    their server could not be asked."""

    made_at: Instant
    made_by: str
    files: bool
    format: Literal["mendflow-archive"] = "mendflow-archive"
    version: int = VERSION
    left_out: list[CaseId] | msgspec.UnsetType = msgspec.UNSET


class TreeRecord(ArchiveRecord, frozen=True, tag="tree"):
    """The start of a tree: a case, with the cases that it called and the exlets that mended it. `live` are the cases
    that were not over when the archive was written."""

    root: CaseId
    live: list[CaseId]


class DocumentRecord(ArchiveRecord, frozen=True, tag="document"):
    """A document as the store had it. It belongs to the tree before it; before the first tree, it is shared."""

    kind: str
    id: str
    body: msgspec.Raw


class JournalRecord(ArchiveRecord, frozen=True, tag="journal"):
    """Entries of a case's journal, from a position on."""

    case: CaseId
    position: int
    entries: list[msgspec.Raw]


class FileRecord(ArchiveRecord, frozen=True, tag="file"):
    """A stored file; its pieces follow."""

    sha256: str
    size: int


class PieceRecord(ArchiveRecord, frozen=True, tag="piece"):
    base64: str

    @classmethod
    def of(cls, content: bytes) -> Self:
        return cls(base64.b64encode(content).decode())

    def content(self) -> bytes:
        try:
            return base64.b64decode(self.base64, validate=True)
        except (binascii.Error, ValueError):
            raise BadArchive("a piece of a file in it is not base64; it is damaged") from None


class EndRecord(ArchiveRecord, frozen=True, tag="end"):
    """The last record, with the digest of all lines before."""

    records: int
    sha256: str


AnyRecord = Union[HeadRecord, TreeRecord, DocumentRecord, JournalRecord, FileRecord, PieceRecord, EndRecord]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(AnyRecord).decode


class Packer:
    """Encodes records into the bytes of the file."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._records = 0
        self._gzip = zlib.compressobj(6, zlib.DEFLATED, _GZIP)

    def pack(self, record: AnyRecord) -> bytes:
        line = _encode(record) + b"\n"
        if b"\n" in line[:-1]:
            # this separator occurs only between the parts of a body: in texts it is escaped
            line = line[:-1].replace(b"\n", b" ") + b"\n"
        self._digest.update(line)
        self._records += 1
        return self._gzip.compress(line)

    def end(self) -> bytes:
        last = _encode(EndRecord(records=self._records, sha256=self._digest.hexdigest())) + b"\n"
        return self._gzip.compress(last) + self._gzip.flush()


class Unpacker:
    """Decodes the records of a file, in order. After the last record the whole file has been verified, and `digest` is
    the digest of its content, which identifies the archive."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self.digest = ""

    def records(self) -> Iterator[AnyRecord]:
        self._source.seek(0)
        digest, number = hashlib.sha256(), 0
        last: AnyRecord | None = None
        for line in self._lines():
            if isinstance(last, EndRecord):
                _refuse(number, "something comes after its last record")
            last = _record(line, number + 1)
            if number == 0:
                _demand_known(last)
            elif isinstance(last, HeadRecord):
                _refuse(number + 1, "it begins a second time")
            if isinstance(last, EndRecord):
                if (last.records, last.sha256) != (number, digest.hexdigest()):
                    _refuse(number + 1, "the digest does not fit what comes before; it is damaged")
                self.digest = last.sha256
                continue
            digest.update(line)
            number += 1
            yield last
        if not isinstance(last, EndRecord):
            _refuse(number, "it ends too early: its last record is missing; make it again, or copy it again")

    def _lines(self) -> Iterator[bytes]:
        """The lines of the file. The pieces of a long line are joined once, at its end, so the cost is linear."""
        gathered, length, number = list[bytes](), 0, 0
        for chunk in self._unpacked():
            *lines, rest = chunk.split(b"\n")
            for line in lines:
                number += 1
                yield b"".join([*gathered, line, b"\n"])
                gathered, length = [], 0
            gathered.append(rest)
            if (length := length + len(rest)) > LINE_BYTES_MAX:
                _refuse(number + 1, f"a line is longer than {LINE_BYTES_MAX >> 20} MB")
        if length:
            _refuse(number + 1, "it ends too early, in the middle of a line; copy it again")

    def _unpacked(self) -> Iterator[bytes]:
        gzip, total = zlib.decompressobj(_GZIP), 0
        try:
            while chunk := self._source.read(CHUNK_BYTES):
                while chunk and not gzip.eof:
                    made = gzip.decompress(chunk, CHUNK_BYTES)
                    chunk = gzip.unconsumed_tail
                    if (total := total + len(made)) > UNPACKED_BYTES_MAX:
                        raise BadArchive(f"the archive unpacks to more than {UNPACKED_BYTES_MAX >> 30} GB; split it")
                    yield made
                if gzip.eof and (gzip.unused_data or self._source.read(1)):
                    raise BadArchive("something comes after the end of the archive; it is damaged")
        except zlib.error as error:
            raise BadArchive(f"this is no archive of mendflow, or it is damaged: {error}") from None
        if not gzip.eof:
            raise BadArchive("the archive ends too early; copy it again")


def _record(line: bytes, number: int) -> AnyRecord:
    if _has_too_many_parts(line):
        _refuse(number, f"it has more than {LINE_PARTS_MAX:,} parts, which nothing that is in an archive has")
    try:
        found: AnyRecord = _decode(line)
        return found
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        if number == 1:
            raise BadArchive(f"this is no archive of mendflow: {error}") from None
        _refuse(number, str(error))


def _has_too_many_parts(line: bytes) -> bool:
    """Counted before anything is built of it. Texts may have as many commas and brackets as they like."""
    if len(line) <= LINE_PARTS_MAX or _separators(line) <= LINE_PARTS_MAX:
        return False
    plain = line.replace(rb"\\", b"").replace(rb"\"", b"")
    found, is_in_text = 0, False
    for start in range(0, len(plain), CHUNK_BYTES):
        pieces = plain[start : start + CHUNK_BYTES].split(b'"')
        found += _separators(b"".join(pieces[int(is_in_text) :: 2]))
        is_in_text ^= len(pieces) % 2 == 0
    return found > LINE_PARTS_MAX


def _separators(line: bytes) -> int:
    return line.count(b",") + line.count(b"[") + line.count(b"{")


def _demand_known(first: AnyRecord) -> None:
    if not isinstance(first, HeadRecord):
        raise BadArchive("this is no archive of mendflow: it does not begin as one")
    if first.version != VERSION:
        raise BadArchive(f"the archive has version {first.version}; this mendflow reads {VERSION}: use a newer one")


def _refuse(number: int, reason: str) -> NoReturn:
    raise BadArchive(f"record {number} of the archive: {reason}", record=number)
