"""The cache as staging sees it.

Pin a digest before you look it up, and release it when the file is no longer needed; a pinned file is not evicted. A
cache returns only files that were hashed on this machine."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import NamedTuple, Protocol

from mendflow.transfer.fetch import always

Fetch = Callable[[str], None]
"""Fetches the content to this path, complete and verified, or raises. For one digest the path is always the same; the
cache leaves PATH.part alone, so that a transfer that broke off continues, also after the pilot was killed."""


class CacheOrigin(StrEnum):
    """Where a file was when it was requested."""

    OWN = "own"  # in this cache
    SHARED = "shared"  # in a neighbour's cache, or a server's files on this disk
    FETCHED = "fetched"  # in neither


class LinkState(StrEnum):
    """What became of a file while a job had a link to it. If only one job had one, that job is its holder."""

    INTACT = "intact"
    CHANGED = "changed"
    CHANGED_BY_HOLDER = "changed by holder"


class CacheEntry(NamedTuple):
    """A file in the cache; read-only."""

    path: str
    bytes: int
    origin: CacheOrigin


class Cache(Protocol):
    """Every method is thread-safe and may block."""

    def pin(self, digest: str) -> None:
        """Keep the file until it has been released as often as it was pinned."""
        ...

    def release(self, digests: Iterable[str]) -> None: ...

    def using(self, digest: str) -> AbstractContextManager[None]:
        """Pin it while it is fetched and handed over. Others may wait for its space, so the holder must not wait for
        anything else."""
        ...

    def lookup(self, digest: str) -> CacheEntry | None:
        """The file, if it is in this cache."""
        ...

    def take_in(self, digest: str, fetch: Fetch, *, size: int = 0, wanted: Callable[[], bool] = always) -> CacheEntry:
        """The file: from this cache, from a neighbour's, or by `fetch`, whose exceptions propagate. Concurrent calls
        for one digest fetch it once. If `size` is known, the call waits for space, unless there can be none or `wanted`
        turns false."""
        ...

    def adopt(self, path: str, digest: str) -> None:
        """Keep a file that a job made, if there is space: a later job may read it. The caller has hashed it, and may
        change or remove the file at `path` afterwards."""
        ...

    def give(self, digest: str, target: str, *, link: bool) -> None:
        """Put a pinned file into a job's folder: as a copy, or as a link if the job only reads it."""
        ...

    def check_link(self, digest: str, target: str, inode: int) -> LinkState:
        """Look at a link that a job was given, when the job has ended. A file that was changed leaves the cache."""
        ...

    def unlink(self, digest: str, target: str) -> None:
        """Remove a link that a job was given."""
        ...
