"""Files stored by their content, in a folder.

A file is written under a temporary name, synced, and renamed: so a file that exists is complete, and two writers of the
same content do no harm. A disk or a person may damage it afterwards. So what this process has not written itself, or
what has changed since, is hashed before it is read; a damaged file is put aside, so that it can be stored again."""

import asyncio
import fcntl
import hashlib
import logging
import os
import secrets
import stat
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

from msgspec.structs import replace

from mendflow.core.model.errors import NOT_STORED, NotFound, RequestError, StoreUnavailable, unusable_file
from mendflow.core.model.retention import SweptFiles
from mendflow.core.model.values import FileRef, is_executable
from mendflow.lazy import lazy_pattern
from mendflow.stores.lasting_writes import HashedWriter, make_durable, sync_path, unavailable
from mendflow.stores.local_paths import CHUNK_BYTES, content_of, flaw_now, is_sealed, path_flaw_of
from mendflow.stores.partial_files import PartialFiles
from mendflow.stores.used_files import UsedFiles
from mendflow.stores.verified_files import ANY_CHANGE, FileState, VerifiedFiles, state_by, state_of

log = logging.getLogger("mendflow.files")

_SHA256 = lazy_pattern(r"[0-9a-f]{64}")
_LINK = lazy_pattern(r"[0-9a-f]{16}")
_FICLONE = 0x40049409
SYNCED_TOGETHER = 16
LINKED = ".linked"
"""Suffix of a link in the folder of incoming files."""

VERIFIED_AGAIN_MAX = 10
"""How often a file is hashed anew because it was written meanwhile."""


class FolderFileStore:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._incoming = folder / "incoming"
        self._damaged = folder / "damaged"
        self._parts = PartialFiles(folder / "parts")
        self._condemned = folder / "condemned"
        self._verified = VerifiedFiles(folder / "verified")
        self._used = UsedFiles(folder / "used")
        self._durable_folders: set[str] = set()
        self._changing = threading.Lock()

    def open(self) -> None:
        self._incoming.mkdir(parents=True, exist_ok=True)
        for leftover in self._incoming.iterdir():
            leftover.unlink(missing_ok=True)
        self._parts.tidy()
        if self._condemned.is_dir():  # a sweep was cut short: what it had not removed is where it was
            for path in self._condemned.iterdir():
                self._take_back(path.name)

    async def keep(self, name: str, chunks: AsyncIterator[bytes], *, sha256: str = "") -> FileRef:
        """Store a file on the server; refused if `sha256` is given and does not match."""
        if sha256:
            self._place(sha256)
        self._incoming.mkdir(parents=True, exist_ok=True)
        draft = self._incoming / secrets.token_hex(8)
        try:
            with draft.open("wb") as out:
                writer = HashedWriter(out)
                async for chunk in _received(chunks, name):
                    await writer.take(chunk)
                writer.flush()
                await asyncio.to_thread(make_durable, out.fileno())
            found = writer.digest()
            if sha256:
                _demand_digest(found, sha256, name)
            return await asyncio.to_thread(self._settle, draft, found, writer.bytes, name)
        except OSError as error:
            raise unavailable(error, self._folder) from error
        finally:
            draft.unlink(missing_ok=True)

    async def keep_part(
        self, name: str, chunks: AsyncIterator[bytes], *, sha256: str, offset: int, source: str
    ) -> FileRef:
        """Go on at this byte with a file that comes piece by piece. It is stored when its end has come and it has this
        digest; what comes before a break stays for the next try."""
        self._place(sha256)
        try:
            async with self._parts.receive(sha256, source, _received(chunks, name), offset) as whole:
                return await asyncio.to_thread(self._settle, whole.path, sha256, whole.bytes, name)
        except OSError as error:
            raise unavailable(error, self._folder) from error

    async def part_bytes(self, sha256: str, source: str) -> int:
        """How much of a file that is not stored yet has come from this source."""
        self._place(sha256)
        return self._parts.bytes_of(sha256, source)

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
                list(pool.map(sync_path, drafts.values()))
                states = {sha256: self._put_in_place(draft, sha256) for sha256, draft in drafts.items()}
                list(pool.map(sync_path, folders))
            for sha256, state in states.items():
                self._remember(sha256, state)
        except OSError as error:
            raise unavailable(error, self._folder) from error
        finally:
            for draft in drafts.values():
                draft.unlink(missing_ok=True)

    async def keep_path(self, path: str) -> FileRef:
        """Store a copy of a file on this machine."""
        return await asyncio.to_thread(self._keep_path, Path(path))

    async def keep_linked(self, name: str, link: str, sha256: str) -> FileRef:
        """Store a file that somebody on this machine has linked into the folder of incoming files, without copying it
        unless somebody may still write to it. Whoever may write to that folder may do so. It is refused if it does not
        have this digest."""
        return await asyncio.to_thread(self._keep_linked, name, link, sha256)

    def _keep_linked(self, name: str, link: str, sha256: str) -> FileRef:
        self._place(sha256)
        if not _LINK.fullmatch(link):
            raise RequestError(f"{link[:80]!r} is no name of a link: 16 digits, 0-9 and a-f")
        draft = self._incoming / f"{link}{LINKED}"
        try:
            source = os.fdopen(os.open(draft, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")
        except OSError as error:
            raise NotFound(f"nothing is linked as {draft.name}: send the content") from error
        try:
            with source:
                if not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
                    raise RequestError(f"{name} is not a file: send the content")
                if not is_sealed(source.fileno()):  # else somebody could change what is stored
                    return replace(self._copied(source, draft, sha256=sha256), name=name)
                return self._moved(source, draft, FileRef(sha256=sha256, bytes=0, name=name))
        except OSError as error:
            raise unavailable(error, self._folder) from error
        finally:
            draft.unlink(missing_ok=True)

    def _moved(self, source: BufferedReader, draft: Path, ref: FileRef) -> FileRef:
        """Store a file that nobody writes to, without copying it."""
        before = os.fstat(source.fileno())
        with ThreadPoolExecutor(1) as pool:  # the disk writes what is hashed meanwhile
            durable = pool.submit(make_durable, source.fileno())
            _demand_digest(hashlib.file_digest(source, "sha256").hexdigest(), ref.sha256, ref.name)
            durable.result()
        state = self._put_in_place(draft, ref.sha256)
        sync_path(self._place(ref.sha256).parent)
        if state[1:3] == (before.st_size, before.st_mtime_ns):  # else somebody wrote to it: it is hashed again
            self._remember(ref.sha256, (*state[:3], ANY_CHANGE))  # whoever linked it removes the other link later
        return replace(ref, bytes=before.st_size)

    async def path_flaw(self, path: str) -> str:
        """Why this path of this machine cannot be stored now; empty if it can."""
        return await asyncio.to_thread(flaw_now, Path(path))

    def _keep_path(self, path: Path) -> FileRef:
        try:
            source = path.open("rb")
        except OSError as error:
            raise NotFound(path_flaw_of(path, error)) from error
        try:
            with source:
                ref = self._copied(source, path)
                return replace(ref, executable=is_executable(os.fstat(source.fileno()).st_mode))
        except OSError as error:
            raise unavailable(error, self._folder) from error

    def _copied(self, source: BufferedReader, path: Path, *, sha256: str = "") -> FileRef:
        """Store a copy; refused if `sha256` is given and does not match."""
        draft = self._incoming / secrets.token_hex(8)
        digest = hashlib.sha256()
        size = 0
        try:
            with draft.open("wb") as out:
                for chunk in content_of(source, path):
                    digest.update(chunk)
                    size += len(chunk)
                    out.write(chunk)
                out.flush()
                make_durable(out.fileno())
            if sha256:
                _demand_digest(digest.hexdigest(), sha256, path.name)
            return self._settle(draft, digest.hexdigest(), size, path.name)
        finally:
            draft.unlink(missing_ok=True)

    def _settle(self, draft: Path, sha256: str, size: int, name: str) -> FileRef:
        state = self._put_in_place(draft, sha256)
        sync_path(self._place(sha256).parent)
        self._remember(sha256, state)
        return FileRef(sha256=sha256, bytes=size, name=name)

    def _put_in_place(self, draft: Path, sha256: str) -> FileState:
        """The new file takes the place of one that is there: that one may be damaged. Its name lasts when its folder is
        synced."""
        place = self._place(sha256)
        self._make_folder(place.parent)
        with self._changing:
            os.replace(draft, place)
            return state_of(place)

    def _make_folder(self, folder: Path) -> None:
        """Make a folder that lasts. One that is there may have been made a moment ago, and not be synced yet."""
        try:
            folder.mkdir()
        except FileExistsError:
            if folder.name in self._durable_folders:
                return
        sync_path(self._folder)
        self._durable_folders.add(folder.name)

    def _remember(self, sha256: str, state: FileState) -> None:
        with self._changing:
            self._verified.remember(sha256, state)

    def _is_verified(self, sha256: str) -> bool:
        try:
            return self._verified.holds(sha256, self._wanted(sha256))
        except OSError:
            return False

    def _wanted(self, sha256: str) -> FileState:
        """The state of a file that somebody asks for: it is not removed for a while. Raises FileNotFoundError."""
        state = self._found(sha256)
        if self._used.is_noted(sha256):
            return state
        self._used.note(sha256)
        return self._found(sha256)  # whoever removes it may not have seen the note

    def _found(self, sha256: str) -> FileState:
        """The state of a file, which is taken back if it was put aside to be removed. Raises FileNotFoundError."""
        place = self._place(sha256)
        try:
            return state_of(place)
        except FileNotFoundError:
            self._take_back(sha256)
            return state_of(place)

    def _opened(self, sha256: str) -> BufferedReader:
        """A file that was there a moment ago, open for reading. Raises FileNotFoundError."""
        place = self._place(sha256)
        try:
            return place.open("rb")
        except FileNotFoundError:
            self._take_back(sha256)
            return place.open("rb")

    def _take_back(self, sha256: str) -> None:
        """Put a file that was put aside to be removed where it was, unless somebody else has done that."""
        with suppress(FileNotFoundError):
            os.rename(self._condemned / sha256, self._place(sha256))

    async def stored_bytes(self, digests: Collection[str]) -> dict[str, int]:
        """The sizes of those of these files that are stored. That somebody asks is not noted: they may be removed."""
        return await asyncio.to_thread(self._stored_bytes, digests)

    def _stored_bytes(self, digests: Collection[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for sha256 in digests:
            try:
                found[sha256] = self._place(sha256).stat().st_size
            except OSError:
                continue  # it is not stored, or nobody can tell
        return found

    async def sweep(self, digests: Collection[str], unused_since: int) -> SweptFiles:
        """Remove these files, but for those that were stored or asked for since then."""
        return await asyncio.to_thread(self._sweep, digests, unused_since)

    async def drop_removed(self) -> None:
        """All servers that use this folder have swept it."""

    def _sweep(self, digests: Collection[str], unused_since: int) -> SweptFiles:
        removed = freed_bytes = 0
        in_use: list[str] = []
        try:
            self._condemned.mkdir(parents=True, exist_ok=True)
            for sha256 in digests:
                size = self._remove(sha256, unused_since)
                if size is None:
                    in_use.append(sha256)
                elif size >= 0:
                    removed, freed_bytes = removed + 1, freed_bytes + size
            self._used.forget_before(unused_since)
        except OSError as error:
            raise unavailable(error, self._folder) from error
        return SweptFiles(removed=removed, bytes=freed_bytes, in_use=in_use)

    def _remove(self, sha256: str, unused_since: int) -> int | None:
        """The size of a file that was removed; -1 if there is none, None if it is in use. One that is in use stays in
        its place; any other is put aside first: see used_files."""
        place, aside = self._place(sha256), self._condemned / sha256
        try:
            if self._is_used(sha256, place.stat(), unused_since):
                return None
            os.rename(place, aside)
        except FileNotFoundError:
            return -1
        try:
            status = aside.stat()
        except FileNotFoundError:
            return None  # somebody has taken it back
        if self._is_used(sha256, status, unused_since):
            self._take_back(sha256)
            return None
        aside.unlink(missing_ok=True)  # somebody may have taken it back
        if place.exists():
            return None
        self._verified.forget(sha256)
        return status.st_size

    def _is_used(self, sha256: str, status: os.stat_result, unused_since: int) -> bool:
        return status.st_mtime_ns >= unused_since * 1_000_000 or self._used.used_since(sha256, unused_since)

    async def read(self, sha256: str, offset: int = 0) -> AsyncGenerator[bytes, None]:
        with await self._whole(sha256) as source:
            source.seek(offset)
            while chunk := await asyncio.to_thread(source.read, CHUNK_BYTES):
                yield chunk

    async def _whole(self, sha256: str) -> BufferedReader:
        """A stored file with the right content, open for reading."""
        while True:
            if await self.size(sha256) is not None:
                with suppress(FileNotFoundError):  # it was removed, or put aside as damaged, a moment ago
                    return self._opened(sha256)
            if flaw := await self.stored_flaw(sha256):  # none: it was stored again meanwhile
                raise unusable_file(sha256, flaw)

    async def size(self, sha256: str) -> int | None:
        """The size of a stored file; None if there is none with the right content."""
        place = self._place(sha256)
        try:
            state = self._wanted(sha256)
            if self._verified.holds(sha256, state):
                return state[1]
            whole = await asyncio.to_thread(self._verify, place, sha256)
            return whole[1] if whole is not None else None
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unavailable(error, self._folder) from error

    def _verify(self, place: Path, sha256: str) -> FileState | None:
        """Hash a file; its state if it is whole. A damaged one is put aside, and one that was stored again meanwhile is
        hashed again."""
        for _ in range(VERIFIED_AGAIN_MAX):
            with self._opened(sha256) as source:
                state = state_by(os.fstat(source.fileno()))
                found = hashlib.file_digest(source, "sha256").hexdigest()
            if found == sha256:
                self._make_folder(place.parent)
                sync_path(place.parent)  # whoever put it there may not have got so far
                self._remember(sha256, state)
                return state
            if self._put_aside(place, sha256, state):
                log.warning("the stored file %s is damaged: it is put aside into %s", place, self._damaged)
                return None
        raise StoreUnavailable(f"{place} is written again and again while it is read; nobody should write to it")

    def _put_aside(self, place: Path, sha256: str, state: FileState) -> bool:
        with self._changing:
            if state_of(place) != state:
                return False
            self._damaged.mkdir(exist_ok=True)
            os.replace(place, self._damaged / sha256)
            return True

    async def clone(self, sha256: str, target: Path) -> bool:
        """Write a stored file to a path of this machine such that both share their blocks until one of them is written
        to. False where the file system cannot do that, or the file is not here: then `read` has its content."""
        size = await self.size(sha256)
        return size is not None and await asyncio.to_thread(self._clone, sha256, target, size)

    def _clone(self, sha256: str, target: Path, size: int) -> bool:
        try:
            with self._opened(sha256) as known, target.open("wb") as made:
                fcntl.ioctl(made.fileno(), _FICLONE, known.fileno())
                return os.fstat(made.fileno()).st_size == size
        except OSError:
            return False

    async def stored_flaw(self, sha256: str, bytes: int | None = None) -> str:
        """Why a stored file of this size cannot be used; empty if it can. A large one that nobody has written to since
        it was last hashed is not hashed again for that."""
        place = self._place(sha256)
        try:
            state = self._wanted(sha256)
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
            raise unavailable(error, self._folder) from error
        aside = self._damaged / sha256
        return f"was damaged, and is put aside as {aside}" if aside.exists() else NOT_STORED

    def _place(self, sha256: str) -> Path:
        if not _SHA256.fullmatch(sha256):
            raise RequestError(f"{sha256[:80]!r} is not a sha-256 digest: 64 digits, 0-9 and a-f")
        return self._folder / sha256[:2] / sha256


def _demand_digest(found: str, sha256: str, name: str) -> None:
    if found != sha256:
        raise RequestError(f"the content of {name} has the digest {found}, not {sha256} as announced; send it again")


async def _received(chunks: AsyncIterator[bytes], name: str) -> AsyncIterator[bytes]:
    """What a client sends. If it stops in the middle, nothing is wrong with the store."""
    try:
        async for chunk in chunks:
            yield chunk
    except OSError as error:
        raise RequestError(f"the content of {name} did not arrive completely ({error}); send it again") from error
