"""One scan of a watched folder, and what is remembered between scans.

Files are independent: one that cannot be added is reported and the others are added. A file that has changed since it
was added is treated as new: when it is stable it is read, and the catalogue says whether its content is still the same.
What is remembered may be lost: then a scan takes a little longer."""

import fnmatch
from collections.abc import Collection, Iterable
from typing import Final, Protocol

from mendflow.core.data.data_set import DataSet
from mendflow.core.data.name_mapping import name_at
from mendflow.core.model.data import LogicalFile, Replica, StorageElement
from mendflow.core.model.data_sets import FolderWatch, WatchView
from mendflow.core.model.errors import RequestError, StoreUnavailable
from mendflow.core.model.ids import Instant
from mendflow.core.model.values import FileRef
from mendflow.services.base.contracts import Clock
from mendflow.services.base.notices import Notices
from mendflow.services.data.sets.service import DataSets
from mendflow.services.data.watches.storage import ListedFile, StorageReader, StorageUnavailable

SENTENCES_MAX: Final = 3
"""For how many files problems are reported one by one; the others are counted."""


class FileAdder(Protocol):
    """What watches need of the catalogue."""

    async def add(self, given: LogicalFile) -> LogicalFile: ...


class ScanState:
    """What is remembered of the files of a watch, by their paths."""

    def __init__(self) -> None:
        self.since: dict[str, tuple[str, Instant]] = {}  # its identity, and since when it has that
        self.taken: dict[str, str] = {}  # its identity when it was found to be the one in the set
        self.refused: dict[str, tuple[str, str]] = {}  # its identity when it was refused, and why
        self.unread: dict[str, str] = {}  # why it could not be read
        self._element: StorageElement | None = None  # as it was when they were refused

    def seen_on(self, element: StorageElement) -> None:
        """Consider again what was left out if the element has changed: its rules may name those files now."""
        if self._element != element:
            self.refused.clear()
        self._element = element

    def only(self, paths: Collection[str]) -> None:
        """Forget all files except these."""
        for kept in (self.since, self.taken, self.refused, self.unread):
            for path in kept.keys() - paths:
                del kept[path]

    def refuses(self, seen: ListedFile) -> bool:
        refused = self.refused.get(seen.path)
        return refused is not None and refused[0] == seen.identity

    def settled(self, seen: ListedFile, now: Instant, stable_ms: int) -> bool:
        """Whether the file has not changed for long enough."""
        looks, since = self.since.get(seen.path, ("", now))
        if looks != seen.identity:
            self.since[seen.path] = (seen.identity, since := now)
        return now - since >= stable_ms

    def same(self, seen: ListedFile, known: FileRef) -> bool:
        """Whether a file of the set has not changed."""
        return seen.bytes == known.bytes and self.taken.setdefault(seen.path, seen.identity) == seen.identity

    def problem(self) -> str:
        return join_few([*(why for _, why in self.refused.values()), *self.unread.values()])


class FolderScanner:
    def __init__(
        self, *, clock: Clock, sets: DataSets, catalogue: FileAdder, elements: StorageReader, notices: Notices
    ) -> None:
        self._clock = clock
        self._sets = sets
        self._catalogue = catalogue
        self._elements = elements
        self._notices = notices

    async def look(self, watch: FolderWatch, element: StorageElement, memory: ScanState) -> WatchView:
        """Scan the folder. Raises StorageUnavailable if the element does not answer."""
        found = await self._elements.list(element, watch.prefix)
        state = await self._sets.find(watch.data_set) or DataSet(name=watch.data_set)
        wanted = {each.path: each for each in found if matches(watch, each.path)}
        memory.only(wanted.keys())
        memory.seen_on(element)
        earlier = set(memory.refused.values())
        known = unsettled = 0
        for seen in wanted.values():
            if await self._is_in_set(watch, element, memory, seen, state):
                known += 1
            elif not memory.refuses(seen):
                unsettled += 1
        if news := [why for each in memory.refused.values() if each not in earlier for why in each[1:]]:
            self._notices.post(f"watch {watch.name} leaves out what it found: {join_few(news)}")
        return WatchView(
            watch=watch, known=known, unsettled=unsettled, left_out=len(memory.refused), problem=memory.problem()
        )

    async def _is_in_set(
        self, watch: FolderWatch, element: StorageElement, memory: ScanState, seen: ListedFile, state: DataSet
    ) -> bool:
        """Whether the file is in the set, in its present or an earlier version; it is read if that is necessary."""
        known = False
        try:
            name = name_at(element, seen.path)
            known = name in state.files
            if known and memory.same(seen, state.files[name].file):
                memory.refused.pop(seen.path, None)
                return True
            if memory.refuses(seen) or not memory.settled(seen, self._clock.now(), watch.stable_ms):
                return known
            await self._add_to_set(watch, element, seen, name)
        except StorageUnavailable as error:
            memory.unread[seen.path] = str(error)
            memory.since.pop(seen.path, None)
            return known
        except StoreUnavailable:
            raise
        except RequestError as error:
            memory.refused[seen.path] = (seen.identity, f"{seen.path!r:.200} on {element.name}: {error.message}")
            return known
        memory.taken[seen.path] = seen.identity
        memory.refused.pop(seen.path, None)
        memory.unread.pop(seen.path, None)
        return True

    async def _add_to_set(self, watch: FolderWatch, element: StorageElement, seen: ListedFile, name: str) -> None:
        read, digest = await self._elements.read(element, seen.path)
        if read.identity != seen.identity:
            raise StorageUnavailable(f"{seen.path} on {element.name} has changed while it was read")
        file = LogicalFile(
            name=name,
            sha256=digest,
            bytes=read.bytes,
            replicas=(Replica(element=element.name, path=seen.path),),
            data_set=watch.data_set,
        )
        added = await self._catalogue.add(file)
        await self._sets.add_watched(watch.data_set, [added.ref()])


def join_few(sentences: Iterable[str]) -> str:
    """The first of them, and how many more there are."""
    every = list(sentences)
    more = [f"and {len(every) - SENTENCES_MAX} more"] if len(every) > SENTENCES_MAX else []
    return "; ".join([*every[:SENTENCES_MAX], *more])


def matches(watch: FolderWatch, path: str) -> bool:
    """Names that begin with a dot are temporary names of files that are being written: they match only if the pattern
    begins with a dot, as in a shell."""
    below = path.removeprefix(watch.prefix.strip("/")).lstrip("/")
    name = below.rpartition("/")[2]
    if name.startswith(".") and not watch.match.rpartition("/")[2].startswith("."):
        return False
    return fnmatch.fnmatchcase(below, watch.match)
