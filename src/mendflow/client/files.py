"""Files to and from a server's keeping. A file is known by its content, so a download proves itself: it stands under
its name only once its hash is right."""

import asyncio
import gzip
import hashlib
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from urllib.parse import quote

import msgspec

from mendflow.client.transport import STREAM_READ_S, Transport
from mendflow.core.model.errors import NotFound, Unreachable
from mendflow.core.model.values import FileRef, is_executable

CHUNK_BYTES = 1 << 20


class _ArchiveHead(msgspec.Struct):
    left_out: list[str] = []


class _ArchiveLine(msgspec.Struct):
    record: str
    kind: str = ""
    id: str = ""
    root: str = ""
    body: msgspec.Raw = msgspec.Raw()


class _ArchivedCase(msgspec.Struct):
    flow: str
    parent: str | None = None
    mends: str | None = None


def reference_of(path: Path, name: str = "") -> FileRef:
    """What a file here is: its content, its size, and whether it may be executed."""
    try:
        with path.open("rb") as source:
            digest = hashlib.file_digest(source, "sha256").hexdigest()
            executable = is_executable(os.fstat(source.fileno()).st_mode)
            return FileRef(sha256=digest, bytes=source.tell(), name=name or path.name, executable=executable)
    except (FileNotFoundError, IsADirectoryError) as error:
        raise NotFound(f"there is no file {path}; check its name", path=str(path)) from error


async def content_of(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as source:
        while chunk := await asyncio.to_thread(source.read, CHUNK_BYTES):
            yield chunk


async def fetch(transport: Transport, ref: FileRef, path: Path, of: str = "") -> Path:
    """`of` is a case that refers to the file."""
    query: dict[str, str | int] = {"of": of} if of else {}
    address = f"/files/{quote(ref.sha256, safe='')}"
    async with transport.open("GET", address, query=query, read_s=STREAM_READ_S) as response:
        return await write_file(response.content.iter_chunked(CHUNK_BYTES), ref, path)


async def write_file(chunks: AsyncIterator[bytes], ref: FileRef, path: Path) -> Path:
    """Write beside the target first, then rename: nobody ever sees half a file."""
    digest, sha256 = hashlib.sha256(), ref.sha256
    target = await asyncio.to_thread(_partial_path, path)
    try:
        async for chunk in chunks:
            digest.update(chunk)
            await asyncio.to_thread(target.write, chunk)
        if digest.hexdigest() != sha256:
            raise Unreachable(f"file {sha256[:12]} arrived damaged; fetch it again", sha256=sha256)
        await asyncio.to_thread(_finish, target, path, 0o755 if ref.executable else 0o644)
    finally:
        await asyncio.to_thread(_discard, target)
    return path


async def clone_file(clone: Callable[[Path], Awaitable[bool]], ref: FileRef, path: Path) -> bool:
    """The same with a file that shares its blocks with the stored one; false if `clone` cannot make one."""
    target = await asyncio.to_thread(_partial_path, path)
    try:
        if not await clone(Path(target.name)):
            return False
        await asyncio.to_thread(_finish, target, path, 0o755 if ref.executable else 0o644)
        return True
    finally:
        await asyncio.to_thread(_discard, target)


async def fetch_archive(transport: Transport, query: str, path: Path) -> Path:
    async with transport.open("GET", query, read_s=STREAM_READ_S) as response:
        return await write_archive(response.content.iter_chunked(CHUNK_BYTES), path)


async def write_archive(chunks: AsyncIterator[bytes], path: Path) -> Path:
    """An archive that was cut off never stands under its name."""
    target = await asyncio.to_thread(_partial_path, path)
    try:
        async for chunk in chunks:
            await asyncio.to_thread(target.write, chunk)
        await asyncio.to_thread(_finish, target, path)
    finally:
        await asyncio.to_thread(_discard, target)
    return path


def omitted_cases(path: Path) -> list[str]:
    """The cases that an archive says that it lacks, because their server could not be asked."""
    with gzip.open(path) as archive:
        return msgspec.json.decode(archive.readline(), type=_ArchiveHead).left_out


def cases_begun_by_messages(path: Path) -> dict[str, list[str]]:
    """The cases in an archive that messages began, by their flows: those of one flow are there all or not at all. Each
    is neither called, nor does it mend another, nor is its tree named after it."""
    found: dict[str, list[str]] = {}
    root = ""
    with gzip.open(path) as archive:
        for transport in archive:
            said = msgspec.json.decode(transport, type=_ArchiveLine)
            if said.record == "file":
                break  # all cases come before the first
            root = said.root or root
            if said.kind == "case" and said.id != root:
                case = msgspec.json.decode(said.body, type=_ArchivedCase)
                if case.parent is None and case.mends is None:
                    found.setdefault(case.flow, []).append(said.id)
    return found


def _partial_path(path: Path) -> "tempfile._TemporaryFileWrapper[bytes]":
    path.parent.mkdir(parents=True, exist_ok=True)
    return tempfile.NamedTemporaryFile(prefix=f".{path.name[:40]}.", suffix=".part", dir=path.parent, delete=False)


def _finish(target: "tempfile._TemporaryFileWrapper[bytes]", path: Path, mode: int = 0o644) -> None:
    target.flush()
    os.fsync(target.fileno())
    os.chmod(target.name, mode)
    os.replace(target.name, path)


def _discard(target: "tempfile._TemporaryFileWrapper[bytes]") -> None:
    target.close()
    Path(target.name).unlink(missing_ok=True)
