"""Buckets: how much somebody may take at once, and how fast it comes back.

Whoever asks under made-up names or from many addresses gets a bucket for each, so a table of them is bounded: what was
used longest ago is forgotten first. A bucket that is forgotten is full when it is wanted again, so whoever relies on
that has to be bounded by a bucket for all as well."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

B = TypeVar("B")

KEYS_MAX: Final = 10_000


class Bucket:
    """Holds at most `most`, and gets `rate` each second. It may go below zero, and is empty until it is above again."""

    __slots__ = ("_at", "_left", "_most", "_rate")

    def __init__(self, rate: float, most: float, now: float) -> None:
        self._rate, self._most, self._left, self._at = rate, most, most, now

    def wait_s(self, amount: float, now: float) -> float:
        """How long until it holds this much."""
        self._fill(now)
        missing = amount - self._left
        if missing <= 0:
            return 0.0
        return missing / self._rate if self._rate else float("inf")

    def take(self, amount: float) -> None:
        self._left -= amount

    @property
    def was_empty(self) -> bool:
        """Whether it was below zero when it was last used; more has come into it since."""
        return self._left < 0

    def filled(self, now: float) -> float:
        """How full it is, from 0 to 1."""
        self._fill(now)
        return max(0.0, self._left / self._most)

    def _fill(self, now: float) -> None:
        if now > self._at:
            self._left = min(self._most, self._left + (now - self._at) * self._rate)
            self._at = now

    def try_take(self, amount: float, now: float) -> float:
        """Take this much if it is there; else the answer says how long until it is."""
        wait_s = self.wait_s(amount, now)
        if not wait_s:
            self.take(amount)
        return wait_s


class BucketTable(Generic[B]):
    """A bucket for each key, or some, of at most so many keys."""

    def __init__(self, make: Callable[[float], B], keys_max: int = KEYS_MAX) -> None:
        self._make = make
        self._keys_max = keys_max
        self._buckets: OrderedDict[str, B] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def find(self, key: str) -> B | None:
        """The bucket of a key that has taken something of late."""
        return self._buckets.get(key)

    def of(self, key: str, now: float) -> B:
        """The bucket of a key, which is about to take something."""
        found = self._buckets.get(key)
        if found is None:
            found = self._buckets[key] = self._make(now)
            if len(self._buckets) > self._keys_max:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(key)
        return found


class BoundedCounts:
    """Counts by key, of at most so many keys; what is of further ones is counted together."""

    def __init__(self, keys_max: int = KEYS_MAX) -> None:
        self._keys_max = keys_max
        self._counts: dict[str, int] = {}
        self.others = 0

    def add(self, key: str) -> None:
        if key in self._counts or len(self._counts) < self._keys_max:
            self._counts[key] = self._counts.get(key, 0) + 1
        else:
            self.others += 1

    def __len__(self) -> int:
        return len(self._counts)

    @property
    def total(self) -> int:
        return sum(self._counts.values()) + self.others

    @property
    def most(self) -> str:
        """The key that was counted most often."""
        return max(self._counts, key=lambda each: self._counts[each], default="")

    def pop(self, key: str) -> int:
        """Forget a key; the answer is what was counted of it."""
        return self._counts.pop(key, 0)

    def clear(self) -> None:
        self._counts.clear()
        self.others = 0
