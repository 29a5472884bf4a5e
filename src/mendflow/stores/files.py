"""Files stored by their content, in a folder.

A file is written under a temporary name, synced, and renamed: so a file that exists is complete, and two writers of the
same content do no harm. A disk or a person may damage it afterwards. So what this process has not written itself, or
what has changed since, is hashed before it is read; a damaged file is put aside, so that it can be stored again."""

import asyncio
import errno
import hashlib
import logging
import os
import secrets
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from msgspec.structs import replace

from mendflow.core.model.errors import NotFound, RequestError, StoreUnavailable, unusable_file
from mendflow.core.model.values import FileRef, is_executable
from mendflow.lazy import lazy_pattern
from mendflow.stores.verified_files import FileState, VerifiedFiles

log = logging.getLogger("mendflow.files")

_SHA256 = lazy_pattern(r"[0-9a-f]{64}")
_CHUNK_BYTES = 1 << 20
SYNCED_TOGETHER = 16
NAMES_MAX = 10_000
"""How many names of a folder a misspelt one is compared with."""

VERIFIED_AGAIN_MAX = 10
"""How often a file is hashed anew because it was written meanwhile."""


class FolderFileStore:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._incoming = folder / "incoming"
        self._damaged = folder / "damaged"
        self._verified = VerifiedFiles(folder / "verified")
        self._durable_folders: set[str] = set()
        self._changing = threading.Lock()

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
                async for chunk in _received(chunks, name):
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
        new = {sha256: self._place(sha256) for sha256 in contents if not self._is_verified(sha256)}
        drafts = {sha256: self._incoming / secrets.token_hex(8) for sha256 in new}
        try:
            self._incoming.mkdir(parents=True, exist_ok=True)
            for sha256, draft in drafts.items():
                draft.write_bytes(contents[sha256])
            folders = {place.parent for place in new.values()}
            with ThreadPoolExecutor(SYNCED_TOGETHER) as pool:
                # Syncs that run side by side share the disk's work.
                list(pool.map(_sync_path, drafts.values()))
                states = {sha256: self._put_in_place(draft, sha256) for sha256, draft in drafts.items()}
                list(pool.map(_sync_path, folders))
            for sha256, state in states.items():
                self._remember(sha256, state)
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
                for chunk in _read(source, path):
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
        state = self._put_in_place(draft, sha256)
        _sync_path(self._place(sha256).parent)
        self._remember(sha256, state)
        return FileRef(sha256=sha256, bytes=size, name=name)

    def _put_in_place(self, draft: Path, sha256: str) -> FileState:
        """The new file takes the place of one that is there: that one may be damaged. Its name lasts when its folder is
        synced."""
        place = self._place(sha256)
        self._make_folder(place.parent)
        with self._changing:
            os.replace(draft, place)
            return _state_of(place)

    def _make_folder(self, folder: Path) -> None:
        """Make a folder that lasts. One that is there may have been made a moment ago, and not be synced yet."""
        try:
            folder.mkdir()
        except FileExistsError:
            if folder.name in self._durable_folders:
                return
        _sync_path(self._folder)
        self._durable_folders.add(folder.name)

    def _remember(self, sha256: str, state: FileState) -> None:
        with self._changing:
            self._verified.remember(sha256, state)

    def _is_verified(self, sha256: str) -> bool:
        try:
            return self._verified.holds(sha256, _state_of(self._place(sha256)))
        except OSError:
            return False

    async def read(self, sha256: str) -> AsyncGenerator[bytes, None]:
        while await self.size(sha256) is None:
            if flaw := await self.stored_flaw(sha256):  # none: it was stored again meanwhile
                raise unusable_file(sha256, flaw)
        with self._place(sha256).open("rb") as source:
            while chunk := await asyncio.to_thread(source.read, _CHUNK_BYTES):
                yield chunk

    async def size(self, sha256: str) -> int | None:
        """The size of a stored file; None if there is none with the right content."""
        place = self._place(sha256)
        try:
            state = _state_of(place)
            if self._verified.holds(sha256, state):
                return state[1]
            whole = await asyncio.to_thread(self._verify, place, sha256)
            return whole[1] if whole is not None else None
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unavailable(error, self._folder) from error

    def _verify(self, place: Path, sha256: str) -> FileState | None:
        """Hash a file; its state if it is whole. A damaged one is put aside, and one that was stored again meanwhile is
        hashed again."""
        for _ in range(VERIFIED_AGAIN_MAX):
            with place.open("rb") as source:
                state = _state(os.fstat(source.fileno()))
                found = hashlib.file_digest(source, "sha256").hexdigest()
            if found == sha256:
                self._make_folder(place.parent)
                _sync_path(place.parent)  # whoever put it there may not have got so far
                self._remember(sha256, state)
                return state
            if self._put_aside(place, sha256, state):
                log.warning("the stored file %s is damaged: it is put aside into %s", place, self._damaged)
                return None
        raise StoreUnavailable(f"{place} is written again and again while it is read; nobody should write to it")

    def _put_aside(self, place: Path, sha256: str, state: FileState) -> bool:
        with self._changing:
            if _state_of(place) != state:
                return False
            self._damaged.mkdir(exist_ok=True)
            os.replace(place, self._damaged / sha256)
            return True

    async def stored_flaw(self, sha256: str, bytes: int | None = None) -> str:
        """Why a stored file of this size cannot be used; empty if it can. A large one that nobody has written to since
        it was last hashed is not hashed again for that."""
        place = self._place(sha256)
        try:
            state = _state_of(place)
            if bytes not in (None, state[1]):
                return f"is damaged: it has {state[1]} bytes instead of {bytes}"
            if (
                self._verified.was_whole(sha256, state)
                or await asyncio.to_thread(self._verify, place, sha256) is not None
            ):
                return ""
        except FileNotFoundError:
            pass
        except OSError as error:
            raise _unavailable(error, self._folder) from error
        aside = self._damaged / sha256
        return f"was damaged, and is put aside as {aside}" if aside.exists() else "is not stored here"

    def _place(self, sha256: str) -> Path:
        if not _SHA256.fullmatch(sha256):
            raise RequestError(f"{sha256[:80]!r} is not a sha-256 digest: 64 digits, 0-9 and a-f")
        return self._folder / sha256[:2] / sha256


def _state_of(place: Path) -> FileState:
    return _state(place.stat())


def _state(status: os.stat_result) -> FileState:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


async def _received(chunks: AsyncIterator[bytes], name: str) -> AsyncIterator[bytes]:
    """What a client sends. If it stops in the middle, nothing is wrong with the store."""
    try:
        async for chunk in chunks:
            yield chunk
    except OSError as error:
        raise RequestError(f"the content of {name} did not arrive completely ({error}); send it again") from error


def _read(source: BinaryIO, path: Path) -> Iterator[bytes]:
    """What is in a file of this machine. If it cannot be read, nothing is wrong with the store."""
    try:
        while chunk := source.read(_CHUNK_BYTES):
            yield chunk
    except OSError as error:
        raise NotFound(_path_flaw(path, error)) from error


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
