"""Lists of the newest that several projects share: who makes much must not keep others from being seen in them."""

from collections import Counter
from collections.abc import Sequence
from typing import Final, TypeVar

T = TypeVar("T")

PARTS: Final = 4


def share_of(limit: int) -> int:
    """How many of a list are one project's while others have more to show."""
    return max(1, limit // PARTS)


def shared_out(entries: Sequence[tuple[str, T]], limit: int) -> list[T]:
    """The first ones, in their order; `entries` are those of projects. Of one project they are no more than its share,
    but for places that nobody else would take."""
    counts, chosen, rest = Counter[str](), list[int](), list[int]()
    for place, (project, _) in enumerate(entries):
        (chosen if counts[project] < share_of(limit) else rest).append(place)
        counts[project] += 1
    chosen = chosen[:limit]
    return [entries[place][1] for place in sorted([*chosen, *rest[: limit - len(chosen)]])]
