"""Selects which neighbours of a site to ask for a file.

First those that the server names as holders, as far as it knows; they may have evicted the file since. Then some
others, in random order, those first that served something the last time. One that does not answer, or sends wrong
content, is skipped for a while."""

from collections.abc import Callable, Iterable
from random import Random

from mendflow.core.model.data import Holder, Neighbour

ASKED_MAX = 16
ALONE_S = 30.0
REMEMBERED_MAX = 4_096
"""Holders are remembered for so many files."""


class NeighbourSelector:
    def __init__(self, clock_s: Callable[[], float], chance: Random) -> None:
        self._clock_s = clock_s
        self._chance = chance
        self._neighbours: list[Neighbour] = []
        self._holders: dict[str, list[Neighbour]] = {}  # by digest, as the server has known
        self._alone_until: dict[str, float] = {}
        self._gave_at: dict[str, float] = {}

    def set_neighbours(self, neighbours: Iterable[Neighbour]) -> None:
        """Set the pilots of the site that serve their caches."""
        self._neighbours = [neighbour for neighbour in neighbours if neighbour.address and neighbour.key]

    def set_holders(self, holders: Iterable[Holder]) -> None:
        """Who has files that are wanted soon. What was known longest ago is forgotten when there is too much of it."""
        by_digest: dict[str, list[Neighbour]] = {}
        for each in holders:
            if each.neighbour.address and each.neighbour.key:
                by_digest.setdefault(each.sha256, []).append(each.neighbour)
        for digest, neighbours in by_digest.items():
            self._holders.pop(digest, None)
            self._holders[digest] = neighbours
        while len(self._holders) > REMEMBERED_MAX:
            del self._holders[next(iter(self._holders))]

    def worth_asking(self, digest: str = "") -> list[Neighbour]:
        holders = list(self._holders.get(digest, ()))
        self._chance.shuffle(holders)
        known = {each.pilot for each in holders}
        others = [each for each in self._neighbours if each.pilot not in known]
        self._chance.shuffle(others)
        others.sort(key=lambda each: -self._gave_at.get(each.address, 0.0))
        now = self._clock_s()
        asked = [each for each in (*holders, *others) if self._alone_until.get(each.address, 0.0) <= now]
        return asked[:ASKED_MAX]

    def record_answer(self, neighbour: Neighbour) -> None:
        self._gave_at[neighbour.address] = self._clock_s()

    def record_silence(self, neighbour: Neighbour) -> None:
        self._alone_until[neighbour.address] = self._clock_s() + ALONE_S
