"""What is in a cache, who uses it, and what goes when room is needed. The disk is somebody else's: this says which
files are to go, and is told when they went.

Two numbers make it right. What is on the shelf and what is promised room on it never exceed its size, and a file that
is in use counts as long as it is used. So whoever asks for room gets files to remove that free at least what it needs,
or hears that there is no room; never both."""

import heapq
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping

import msgspec

from mendflow.core.caching.policies import EvictionPolicy, FileUsage, default_cost_ms, lru

GHOSTS_MAX = 4096
"""So many files that went are remembered by their uses: one that comes back is not taken for a new one."""

_HeapEntry = tuple[float, int, str]


class CacheSpace:
    """Files by their digests. A use is a tick of its clock."""

    def __init__(self, size_bytes: int, policy: EvictionPolicy = lru) -> None:
        self.size_bytes = size_bytes
        self.held_bytes = 0
        self.promised_bytes = 0
        self._policy = policy
        self._tick = 0
        self._floor = 0.0
        self._files: dict[str, FileUsage] = {}
        self._places: dict[str, _HeapEntry] = {}
        self._order: list[_HeapEntry] = []  # a heap in which places that files had before are passed over
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

    # in use

    def pin(self, digest: str) -> None:
        """It is used, here or once it is here, until it was released as often."""
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

    # room

    @property
    def free_bytes(self) -> int:
        """Less than nothing where it was made smaller than what it holds."""
        return self.size_bytes - self.held_bytes - self.promised_bytes

    def victims(self, required_bytes: int) -> list[str] | None:
        """What must go so that so much is free; None if that cannot be because of what is in use or promised. Nothing
        has changed: each is told with `evict` when it went."""
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
        """Keep room for a file that is on its way."""
        assert digest not in self._promised and bytes <= self.free_bytes, "room is made before it is promised"
        self._promised[digest] = bytes
        self.promised_bytes += bytes

    def reserved_bytes(self, digest: str) -> int:
        return self._promised.get(digest, 0)

    def cancel_reservation(self, digest: str) -> None:
        """It does not come, or is here."""
        self.promised_bytes -= self._promised.pop(digest, 0)

    # in and out

    def put(self, digest: str, bytes: int, *, cost_ms: float | None = None) -> None:
        """A file is here, for which there is room. That is a use of it."""
        assert digest not in self._files and bytes <= self.free_bytes, "room is made before a file is put"
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
        """It went to make room."""
        assert digest not in self._pins, f"{digest} is in use"
        self._floor = max(self._floor, self._places[digest][0])
        self.drop(digest)

    def drop(self, digest: str) -> None:
        """It is not here any more, for whatever reason."""
        uses = self._files.pop(digest)
        del self._places[digest]
        self.held_bytes -= uses.bytes
        self._ghosts[digest] = uses
        if len(self._ghosts) > GHOSTS_MAX:
            self._ghosts.popitem(last=False)

    def usage_history(self) -> dict[str, FileUsage]:
        """What is known of the files here, for a shelf that comes after this one."""
        return dict(self._files)

    def restore_usage(self, memory: Mapping[str, FileUsage]) -> None:
        """Know of files that are not here yet what an earlier shelf has known of them."""
        self._ghosts.update(memory)
        self._tick = max([self._tick, *(uses.last[0] for uses in memory.values() if uses.last)])
