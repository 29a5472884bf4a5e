"""Which neighbours of a site are worth asking for a file.

Nobody tells who has what. So some are asked: those first that had something the last time, the others in any order. One
that does not answer, or that sends what is not the file, is left alone for a while."""

from collections.abc import Callable, Iterable
from random import Random

from mendflow.core.model.data import Neighbour

ASKED_MAX = 16
ALONE_S = 30.0


class Asking:
    def __init__(self, clock_s: Callable[[], float], chance: Random) -> None:
        self._clock_s = clock_s
        self._chance = chance
        self._neighbours: list[Neighbour] = []
        self._alone_until: dict[str, float] = {}
        self._gave_at: dict[str, float] = {}

    def hear(self, neighbours: Iterable[Neighbour]) -> None:
        """Which pilots of the site serve their caches now."""
        self._neighbours = [neighbour for neighbour in neighbours if neighbour.address and neighbour.key]

    def worth_asking(self) -> list[Neighbour]:
        now = self._clock_s()
        asked = [each for each in self._neighbours if self._alone_until.get(each.address, 0.0) <= now]
        self._chance.shuffle(asked)
        asked.sort(key=lambda each: -self._gave_at.get(each.address, 0.0))
        return asked[:ASKED_MAX]

    def gave(self, neighbour: Neighbour) -> None:
        self._gave_at[neighbour.address] = self._clock_s()

    def silent(self, neighbour: Neighbour) -> None:
        self._alone_until[neighbour.address] = self._clock_s() + ALONE_S
