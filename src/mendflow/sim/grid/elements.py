"""Storage elements: how long a transfer takes, and whether it fails.

Each chunk has its own delay. The total of n chunks is drawn at once: the sum of n Gaussian delays is Gaussian, with n
times the mean and sqrt(n) times the deviation."""

import math
from random import Random
from typing import NamedTuple

from mendflow.sim.grid.scene import ElementScene, Spread


class ElementAccess(NamedTuple):
    """Reading or writing one file: how long it took, and whether it failed."""

    seconds: float
    fails: bool = False


def draw_seconds(spread: Spread, chance: Random) -> float:
    """A duration, never below 0."""
    mean, deviation = spread
    return max(0.0, chance.gauss(mean, deviation)) if deviation else mean


def access(element: ElementScene, bytes: int, chance: Random) -> ElementAccess:
    """Read or write a file of that size."""
    chunks = max(1, -(-bytes // element.chunk_bytes))
    delays = draw_seconds((chunks * element.delay, math.sqrt(chunks) * element.delay * element.spread), chance)
    seconds = bytes / element.bytes_per_s + delays
    if element.failure and chance.random() < element.failure:
        return ElementAccess(seconds * chance.random(), fails=True)
    return ElementAccess(seconds)
