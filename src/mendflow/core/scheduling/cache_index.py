"""What pilots have in their caches, as they reported it: files by pilot, and pilots by file.

A file is a number, the first sixty bits of its digest. A collision would make a match slightly worse; nothing else
depends on it, since readers compare whole digests. So a million files in ten thousand caches cost only plain
numbers."""

from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from mendflow.core.model.data import CACHE_FILES_MAX, CachedFile, CacheUpdate
from mendflow.core.model.ids import PilotId

KEY_DIGITS = 15


def file_key(digest: str) -> int:
    return int(digest[:KEY_DIGITS], 16)


class PilotCache:
    """The cache of one pilot. Pilots of one `group`, which are on one host, use each other's files as their own. An
    empty group is the pilot's alone."""

    __slots__ = ("files", "group", "pilot", "version")

    def __init__(self, pilot: PilotId) -> None:
        self.pilot = pilot
        self.group = ""
        self.version = 0
        self.files: dict[int, int] = {}  # a file's bytes

    def bytes_of(self, files: Iterable[int]) -> int:
        """How many bytes of these files are here."""
        return sum([size for _, size in self.some(files)])

    def some(self, files: Iterable[int]) -> list[tuple[int, int]]:
        """Those of these files that are here, and their bytes."""
        here = self.files
        return [(file, here[file]) for file in files if file in here]

    def bytes(self) -> int:
        return sum(self.files.values())


class CacheIndex:
    def __init__(self) -> None:
        self._shelves: dict[PilotId, PilotCache] = {}
        self._groups: dict[str, dict[PilotId, PilotCache]] = {}
        self._holders: dict[int, PilotId | dict[PilotId, None]] = {}  # most files have one holder

    def of(self, pilot: PilotId) -> PilotCache | None:
        return self._shelves.get(pilot)

    def hear(self, pilot: PilotId, news: CacheUpdate, group: str) -> bool:
        """Whether the update could be applied: it must start at the version that we have."""
        shelf = self._shelves.get(pilot)
        if shelf is None:
            shelf = self._shelves[pilot] = PilotCache(pilot)
        self._join(shelf, group)
        if news.base == 0:
            self._empty(shelf)
        elif news.base != shelf.version:
            return news.version == shelf.version
        for file in news.added:
            self._put(shelf, file_key(file.sha256), file.bytes)
        for digest in news.gone:
            self._drop(shelf, file_key(digest))
        shelf.version = news.version
        return True

    def forget(self, pilot: PilotId) -> None:
        shelf = self._shelves.pop(pilot, None)
        if shelf is not None:
            self._empty(shelf)
            self._join(shelf, "")

    def nearby(self, shelf: PilotCache) -> Collection[PilotCache]:
        """The caches that the pilot may use as its own, including its own."""
        return self._groups[shelf.group].values() if shelf.group else (shelf,)

    def holders(self, file: int) -> Iterable[PilotId]:
        found = self._holders.get(file, ())
        return (found,) if isinstance(found, str) else found

    def full_update(self, pilot: PilotId, most: int) -> CacheUpdate | None:
        """Everything that is known of a pilot's cache, for another server: at most so many files, with the stored
        prefixes of their digests."""
        shelf = self._shelves.get(pilot)
        if shelf is None:
            return None
        added = [CachedFile(f"{file:0{KEY_DIGITS}x}", size) for file, size in islice(shelf.files.items(), most)]
        return CacheUpdate(version=shelf.version, base=0, added=added)

    def __iter__(self) -> Iterator[PilotCache]:
        return iter(self._shelves.values())

    def _join(self, shelf: PilotCache, group: str) -> None:
        if shelf.group == group:
            return
        if shelf.group:
            left = self._groups[shelf.group]
            del left[shelf.pilot]
            if not left:
                del self._groups[shelf.group]
        if group:
            self._groups.setdefault(group, {})[shelf.pilot] = shelf
        shelf.group = group

    def _empty(self, shelf: PilotCache) -> None:
        for file in shelf.files:
            self._no_holder(file, shelf.pilot)
        shelf.files = {}

    def _put(self, shelf: PilotCache, file: int, size: int) -> None:
        files = shelf.files
        if file not in files:
            if len(files) >= CACHE_FILES_MAX:
                self._drop(shelf, next(iter(files)))
            self._holder(file, shelf.pilot)
        files[file] = size

    def _drop(self, shelf: PilotCache, file: int) -> None:
        if shelf.files.pop(file, None) is not None:
            self._no_holder(file, shelf.pilot)

    def _holder(self, file: int, pilot: PilotId) -> None:
        known = self._holders.get(file)
        if known is None:
            self._holders[file] = pilot
        elif isinstance(known, str):
            self._holders[file] = {known: None, pilot: None}
        else:
            known[pilot] = None

    def _no_holder(self, file: int, pilot: PilotId) -> None:
        known = self._holders[file]
        if isinstance(known, str):
            del self._holders[file]
            return
        del known[pilot]
        if len(known) == 1:
            self._holders[file] = next(iter(known))
