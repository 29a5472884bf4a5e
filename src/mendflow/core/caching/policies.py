"""Which file of a cache is worth least, and goes first.

A policy is one function from what is known of a file's uses to a number; the file with the smallest goes. The number
changes only when the file itself is used, so that a cache can keep its files in order without ever looking at all of
them. Time is counted in uses of the whole cache: a clock would say nothing more."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import msgspec

from mendflow.core.model.errors import InvalidRequest

HISTORY_LENGTH = 2
"""How many of the last uses are remembered of each file: the K of LRU-K."""


class FileUsage(msgspec.Struct, frozen=True):
    """What is known of the uses of a file. `last` are the latest of them, the newest first. `cost_ms` is what it took,
    or would take, to bring the file here."""

    bytes: int
    cost_ms: float
    count: int = 0
    last: tuple[int, ...] = ()

    def with_use(self, tick: int) -> "FileUsage":
        return msgspec.structs.replace(self, count=self.count + 1, last=(tick, *self.last)[:HISTORY_LENGTH])


EvictionPolicy = Callable[[FileUsage, float], float]
"""From the uses of a file, and the worth of the last one that had to go, to its own worth."""


def lru(uses: FileUsage, _floor: float) -> float:
    """Not used for longest goes first."""
    return uses.last[0]


def lfu(uses: FileUsage, _floor: float) -> float:
    """Used least often goes first."""
    return uses.count


def lru_k(uses: FileUsage, _floor: float) -> float:
    """Whose use before the last is longest ago goes first; a file that was used once has none, and goes before. So a
    pass over many files that are each read once does not drive out what is read again and again."""
    return uses.last[HISTORY_LENGTH - 1] if len(uses.last) >= HISTORY_LENGTH else -1.0


def cost(uses: FileUsage, floor: float) -> float:
    """What a byte of room saves: how often the file is used, times what bringing it costs, by its size. On top of the
    worth of what went last, so that old fame fades: a file that nobody uses any more is overtaken by new ones."""
    return floor + uses.count * uses.cost_ms / max(uses.bytes, 1)


POLICIES: Mapping[str, EvictionPolicy] = MappingProxyType({"lru": lru, "lfu": lfu, "lru-k": lru_k, "cost": cost})

_FIRST_MS = 20.0
_BYTES_A_MS = 100_000


def default_cost_ms(bytes: int) -> float:
    """What bringing a file costs where nobody has measured it."""
    return _FIRST_MS + bytes / _BYTES_A_MS


def policy_by_name(name: str) -> EvictionPolicy:
    if (policy := POLICIES.get(name)) is None:
        raise InvalidRequest(f"there is no cache policy {name!r}; there are {', '.join(POLICIES)}")
    return policy
