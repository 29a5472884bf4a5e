"""What staging asks of a cache, and all that it knows of one.

A digest is pinned before it is asked for and released when nobody needs the file any more; in between it does not go.
Whatever a cache gives was hashed on this machine, or it is not given."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import NamedTuple, Protocol

from mendflow.transfer.fetch import always

Fetch = Callable[[str], None]
"""Brings the content to this path, whole and checked, or raises. The cache names the same path each time for the same
digest, and leaves alone what stands beside it with `.part` behind its name: what was brought so far is not brought
again, not even after the pilot was killed."""


class CacheOrigin(StrEnum):
    """Where a file was when it was asked for."""

    OWN = "own"  # in this cache
    SHARED = "shared"  # in another pilot's
    FETCHED = "fetched"  # in neither


class CacheEntry(NamedTuple):
    """A file in the cache, which others only read."""

    path: str
    bytes: int
    origin: CacheOrigin


class Cache(Protocol):
    """Every method may be called from several threads at a time, and may block."""

    def pin(self, digest: str) -> None:
        """Keep the file, once it is here, until it was released as often as it was pinned."""
        ...

    def release(self, digests: Iterable[str]) -> None: ...

    def using(self, digest: str) -> AbstractContextManager[None]:
        """Pin it for as long as it takes to bring it and to give it. Others wait for its room meanwhile; so whoever
        holds one of these waits for nothing else."""
        ...

    def lookup(self, digest: str) -> CacheEntry | None:
        """The file if it is in this cache."""
        ...

    def take_in(self, digest: str, fetch: Fetch, *, size: int = 0, wanted: Callable[[], bool] = always) -> CacheEntry:
        """The file: from this cache, from a neighbour's, or by `fetch`, whose exceptions pass. Asked by several at a
        time it is brought once. `size` is how many bytes it will have, where that is known: then it waits until
        there is room for it, unless there can be none or it is no longer `wanted`."""
        ...

    def adopt(self, path: str, digest: str) -> None:
        """Keep what a job has made, if there is room: a later job will ask for it. The caller has hashed it, and may
        change or remove the file at `path` afterwards."""
        ...

    def give(self, digest: str, target: str, *, link: bool) -> None:
        """Put a pinned file that is here into a job's folder: a copy of its own, or a link for one that only reads."""
        ...
