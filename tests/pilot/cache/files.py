"""Files for caches to keep, and caches to keep them."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from mendflow.core.model.data import Neighbour
from mendflow.core.model.ids import PilotId
from mendflow.pilot.cache.disk import DiskCache
from mendflow.pilot.cache.shared import CacheOptions, SharedCache


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def bringing(content: bytes) -> Callable[[str], None]:
    def fetch(target: str) -> None:
        Path(target).write_bytes(content)

    return fetch


def never(target: str) -> None:
    raise AssertionError("nobody should have fetched this")


def fill(cache: DiskCache, content: bytes) -> str:
    """Have it brought as for a job that has ended since."""
    digest = digest_of(content)
    cache.pin(digest)
    cache.take_in(digest, bringing(content), size=len(content))
    cache.release([digest])
    return digest


def read(cache: DiskCache, digest: str) -> bytes | None:
    """What a job would be given now, from this cache alone."""
    cache.pin(digest)
    try:
        entry = cache.lookup(digest)
        return None if entry is None else Path(entry.path).read_bytes()
    finally:
        cache.release([digest])


def folder_bytes(*folders: Path) -> int:
    """What the files in these folders take together, each file once however many links there are."""
    files = {}
    for folder in folders:
        for entry in os.scandir(folder):
            status = entry.stat(follow_symlinks=False)
            files[status.st_ino] = status.st_size
    return sum(files.values())


def pilots_of_a_host(tmp_path: Path, count: int, options: CacheOptions) -> list[SharedCache]:
    """Each knows all the others."""
    folders = [tmp_path / f"p{number}" for number in range(count)]
    for folder in folders:
        folder.mkdir(exist_ok=True)
    caches = [SharedCache(folder, options, host="here", first_version=1, patience_s=0) for folder in folders]
    for number, cache in enumerate(caches):
        others = [
            Neighbour(PilotId(f"p{other}"), "here", str(folder))
            for other, folder in enumerate(folders)
            if other != number
        ]
        cache.set_neighbours(others, mark=1)
    return caches
