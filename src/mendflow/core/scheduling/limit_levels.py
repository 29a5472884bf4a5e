"""How much of each named limit is free, as the queue knows it, and what one match may take of it.

The queue's numbers are those that this server has last read. They only save vain tries: whether a job may start is
decided in the store, where the limit and those who use it stand in one document."""

from collections.abc import Mapping

from mendflow.core.model.named_limits import NamedLimits


class LimitLevels:
    """How much is free of each limit; of one that is not here, nothing."""

    def __init__(self) -> None:
        self.free: dict[str, int] = {}

    def room(self, most: int) -> "LimitRoom":
        """What a match may take, for at most so many jobs."""
        return LimitRoom(self.free, most)

    def fitting(self, named: NamedLimits, jobs: int) -> int:
        """How many of so many like jobs could start now."""
        return min((max(0, self.free.get(name, 0)) // amount for name, amount in named), default=jobs)


class LimitRoom:
    """What is left of the limits while jobs are taken. Jobs that use limits are given to a pilot only as far as it
    begins them at once: `jobs_left` of them."""

    __slots__ = ("_free", "_taken", "jobs_left")

    def __init__(self, free: Mapping[str, int], jobs_left: int) -> None:
        self._free = free
        self._taken: dict[str, int] = {}
        self.jobs_left = jobs_left

    def fits(self, named: NamedLimits) -> bool:
        return self.jobs_left > 0 and all(
            amount <= self._free.get(name, 0) - self._taken.get(name, 0) for name, amount in named
        )

    def take(self, named: NamedLimits) -> None:
        self.jobs_left -= 1
        for name, amount in named:
            self._taken[name] = self._taken.get(name, 0) + amount
