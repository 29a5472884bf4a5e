"""A case over time: when each of its items waited, ran and was mended."""

from typing import Literal

from mendflow.core.model.ids import Instant, ItemId, JobId, PilotId
from mendflow.core.model.views import View

BarKind = Literal["wait", "stage", "run", "repair", "hold"]


class TimelineBar(View, frozen=True):
    """A part of an item's time. `wait` is for a pilot or for its turn, `stage` brings files or takes them on, `run` is
    its work, `repair` an exlet's, and `hold` waits for a person. `end` of what is not over is the time of the
    answer, and `state` is then running or waiting. `ran_ms` is how long an attempt that is over has run, as its pilot
    measured it, without what it was suspended."""

    kind: BarKind
    state: str
    start: Instant
    end: Instant
    attempt: int = 0
    pilot: PilotId | None = None
    note: str = ""
    ran_ms: int = 0


class TimelineRow(View, frozen=True):
    item: ItemId
    name: str
    kind: str
    state: str
    job: JobId | None = None
    element: str = ""
    bars: list[TimelineBar] = []


class TimelineBand(View, frozen=True):
    """All items of a name within the time that was asked for: `busy` is how many were with a pilot, or at work, in each
    of so many equal parts of that time."""

    name: str
    kind: str
    count: int
    start: Instant
    end: Instant
    states: dict[str, int]
    busy: list[int] = []


class TimelineView(View, frozen=True):
    """The items between `start` and `end`, in the order in which they began. `total` is how many there are, `folded`
    has all of them by name, `rows` some of them one by one: `cursor` is the `after` of the next ones, empty after the
    last. Of a large case that was not looked at lately only `read` of `items` are known at first: ask again for the
    rest."""

    start: Instant
    end: Instant
    rows: list[TimelineRow]
    total: int
    folded: list[TimelineBand]
    cursor: str = ""
    items: int = 0
    read: int = 0
