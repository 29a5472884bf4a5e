"""Files stored by their content, in a folder.

A file is written under a temporary name, synced, and renamed: so a file that exists is complete, and two writers of the
same content do no harm."""

import asyncio
import errno
import hashlib
import os
import re
import secrets
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from msgspec.structs import replace

from mendflow.core.model.errors import NotFound, RequestError, StoreUnavailable
from mendflow.core.model.values import FileRef, is_executable

_SHA256 = re.compile(r"[0-9a-f]{64}")
_CHUNK_BYTES = 1 << 20
SYNCED_TOGETHER = 16
NAMES_MAX = 10_000
"""How many names of a folder a misspelt one is compared with."""


class FolderFileStore:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._incoming = folder / "incoming"

    def open(self) -> None:
        self._incoming.mkdir(parents=True, exist_ok=True)
        for leftover in self._incoming.iterdir():
            leftover.unlink(missing_ok=True)

    async def keep(self, name: str, chunks: AsyncIterator[bytes], *, sha256: str = "") -> FileRef:
        """Store a file on the server; refused if `sha256` is given and does not match."""
        if sha256:
            self._place(sha256)
        self._incoming.mkdir(parents=True, exist_ok=True)
        draft = self._incoming / secrets.token_hex(8)
        digest = hashlib.sha256()
        size = 0
        try:
            with draft.open("wb") as out:
                async for chunk in chunks:
                    digest.update(chunk)
                    size += len(chunk)
                    out.write(chunk)
                await asyncio.to_thread(_make_durable, out.fileno())
            found = digest.hexdigest()
            if sha256 and found != sha256:
                raise RequestError(
                    f"the content of {name} has the digest {found}, not {sha256} as announced; send it again"
                )
            return await asyncio.to_thread(self._settle, draft, found, size, name)
        except OSError as error:
            raise _unavailable(error, self._folder) from error
        finally:
            draft.unlink(missing_ok=True)

    async def keep_many(self, contents: Mapping[str, bytes]) -> None:
        """Store small files, by their SHA-256: all of them, or none if one has another."""
        await asyncio.to_thread(self._keep_many, contents)

    def _keep_many(self, contents: Mapping[str, bytes]) -> None:
        for sha256, content in contents.items():
            if hashlib.sha256(content).hexdigest() != sha256:
                raise RequestError(f"a content does not have the digest {sha256[:80]!r} as announced; send it again")
        new = {self._place(sha256): content for sha256, content in contents.items()}
        new = {place: content for place, content in new.items() if not place.exists()}
        drafts = {place: self._incoming / secrets.token_hex(8) for place in new}
        try:
            self._incoming.mkdir(parents=True, exist_ok=True)
            for place, draft in drafts.items():
                draft.write_bytes(new[place])
            folders = {place.parent for place in new}
            with ThreadPoolExecutor(SYNCED_TOGETHER) as pool:
                # Syncs that run side by side share the disk's work.
                list(pool.map(_sync_path, drafts.values()))
                for place, draft in drafts.items():
                    place.parent.mkdir(exist_ok=True)
                    os.replace(draft, place)
                list(pool.map(_sync_path, folders))
        except OSError as error:
            raise _unavailable(error, self._folder) from error
        finally:
            for draft in drafts.values():
                draft.unlink(missing_ok=True)

    async def keep_path(self, path: str) -> FileRef:
        """Store a copy of a file on this machine."""
        return await asyncio.to_thread(self._keep_path, Path(path))

    async def path_flaw(self, path: str) -> str:
        """Why this path of this machine cannot be stored now; empty if it can."""
        return await asyncio.to_thread(_flaw_now, Path(path))

    def _keep_path(self, path: Path) -> FileRef:
        draft = self._incoming / secrets.token_hex(8)
        digest = hashlib.sha256()
        size = 0
        try:
            source = path.open("rb")
        except OSError as error:
            raise NotFound(_path_flaw(path, error)) from error
        try:
            with source, draft.open("wb") as out:
                while chunk := source.read(_CHUNK_BYTES):
                    digest.update(chunk)
                    size += len(chunk)
                    out.write(chunk)
                out.flush()
                _make_durable(out.fileno())
                mode = os.fstat(source.fileno()).st_mode
            ref = self._settle(draft, digest.hexdigest(), size, path.name)
            return replace(ref, executable=is_executable(mode))
        except OSError as error:
            raise _unavailable(error, self._folder) from error
        finally:
            draft.unlink(missing_ok=True)

    def _settle(self, draft: Path, sha256: str, size: int, name: str) -> FileRef:
        place = self._place(sha256)
        if not place.exists():
            place.parent.mkdir(exist_ok=True)
            os.replace(draft, place)
            _sync_path(place.parent)
        return FileRef(sha256=sha256, bytes=size, name=name)

    async def kept(self, sha256: str) -> AsyncIterator[bytes]:
        place = self._place(sha256)
        try:
            source = place.open("rb")
        except FileNotFoundError as error:
            raise NotFound(f"no file with the digest {sha256} is stored here") from error
        with source:
            while chunk := await asyncio.to_thread(source.read, _CHUNK_BYTES):
                yield chunk

    async def size(self, sha256: str) -> int | None:
        try:
            return self._place(sha256).stat().st_size
        except FileNotFoundError:
            return None

    def _place(self, sha256: str) -> Path:
        if not _SHA256.fullmatch(sha256):
            raise RequestError(f"{sha256[:80]!r} is not a sha-256 digest: 64 digits, 0-9 and a-f")
        return self._folder / sha256[:2] / sha256


def _flaw_now(path: Path) -> str:
    try:
        path.open("rb").close()
        return ""
    except OSError as error:
        return _path_flaw(path, error)


def _path_flaw(path: Path, error: OSError) -> str:
    """What is wrong with a path that could not be opened. A misspelt one is told with the name that was meant."""
    if not isinstance(error, FileNotFoundError):
        return f"{path} cannot be read: {error.strerror}"
    missing = path
    while not missing.parent.exists():
        missing = missing.parent
    try:
        close = get_close_matches(missing.name, islice(os.listdir(missing.parent), NAMES_MAX), 1)
    except OSError:
        close = []
    meant = f" (did you mean {missing.parent / close[0]}?)" if close else ""
    if missing != path:
        return f"there is no file {path}: there is no folder {missing}{meant}"
    return f"there is no file {path}{meant}"


def _sync_path(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        _make_durable(fd)
    finally:
        os.close(fd)


def _make_durable(fd: int) -> None:
    os.fsync(fd)


def _unavailable(error: OSError, folder: Path) -> StoreUnavailable:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreUnavailable(f"{folder}: the disk is full; free some space, nothing was stored")
    return StoreUnavailable(f"{folder}: {error.strerror}")
