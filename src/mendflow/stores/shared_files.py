"""Stored files that every server on one store can serve: their content is in the store, in pieces.

A piece's bytes follow from the file's digest and the piece's number. So it does not matter who adds it: two servers
that store the same file at once continue each other's stream, and if one dies midway, the next continues. The document
is written when all pieces are there; without it the file does not exist. A server also keeps the files that passed
through it in its own folder, and serves them from there.

The document also says when the file was last asked for, and changes only at the version that was read: so whoever asks
for a file and whoever removes it cannot both succeed. The document of a removed file stays for some days. Whoever
stores the file again meanwhile uses another stream: a remover that comes late finds nothing of it."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from mendflow.core.model.errors import NOT_STORED, unusable_file
from mendflow.core.model.retention import GRACE_MS, USE_NOTED_EVERY_MS, SweptFiles
from mendflow.core.model.values import FileRef
from mendflow.stores.contract import (
    Append,
    Delete,
    FieldCondition,
    Put,
    RemoveStream,
    Store,
    StoredDocument,
    Write,
    WriteConflict,
    WriteDone,
)
from mendflow.stores.files import FolderFileStore

FILE_KIND = "stored-file"
PIECE_BYTES = 512 * 1024
"""Part of the format: the stream's name contains it, so that a future size starts another stream."""
REMOVED_KNOWN_MS: Final = 7 * 24 * 3_600_000
SWEPT_TOGETHER: Final = 500


class FileDocument(msgspec.Struct, frozen=True, kw_only=True):
    """`generation`: how often the file was removed before. `used_at`: when it was last asked for, to a few
    minutes. `removed_at`: it is not there; 0: it is."""

    bytes: int
    pieces: int
    piece_bytes: int = PIECE_BYTES
    generation: int = 0
    used_at: int = 0
    removed_at: int = 0

    def stream(self, sha256: str) -> str:
        return _stream(sha256, self.piece_bytes, self.generation)


NEW_FILE = FileDocument(bytes=0, pieces=0, removed_at=1)
_decode = msgspec.json.Decoder(FileDocument).decode
_encode = msgspec.json.Encoder().encode


class SharedFileStore:
    """`here` is the folder that files pass through."""

    def __init__(self, store: Store, here: FolderFileStore) -> None:
        self._store = store
        self._here = here

    def open(self) -> None:
        self._here.open()

    async def keep(self, name: str, chunks: AsyncIterator[bytes], *, sha256: str = "") -> FileRef:
        """Store a file on the server; refused if `sha256` is given and does not match."""
        return await self._shared(await self._here.keep(name, chunks, sha256=sha256))

    async def keep_part(
        self, name: str, chunks: AsyncIterator[bytes], *, sha256: str, offset: int, source: str
    ) -> FileRef:
        """Go on at this byte with a file that comes piece by piece, to this server."""
        return await self._shared(await self._here.keep_part(name, chunks, sha256=sha256, offset=offset, source=source))

    async def part_bytes(self, sha256: str, source: str) -> int:
        """How much of a file that is not stored yet has come to this server from this source."""
        return await self._here.part_bytes(sha256, source)

    async def keep_many(self, contents: Mapping[str, bytes]) -> None:
        """Store small files, by their SHA-256: all of them, or none if one has another."""
        await self._here.keep_many(contents)
        large = {sha256: content for sha256, content in contents.items() if len(content) > PIECE_BYTES}
        for sha256, content in large.items():
            await self._shared(FileRef(sha256=sha256, bytes=len(content), name=sha256))
        await self._keep_small({each: content for each, content in contents.items() if each not in large})

    async def _keep_small(self, contents: Mapping[str, bytes]) -> None:
        found = {each.id: each for each in await self._store.get_many(FILE_KIND, list(contents))}
        if await self._note_uses([each for each in found.values() if not _decode(each.body).removed_at]):
            await self._keep_small(contents)  # something was removed meanwhile
            return
        before = {sha256: _decode(each.body) for sha256, each in found.items()}
        new = {
            each: FileDocument(
                bytes=len(contents[each]),
                pieces=min(1, len(contents[each])),
                used_at=_now_ms(),
                generation=_next_generation(before.get(each, NEW_FILE)),
            )
            for each in contents
            if before.get(each, NEW_FILE).removed_at
        }
        # The only piece of a file is always the same: if it is there already, another server has added it.
        await self._store.write(
            [Append(document.stream(each), [contents[each]], 0) for each, document in new.items() if contents[each]]
        )
        await self._store.write(
            [
                Put(FILE_KIND, each, _encode(document), found[each].version if each in found else 0)
                for each, document in new.items()
            ]
        )

    async def keep_path(self, path: str) -> FileRef:
        """Store a copy of a file on this machine."""
        return await self._shared(await self._here.keep_path(path))

    async def keep_linked(self, name: str, link: str, sha256: str) -> FileRef:
        """Store a file that somebody on this machine has linked into the folder of incoming files."""
        return await self._shared(await self._here.keep_linked(name, link, sha256))

    async def path_flaw(self, path: str) -> str:
        """Why this path of this machine cannot be stored now; empty if it can."""
        return await self._here.path_flaw(path)

    async def read(self, sha256: str, offset: int = 0) -> AsyncGenerator[bytes, None]:
        if await self._here.size(sha256) is not None:
            async for chunk in self._here.read(sha256, offset):
                yield chunk
            return
        known = await self._wanted(sha256)
        if known is None:
            raise unusable_file(sha256, NOT_STORED)
        first, skipped = divmod(offset, known.piece_bytes)
        for number in range(first, known.pieces):
            (piece,) = await self._store.read(known.stream(sha256), number, 1)
            yield piece[skipped if number == first else 0 :]

    async def clone(self, sha256: str, target: Path) -> bool:
        """See `FolderFileStore`; possible for a file that has passed through this server."""
        return await self._wanted(sha256) is not None and await self._here.clone(sha256, target)

    async def size(self, sha256: str) -> int | None:
        """Counts what all servers can serve, not only this folder."""
        await self._here.stored_flaw(sha256)  # refuses what is not a digest
        return await self._stored_bytes(sha256)

    async def stored_flaw(self, sha256: str, bytes: int | None = None) -> str:
        """Why a stored file of this size cannot be used; empty if it can."""
        found_bytes = await self._stored_bytes(sha256)
        if found_bytes is None:
            return NOT_STORED
        return "" if bytes in (None, found_bytes) else f"is damaged: it has {found_bytes} bytes instead of {bytes}"

    async def stored_bytes(self, digests: Collection[str]) -> dict[str, int]:
        """The sizes of those of these files that are stored. That somebody asks is not noted: they may be removed."""
        wanted, found = list(digests), dict[str, int]()
        for start in range(0, len(wanted), SWEPT_TOGETHER):
            page = await self._store.get_many(FILE_KIND, wanted[start : start + SWEPT_TOGETHER])
            documents = {each.id: _decode(each.body) for each in page}
            found.update({sha256: each.bytes for sha256, each in documents.items() if not each.removed_at})
        return found

    async def sweep(self, digests: Collection[str], unused_since: int) -> SweptFiles:
        """Remove these files, but for those that were stored or asked for since then; and what is left of those that
        were removed days ago."""
        removed = freed_bytes = 0
        in_use: list[str] = []
        wanted = list(digests)
        for start in range(0, len(wanted), SWEPT_TOGETHER):
            page = await self._store.get_many(FILE_KIND, wanted[start : start + SWEPT_TOGETHER])
            gone, kept = await self._remove(page, unused_since)
            in_use += kept
            removed, freed_bytes = removed + len(gone), freed_bytes + sum(each.bytes for each in gone.values())
        await self._here.sweep(set(wanted).difference(in_use), unused_since)
        await self._forget_removed(_now_ms() - REMOVED_KNOWN_MS)
        return SweptFiles(removed=removed, bytes=freed_bytes, in_use=in_use)

    async def _remove(
        self, page: Sequence[StoredDocument], unused_since: int
    ) -> tuple[dict[str, FileDocument], list[str]]:
        """What was removed, and what is in use. From the first write on nobody finds the file, and then its pieces
        go."""
        known = {each.id: _decode(each.body) for each in page}
        unused = [each for each in page if known[each.id].used_at < unused_since and not known[each.id].removed_at]
        ends = [msgspec.structs.replace(known[each.id], removed_at=_now_ms()) for each in unused]
        made = await self._store.write(
            [Put(FILE_KIND, each.id, _encode(end), each.version) for each, end in zip(unused, ends, strict=True)]
        )
        gone = {
            each.id: known[each.id] for each, result in zip(unused, made, strict=True) if isinstance(result, WriteDone)
        }
        await self._store.write([RemoveStream(document.stream(sha256)) for sha256, document in gone.items()])
        return gone, [each.id for each in page if each.id not in gone and not known[each.id].removed_at]

    async def drop_removed(self) -> None:
        """Empty the folder of this server of files that another has removed. A file that somebody is about to store
        again here stays: it came a short while ago."""
        async for page in self._removed_before(_now_ms()):
            await self._here.sweep([each.id for each in page], _now_ms() - GRACE_MS)

    async def _forget_removed(self, before: int) -> None:
        """A remover that was killed may have left pieces: they go with the document."""
        async for page in self._removed_before(before):
            streams: list[Write] = [RemoveStream(_decode(each.body).stream(each.id)) for each in page]
            await self._store.write([*streams, *(Delete(FILE_KIND, each.id, each.version) for each in page)])

    async def _removed_before(self, moment: int) -> AsyncIterator[list[StoredDocument]]:
        where = [FieldCondition("removed_at", 0, "gt"), FieldCondition("removed_at", moment, "le")]
        last: StoredDocument | None = None
        while page := await self._store.search(FILE_KIND, where, limit=SWEPT_TOGETHER, after=last):
            last = page[-1]
            yield page

    async def _stored_bytes(self, sha256: str) -> int | None:
        known = await self._wanted(sha256)
        return None if known is None else known.bytes

    async def _wanted(self, sha256: str) -> FileDocument | None:
        """The document of a file that is there. Whoever asks may be about to refer to it: it stays for a while."""
        while (found := await self._store.get(FILE_KIND, sha256)) is not None:
            document = _decode(found.body)
            if document.removed_at:
                return None
            if not await self._note_uses([found]):
                return document
        return None

    async def _note_uses(self, found: Sequence[StoredDocument]) -> bool:
        """Note that these files were asked for; whether one has been changed by another server meanwhile."""
        now = _now_ms()
        documents = [(each, _decode(each.body)) for each in found]
        notes = [
            Put(FILE_KIND, each.id, _encode(msgspec.structs.replace(document, used_at=now)), each.version)
            for each, document in documents
            if document.used_at < now - USE_NOTED_EVERY_MS
        ]
        return any(isinstance(made, WriteConflict) for made in await self._store.write(notes)) if notes else False

    async def _shared(self, ref: FileRef) -> FileRef:
        """Put the content into the store, continuing where the stream ends."""
        if await self._wanted(ref.sha256) is not None:
            return ref
        found = await self._store.get(FILE_KIND, ref.sha256)
        before = _decode(found.body) if found is not None else NEW_FILE
        if not before.removed_at:
            return ref  # another server was faster
        document = FileDocument(
            bytes=ref.bytes,
            pieces=-(-ref.bytes // PIECE_BYTES),
            generation=_next_generation(before),
            used_at=_now_ms(),
        )
        await self._append_pieces(ref.sha256, document)
        await self._store.write(
            [Put(FILE_KIND, ref.sha256, _encode(document), found.version if found is not None else 0)]
        )
        return ref

    async def _append_pieces(self, sha256: str, document: FileDocument) -> None:
        stream = document.stream(sha256)
        there = await self._store.length(stream)
        async for number, piece in _pieces(self._here.read(sha256)):
            if number < there:
                continue
            (made,) = await self._store.write([Append(stream, [piece], number)])
            there = made.actual if isinstance(made, WriteConflict) else made.version
        assert there == document.pieces, f"{stream} has {there} pieces, not {document.pieces}"


def _next_generation(before: FileDocument) -> int:
    return 0 if before is NEW_FILE else before.generation + 1


def _now_ms() -> int:
    return int(time.time() * 1000)


def _stream(sha256: str, piece_bytes: int, generation: int = 0) -> str:
    return f"file/{sha256}/{piece_bytes}" + (f"/{generation}" if generation else "")


async def _pieces(chunks: AsyncIterator[bytes]) -> AsyncIterator[tuple[int, bytes]]:
    """The same bytes in pieces of the fixed size."""
    number, gathered = 0, b""
    async for chunk in chunks:
        gathered += chunk
        while len(gathered) >= PIECE_BYTES:
            yield number, gathered[:PIECE_BYTES]
            number, gathered = number + 1, gathered[PIECE_BYTES:]
    if gathered:
        yield number, gathered
