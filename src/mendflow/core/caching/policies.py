"""Cache policies: which file is evicted first.

A policy maps a file's usage to a number; the file with the smallest is evicted. The number changes only when the file
itself is used, so a cache can keep its files sorted without scanning them. Time is counted in uses of the whole cache:
a clock would add nothing."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import msgspec

from mendflow.core.model.errors import InvalidRequest

HISTORY_LENGTH = 2
"""How many of the last uses of each file are remembered: the K of LRU-K."""


class FileUsage(msgspec.Struct, frozen=True):
    """The usage of a file. `last` are the latest uses, the newest first. `cost_ms` is the measured or estimated time to
    fetch the file."""

    bytes: int
    cost_ms: float
    count: int = 0
    last: tuple[int, ...] = ()

    def with_use(self, tick: int) -> "FileUsage":
        return msgspec.structs.replace(self, count=self.count + 1, last=(tick, *self.last)[:HISTORY_LENGTH])


EvictionPolicy = Callable[[FileUsage, float], float]
"""Maps a file's usage, and the value of the last evicted file, to the file's value."""


def lru(uses: FileUsage, _floor: float) -> float:
    """Evicts the least recently used first."""
    return uses.last[0]


def lfu(uses: FileUsage, _floor: float) -> float:
    """Evicts the least frequently used first."""
    return uses.count


def lru_k(uses: FileUsage, _floor: float) -> float:
    """Evicts by the time of the use before the last; files that were used once have none and go first. So a pass over
    many files that are each read once does not evict those that are read repeatedly."""
    return uses.last[HISTORY_LENGTH - 1] if len(uses.last) >= HISTORY_LENGTH else -1.0


def cost(uses: FileUsage, floor: float) -> float:
    """What a byte of space saves: number of uses times the cost of fetching, divided by size, plus the value of the
    last evicted file. The last term ages files: one that is no longer used is overtaken by new ones."""
    return floor + uses.count * uses.cost_ms / max(uses.bytes, 1)


POLICIES: Mapping[str, EvictionPolicy] = MappingProxyType({"lru": lru, "lfu": lfu, "lru-k": lru_k, "cost": cost})

_FIRST_MS = 20.0
_BYTES_A_MS = 100_000


def default_cost_ms(bytes: int) -> float:
    """The cost of fetching a file that was never measured."""
    return _FIRST_MS + bytes / _BYTES_A_MS


def policy_by_name(name: str) -> EvictionPolicy:
    if (policy := POLICIES.get(name)) is None:
        raise InvalidRequest(f"there is no cache policy {name!r}; there are {', '.join(POLICIES)}")
    return policy
