"""Stored files that every server on one store can serve: their content is in the store, in pieces.

A piece's bytes follow from the file's digest and the piece's number. So it does not matter who adds it: two servers
that store the same file at once continue each other's stream, and if one dies midway, the next continues. The document
is written when all pieces are there; without it the file does not exist. A server also keeps the files that passed
through it in its own folder, and serves them from there."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping

import msgspec

from mendflow.core.model.errors import unusable_file
from mendflow.core.model.values import FileRef
from mendflow.stores.contract import Append, Put, Store, WriteConflict
from mendflow.stores.files import FolderFileStore

FILE_KIND = "stored-file"
PIECE_BYTES = 512 * 1024
"""Part of the format: the stream's name contains it, so that a future size starts another stream."""


class FileDocument(msgspec.Struct, frozen=True, kw_only=True):
    bytes: int
    pieces: int
    piece_bytes: int = PIECE_BYTES


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

    async def keep_many(self, contents: Mapping[str, bytes]) -> None:
        """Store small files, by their SHA-256: all of them, or none if one has another."""
        await self._here.keep_many(contents)
        large = {sha256: content for sha256, content in contents.items() if len(content) > PIECE_BYTES}
        for sha256, content in large.items():
            await self._shared(FileRef(sha256=sha256, bytes=len(content), name=sha256))
        known = {found.id for found in await self._store.get_many(FILE_KIND, list(contents))}
        new = {sha256: content for sha256, content in contents.items() if sha256 not in known}
        # The only piece of a file is always the same: if it is there already, another server has added it.
        await self._store.write([Append(_stream(each, PIECE_BYTES), [new[each]], 0) for each in new if new[each]])
        sizes = {sha256: len(content) for sha256, content in new.items()}
        documents = {sha256: FileDocument(bytes=size, pieces=min(1, size)) for sha256, size in sizes.items()}
        await self._store.write([Put(FILE_KIND, id, msgspec.json.encode(each), 0) for id, each in documents.items()])

    async def keep_path(self, path: str) -> FileRef:
        """Store a copy of a file on this machine."""
        return await self._shared(await self._here.keep_path(path))

    async def path_flaw(self, path: str) -> str:
        """Why this path of this machine cannot be stored now; empty if it can."""
        return await self._here.path_flaw(path)

    async def read(self, sha256: str) -> AsyncGenerator[bytes, None]:
        if await self._here.size(sha256) is not None:
            async for chunk in self._here.read(sha256):
                yield chunk
            return
        known = await self._document(sha256)
        if known is None:
            raise unusable_file(sha256, "is not stored here")
        for number in range(known.pieces):
            (piece,) = await self._store.read(_stream(sha256, known.piece_bytes), number, 1)
            yield piece

    async def size(self, sha256: str) -> int | None:
        """Counts what all servers can serve, not only this folder."""
        await self._here.stored_flaw(sha256)  # refuses what is not a digest
        return await self._stored_bytes(sha256)

    async def stored_flaw(self, sha256: str, bytes: int | None = None) -> str:
        """Why a stored file of this size cannot be used; empty if it can."""
        found_bytes = await self._stored_bytes(sha256)
        if found_bytes is None:
            return "is not stored here"
        return "" if bytes in (None, found_bytes) else f"is damaged: it has {found_bytes} bytes instead of {bytes}"

    async def _stored_bytes(self, sha256: str) -> int | None:
        known = await self._document(sha256)
        return None if known is None else known.bytes

    async def _document(self, sha256: str) -> FileDocument | None:
        found = await self._store.get(FILE_KIND, sha256)
        return None if found is None else msgspec.json.decode(found.body, type=FileDocument)

    async def _shared(self, ref: FileRef) -> FileRef:
        """Put the content into the store, continuing where the stream ends."""
        if await self._document(ref.sha256) is not None:
            return ref
        stream, pieces = _stream(ref.sha256, PIECE_BYTES), -(-ref.bytes // PIECE_BYTES)
        there = await self._store.length(stream)
        async for number, piece in _pieces(self._here.read(ref.sha256)):
            if number < there:
                continue
            (made,) = await self._store.write([Append(stream, [piece], number)])
            there = made.actual if isinstance(made, WriteConflict) else made.version
        assert there == pieces, f"{stream} has {there} pieces, not {pieces}"
        document = FileDocument(bytes=ref.bytes, pieces=pieces)
        await self._store.write([Put(FILE_KIND, ref.sha256, msgspec.json.encode(document), 0)])
        return ref


def _stream(sha256: str, piece_bytes: int) -> str:
    return f"file/{sha256}/{piece_bytes}"


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
