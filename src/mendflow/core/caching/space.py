"""The index of a cache: its files, who uses them, and which to evict. It does no IO: it says which files to remove, and
the caller reports when they are gone.

Two invariants: indexed and reserved bytes together never exceed the size, and a file in use counts as long as it is
used. So a caller that needs space gets files whose removal frees enough, or learns that there is none."""

import heapq
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping

import msgspec

from mendflow.core.caching.policies import EvictionPolicy, FileUsage, default_cost_ms, lru

GHOSTS_MAX = 4096
"""The usage of so many evicted files is remembered, so that one that returns does not count as new."""

_HeapEntry = tuple[float, int, str]


class CacheSpace:
    """Files by digest. Each use advances its clock by one."""

    def __init__(self, size_bytes: int, policy: EvictionPolicy = lru) -> None:
        self.size_bytes = size_bytes
        self.held_bytes = 0
        self.promised_bytes = 0
        self._policy = policy
        self._tick = 0
        self._floor = 0.0
        self._files: dict[str, FileUsage] = {}
        self._places: dict[str, _HeapEntry] = {}
        self._order: list[_HeapEntry] = []  # a heap that may contain outdated positions, which are skipped
        self._promised: dict[str, int] = {}
        self._pins: Counter[str] = Counter()
        self._ghosts: OrderedDict[str, FileUsage] = OrderedDict()

    def __contains__(self, digest: str) -> bool:
        return digest in self._files

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def uses(self, digest: str) -> FileUsage:
        return self._files[digest]

    # pins

    def pin(self, digest: str) -> None:
        """Pin a file, present or expected, until it has been released as often."""
        self._pins[digest] += 1

    def release(self, digest: str) -> bool:
        """True if nobody uses it any more."""
        assert self._pins[digest] > 0, f"{digest} was released more often than pinned"
        self._pins[digest] -= 1
        if self._pins[digest]:
            return False
        del self._pins[digest]
        return True

    def is_pinned(self, digest: str) -> bool:
        return digest in self._pins

    def pins(self, digest: str) -> int:
        return self._pins[digest]

    # space

    @property
    def free_bytes(self) -> int:
        """Negative if the cache was made smaller than its contents."""
        return self.size_bytes - self.held_bytes - self.promised_bytes

    def victims(self, required_bytes: int) -> list[str] | None:
        """Files to evict so that so much is free; None if that is impossible because of files in use or reservations.
        Changes nothing: the caller calls `evict` for each file once it is removed."""
        missing = required_bytes - self.free_bytes
        chosen: list[str] = []
        seen: list[_HeapEntry] = []
        while missing > 0 and self._order:
            place = heapq.heappop(self._order)
            digest = place[2]
            if self._places.get(digest) != place:
                continue
            seen.append(place)
            if digest not in self._pins:
                chosen.append(digest)
                missing -= self._files[digest].bytes
        for place in seen:
            heapq.heappush(self._order, place)
        return chosen if missing <= 0 else None

    def reserve(self, digest: str, bytes: int) -> None:
        """Reserve space for a file that is being fetched."""
        assert digest not in self._promised and bytes <= self.free_bytes, "space is made before it is reserved"
        self._promised[digest] = bytes
        self.promised_bytes += bytes

    def reserved_bytes(self, digest: str) -> int:
        return self._promised.get(digest, 0)

    def cancel_reservation(self, digest: str) -> None:
        """End a reservation: the file will not come, or is here."""
        self.promised_bytes -= self._promised.pop(digest, 0)

    # add and remove

    def put(self, digest: str, bytes: int, *, cost_ms: float | None = None) -> None:
        """Add a file for which there is space. This counts as a use."""
        assert digest not in self._files and bytes <= self.free_bytes, "space is made before a file is added"
        known = self._ghosts.pop(digest, None)
        cost_ms = default_cost_ms(bytes) if cost_ms is None else cost_ms
        fresh = FileUsage(bytes=bytes, cost_ms=cost_ms)
        uses = fresh if known is None else msgspec.structs.replace(fresh, count=known.count, last=known.last)
        self.held_bytes += bytes
        self._use(digest, uses)

    def use(self, digest: str) -> None:
        self._use(digest, self._files[digest])

    def _use(self, digest: str, uses: FileUsage) -> None:
        self._tick += 1
        uses = self._files[digest] = uses.with_use(self._tick)
        place = self._places[digest] = (self._policy(uses, self._floor), self._tick, digest)
        heapq.heappush(self._order, place)
        if len(self._order) > 2 * len(self._files) + 64:
            self._order = sorted(self._places.values())

    def evict(self, digest: str) -> None:
        """The file was removed to make space."""
        assert digest not in self._pins, f"{digest} is in use"
        self._floor = max(self._floor, self._places[digest][0])
        self.drop(digest)

    def drop(self, digest: str) -> None:
        """The file is gone, for whatever reason."""
        uses = self._files.pop(digest)
        del self._places[digest]
        self.held_bytes -= uses.bytes
        self._ghosts[digest] = uses
        if len(self._ghosts) > GHOSTS_MAX:
            self._ghosts.popitem(last=False)

    def usage_history(self) -> dict[str, FileUsage]:
        """The usage of all files, to be restored after a restart."""
        return dict(self._files)

    def restore_usage(self, memory: Mapping[str, FileUsage]) -> None:
        """Restore usage of files that may come later."""
        self._ghosts.update(memory)
        self._tick = max([self._tick, *(uses.last[0] for uses in memory.values() if uses.last)])
