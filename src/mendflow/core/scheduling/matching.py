"""One match: which waiting jobs fit into one offer, in queue order.

First every shape is checked once, by its minimum needs. The heads of those that fit then compete: the first in order is
taken, its shape provides the next, until the offer is used up. That is exact for shapes of exact needs. Behind the head
of a rough shape there may be jobs that fit although the head does not; a bounded number of these is examined,
continuing next time where this match stopped."""

from collections.abc import Mapping
from heapq import heapify, heappop, heapreplace

from mendflow.core.model.ids import Instant, JobId
from mendflow.core.scheduling.job_heap import LAST_PLACE, Entry, since
from mendflow.core.scheduling.offer import FreeResources, Offer, free_for_one, free_in_total
from mendflow.core.scheduling.ready_jobs import JobShape, ReadyJobs, SiteShapes

LOOKS_MAX = 256
LOOKS_A_SHAPE = 16
"""How many jobs behind the heads of rough shapes one match examines, in total and per shape."""


class Match:
    """`heads` are the first jobs of the shapes that fit, `rough` the shapes whose head does not fit while other jobs in
    them may. `each` is what one job may use, `room` what is left for all. `places` are those of one account."""

    def __init__(
        self, line: ReadyJobs, offer: Offer, places: Mapping[str, SiteShapes], room: FreeResources | None = None
    ) -> None:
        self.line = line
        self.each = free_for_one(offer)
        self.room = room if room is not None else free_in_total(offer)
        self._places = [places[site] for site in {"", offer.site} if site in places]
        self.heads: list[Entry] = []
        self.rough: list[JobShape] = []
        for place in self._places:
            self._look(place)
        heapify(self.heads)

    def find_passed_over(
        self, when_empty: FreeResources, waits_since: Instant, *, others: bool = False
    ) -> Entry | None:
        """The first job in order that has waited since then or longer, would fit into the empty pilot, and is before
        all that fit into it now. `others`: jobs of other accounts may overtake it too."""
        if not self.heads and not others:
            return None  # nobody overtakes it
        before, elder = self.heads[0][0] if self.heads else LAST_PLACE, None
        for place in self._places:
            for shape in place.shapes.values():
                head = shape.heap[0]
                if head[0] < before and since(head) <= waits_since and when_empty.fits(head[2]):
                    before, elder = head[0], head
        return elder

    def fits(self, entry: Entry) -> bool:
        return self.each.fits(entry[2]) and self.room.fits(entry[2])

    def take(self, most: int, before: int | None = None) -> list[JobId]:
        """The first in order that fit; with `before`, only those before that place."""
        taken: list[JobId] = []
        heads, room = self.heads, self.room
        while heads and len(taken) < most:
            entry = heads[0]
            if before is not None and entry[0] >= before:
                break
            if not room.fits(entry[2]):
                heappop(heads)
                continue
            room.shrink(entry[2])
            taken.append(entry[1])
            self._send_next(self.line.remove(entry))
        return taken

    def take_behind(self, most: int, turn: int) -> list[JobId]:
        """Jobs that fit, from behind the heads of rough shapes; `turn` shifts the starting point."""
        taken: list[JobId] = []
        shapes = self.rough
        looks = LOOKS_MAX
        for number in range(len(shapes)):
            if looks <= 0 or len(taken) >= most:
                break
            shape = shapes[(number + turn * (LOOKS_MAX // LOOKS_A_SHAPE)) % len(shapes)]
            looks -= LOOKS_A_SHAPE
            self._look_behind(shape, most, taken)
        return taken

    def _look(self, place: SiteShapes) -> None:
        each = self.each
        cpus, memory, disk, gpus, ttl = each.cpus, each.memory, each.disk, each.gpus, each.ttl
        projects = each.projects
        for shape in place.shapes.values():
            if (
                shape.memory <= memory
                and shape.cpus <= cpus
                and shape.disk <= disk
                and shape.gpus <= gpus
                and shape.wall <= ttl
                and (shape.picky is None or each.suits(shape.picky))
                and (projects is None or not shape.exact or shape.heap[0][2].project in projects)
            ):
                head = shape.heap[0]
                if shape.exact or each.fits(head[2]):
                    self.heads.append(head)
                else:
                    self.rough.append(shape)

    def _send_next(self, shape: JobShape | None) -> None:
        """The head of a shape was taken: the next one competes in its place."""
        if shape is None:
            heappop(self.heads)
        elif shape.exact or self.each.fits(shape.heap[0][2]):
            heapreplace(self.heads, shape.heap[0])
        else:
            heappop(self.heads)
            self.rough.append(shape)

    def _look_behind(self, shape: JobShape, most: int, taken: list[JobId]) -> None:
        """Examine some jobs of a rough shape, wherever they are in it."""
        for _ in range(min(LOOKS_A_SHAPE, len(shape.heap))):
            shape.cursor = (shape.cursor + 1) % len(shape.heap)
            entry = shape.heap[shape.cursor]
            if self.line.waiting.get(entry[1]) is entry and self.fits(entry):
                self.room.shrink(entry[2])
                taken.append(entry[1])
                if self.line.remove(entry) is None or len(taken) >= most:
                    return
