"""Waiting jobs grouped by their needs, so that a match examines kinds of needs and not jobs.

Jobs with exactly the same needs form a shape, and one check tells whether all of them fit. There may be some hundred
such shapes per site. If jobs differ more than that, the rest are grouped by rough size, into at most some hundred more:
such a shape knows only the minimum needs of its jobs, which are examined one by one. So the number of shapes, and the
cost of a match, is bounded, however many jobs wait."""

from collections.abc import Iterator
from heapq import heappush

from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import Resources
from mendflow.core.scheduling.job_heap import Entry, Files, JobHeap
from mendflow.core.scheduling.offer import is_picky
from mendflow.core.scheduling.reader_index import ReaderIndex

EXACT_MAX = 300
"""Shapes of exact needs per site, before further ones are grouped by rough size."""


class JobShape(JobHeap):
    """Jobs of similar needs, in order."""

    __slots__ = ("cpus", "disk", "exact", "gpus", "memory", "number", "picky", "place", "wall")

    def __init__(self, number: int, place: "SiteShapes", needs: Resources, *, exact: bool) -> None:
        super().__init__([])
        self.number = number
        self.place = place
        self.exact = exact
        # jobs of a rough shape differ in their machine requirements
        self.picky = needs if exact and is_picky(needs) else None
        self._at_least(needs)

    def _at_least(self, needs: Resources) -> None:
        self.cpus = needs.cpus
        self.memory = needs.memory_bytes
        self.disk = needs.disk_bytes
        self.gpus = needs.gpus
        self.wall = needs.wall_ms

    def push(self, entry: Entry) -> None:
        heappush(self.heap, entry)
        if not self.exact:
            self._lower(entry[2])

    def _lower(self, needs: Resources) -> None:
        self.cpus = min(self.cpus, needs.cpus)
        self.memory = min(self.memory, needs.memory_bytes)
        self.disk = min(self.disk, needs.disk_bytes)
        self.gpus = min(self.gpus, needs.gpus)
        self.wall = min(self.wall, needs.wall_ms)

    def rebuild(self, waiting: dict[JobId, Entry]) -> None:
        super().rebuild(waiting)
        if not self.exact and self.heap:
            self._at_least(self.heap[0][2])
            for entry in self.heap:
                self._lower(entry[2])


class SiteShapes:
    """The shapes of jobs of one account that are bound to one site, or to none."""

    __slots__ = ("account", "exact", "rough", "shapes")

    def __init__(self, account: str) -> None:
        self.account = account
        self.exact: dict[Resources, JobShape] = {}
        self.rough: dict[tuple[int, ...], JobShape] = {}
        self.shapes: dict[int, JobShape] = {}


class ReadyJobs:
    """All jobs that may be taken now, in their shapes, by account (fair_share.py) and site. A shape exists as long as
    one of its jobs waits."""

    def __init__(self) -> None:
        self.waiting: dict[JobId, Entry] = {}
        self.wanted = ReaderIndex()
        self.accounts: dict[str, dict[str, SiteShapes]] = {}
        self._shapes: list[JobShape | None] = []
        self._free: list[int] = []

    def add(self, order: int, id: JobId, needs: Resources, files: Files, account: str = "") -> None:
        shape = self._find(needs, account)
        entry = (order, id, needs, shape.number, files)
        self.waiting[id] = entry
        shape.push(entry)
        if files:
            self.wanted.add(entry)

    def remove(self, entry: Entry) -> JobShape | None:
        """Remove a job; returns its shape if other jobs still wait in it."""
        del self.waiting[entry[1]]
        if entry[4]:
            self.wanted.remove(entry, self.waiting)
        shape = self.shape(entry)
        shape.dead += 1
        shape.settle(self.waiting)
        if shape.heap:
            return shape
        self._retire(shape, entry[2])
        return None

    def shape(self, entry: Entry) -> JobShape:
        shape = self._shapes[entry[3]]
        assert shape is not None, "a shape with a waiting job is kept"
        return shape

    def shapes_that_choose(self) -> Iterator[JobShape]:
        """The shapes whose jobs may ask for more than amounts."""
        for shape in self.shapes():
            if shape.picky is not None or not shape.exact:
                yield shape

    def shapes(self) -> Iterator[JobShape]:
        for places in self.accounts.values():
            for place in places.values():
                yield from place.shapes.values()

    def _find(self, needs: Resources, account: str) -> JobShape:
        """The shape that a job with these needs joins; a new one if there is none yet."""
        places = self.accounts.get(account)
        if places is None:
            places = self.accounts[account] = {}
        place = places.get(needs.site)
        if place is None:
            place = places[needs.site] = SiteShapes(account)
        shape = place.exact.get(needs)
        if shape is not None:
            return shape
        if len(place.exact) < EXACT_MAX:
            shape = place.exact[needs] = self._new(place, needs, exact=True)
            return shape
        size = rough_size(needs)
        shape = place.rough.get(size)
        if shape is None:
            shape = place.rough[size] = self._new(place, needs, exact=False)
        return shape

    def _retire(self, shape: JobShape, needs: Resources) -> None:
        """The last job of a shape is gone; `needs` are that job's."""
        place = shape.place
        if shape.exact:
            del place.exact[needs]
        else:
            del place.rough[rough_size(needs)]
        del place.shapes[shape.number]
        self._shapes[shape.number] = None
        self._free.append(shape.number)
        if not place.shapes:
            places = self.accounts[place.account]
            del places[needs.site]
            if not places:
                del self.accounts[place.account]

    def _new(self, place: SiteShapes, needs: Resources, *, exact: bool) -> JobShape:
        if self._free:
            number = self._free.pop()
        else:
            number = len(self._shapes)
            self._shapes.append(None)
        shape = JobShape(number, place, needs, exact=exact)
        self._shapes[number] = place.shapes[number] = shape
        return shape


def rough_size(needs: Resources) -> tuple[int, ...]:
    """Needs by magnitude: five of cpus, six of memory, three of disk, two of gpus, three of time: 540 in total."""
    return (
        min(4, int(needs.cpus).bit_length()),
        min(5, (needs.memory_bytes >> 28).bit_length() // 2),
        min(2, (needs.disk_bytes >> 30).bit_length() // 4),
        min(1, needs.gpus),
        min(2, (needs.wall_ms >> 16).bit_length() // 4),
    )
