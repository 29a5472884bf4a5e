"""In which order several processes run tests of which a few take minutes: these begin first, each in another process.
What takes longest would else begin, now and then, when all others have ended."""

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")

LONGEST = (
    "test_chaos.py",
    "test_chaos_servers.py",
    "test_connected_domains.py",
    "test_tier0.py",
    "test_bpel_adapter_conformance.py",
    "test_study.py",
    "test_readme.py",
    "test_rolling_upgrade.py",
    "test_sites_several_servers.py",
)
"""Files with tests that take most of a minute or more, those that take longest first."""


def longest_first(items: Sequence[Item], file_of: Callable[[Item], str], processes: int) -> list[Item]:
    """The same tests, in an order that begins, in the share of each process, with one of the longest. Each process gets
    as many tests as the others, one share after the other, and later takes from the end of the longest share left."""
    long = sorted((each for each in items if file_of(each) in LONGEST), key=lambda each: LONGEST.index(file_of(each)))
    short = [each for each in items if file_of(each) not in LONGEST]
    found: list[Item] = []
    for number in range(processes):
        first = long[number::processes]
        size = (len(items) - len(found)) // (processes - number)
        rest = max(0, size - len(first))
        found += [*first, *short[:rest]]
        del short[:rest]
    return [*found, *short]
