"""Waiting jobs in order, as a heap from which jobs may be removed anywhere.

A removed job stays in the heap until it reaches the head, or until there are too many of these. The head itself is
always a waiting job. So removal costs next to nothing, and the first in order is always known."""

from heapq import heapify, heappop

from mendflow.core.model.ids import Instant, JobId
from mendflow.core.model.jobs import Resources

Files = tuple[int, ...]
"""The files that a job reads, as numbers (cache_index.py)."""

Entry = tuple[int, JobId, Resources, int, Files]
"""A waiting job: its place in the order (the smallest is first), its id, its needs, its shape's number, and the files
that it reads. A tuple of plain values, which the garbage collector untracks: there may be a million."""

SINCE_BITS = 56
SERIAL_BITS = 40
LEVEL_BITS = SINCE_BITS + SERIAL_BITS
"""A job's place in the order is one number: its priority, its waiting time, and a serial, from high to low bits."""

LAST_PLACE = 1 << LEVEL_BITS + 64
"""Behind every job, whatever its priority."""

_DEAD_MIN = 64


def order_key(priority: int, since: Instant, serial: int) -> int:
    return (-priority << LEVEL_BITS) + (since << SERIAL_BITS) + serial


def since(entry: Entry) -> Instant:
    return (entry[0] >> SERIAL_BITS) & ((1 << SINCE_BITS) - 1)


def priority_level(entry: Entry) -> int:
    """A higher priority has a lower level."""
    return entry[0] >> LEVEL_BITS


def level_end(entry: Entry) -> int:
    """The place after all jobs of its priority."""
    return priority_level(entry) + 1 << LEVEL_BITS


class JobHeap:
    """`cursor` is for scans behind the head, a few jobs at a time."""

    __slots__ = ("cursor", "dead", "heap")

    def __init__(self, heap: list[Entry]) -> None:
        self.heap = heap
        self.dead = 0
        self.cursor = 0

    def settle(self, waiting: dict[JobId, Entry]) -> None:
        """After a removal: make the head a waiting job again."""
        heap = self.heap
        while heap and waiting.get(heap[0][1]) is not heap[0]:
            heappop(heap)
            self.dead -= 1
        if self.dead > _DEAD_MIN and self.dead * 2 > len(heap):
            self.rebuild(waiting)

    def rebuild(self, waiting: dict[JobId, Entry]) -> None:
        self.heap = [entry for entry in self.heap if waiting.get(entry[1]) is entry]
        heapify(self.heap)
        self.dead = 0

    def some(self, most: int) -> list[Entry]:
        """The head and some near it; of many, half are from further behind, others each time. Removed jobs may be among
        them."""
        heap = self.heap
        if len(heap) <= most:
            return heap
        front = most - most // 2
        self.cursor = max(front, (self.cursor + most // 2) % len(heap))
        return heap[:front] + heap[self.cursor : self.cursor + most // 2]
