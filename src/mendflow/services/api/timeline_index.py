"""When each item of a case began, was at work and ended: small enough to be kept, so that a large case is looked
through without reading it again.

What has ended does not change, and is read once. What has not is with the queue of the case's server, in memory. So
looking again costs as much as has happened since."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

from mendflow.core.engine import live_items
from mendflow.core.model.ids import Instant, ItemId, JobId, item_name
from mendflow.core.model.jobs import Job, JobState
from mendflow.core.model.timelines import TimelineBand
from mendflow.core.recovery.ids import serial_of
from mendflow.services.api.item_list import ItemList
from mendflow.services.base.cluster import CASE_KIND, JOB_KIND
from mendflow.services.cases import item_views
from mendflow.services.cases.live_case import ITEM_KIND, RUNS_KIND, CaseDocument, ItemDocument, ItemRuns, state_of
from mendflow.services.cases.user_tasks import TASK_KIND, TaskDocument
from mendflow.services.runtime.server import Runtime
from mendflow.stores.contract import Store

PARTS: Final = 60
"""The parts of the time for which is counted how many items were busy."""
WINDOW: Final = 500


class _Attempt(msgspec.Struct):
    granted_at: Instant = 0


class _Fault(msgspec.Struct):
    name: str = ""


class _Outcome(msgspec.Struct):
    cached_from: str = ""
    fault: _Fault | None = None


class _Spec(msgspec.Struct):
    item: ItemId


class _JobTimes(msgspec.Struct):
    """What is wanted of a job's document; the rest is not even decoded."""

    id: JobId
    spec: _Spec
    name: str = ""
    state: JobState = JobState.AVAILABLE
    created_at: Instant = 0
    finished_at: Instant = 0
    suspended: bool = False
    history: list[_Attempt] = []
    outcome: _Outcome | None = None

    def shown_state(self) -> str:
        """As `state_of` says of a whole job."""
        if self.state is JobState.COMPLETED:
            return "cached" if self.outcome is not None and self.outcome.cached_from else "completed"
        if self.state is JobState.FAILED:
            fault = self.outcome.fault if self.outcome is not None else None
            return "cancelled" if fault is not None and fault.name == "cancelled" else "failed"
        if self.suspended:
            return "suspended"
        return "running" if self.state is JobState.RUNNING else "waiting"


_decode_case = msgspec.json.Decoder(CaseDocument).decode
_decode_item = msgspec.json.Decoder(ItemDocument).decode
_decode_times = msgspec.json.Decoder(_JobTimes).decode
_decode_runs = msgspec.json.Decoder(ItemRuns).decode
_decode_task = msgspec.json.Decoder(TaskDocument).decode


class TimedEntry(NamedTuple):
    """`serial` is 0 of an item that is only noted. `end` is 0 until it has ended; `busy` is when it first was with a
    pilot, or at work, 0 if it never was."""

    serial: int
    item: ItemId
    name: str
    kind: str
    state: str
    start: Instant
    busy: Instant
    end: Instant

    def overlaps(self, begin: Instant, end: Instant) -> bool:
        return self.start <= end and (not self.end or self.end >= begin)


_order = attrgetter("start", "serial")


class TimelineIndex:
    """The items of one case. `read` counts those that are known while it is built."""

    def __init__(self, document: CaseDocument) -> None:
        self.document = document
        self._of_serials: dict[int, TimedEntry] = {}
        self._noted: dict[ItemId, TimedEntry] = {}
        self._waiting: list[TimedEntry] = []
        self._past: set[int] = set()
        self._open: set[int] = set()
        self._known = 0  # serials up to this one were read
        self._ordered: list[TimedEntry] | None = None  # until something changes

    @property
    def read(self) -> int:
        return len(self._of_serials) + len(self._noted) + len(self._waiting)

    def items(self) -> list[TimedEntry]:
        """In the order in which they began."""
        if self._ordered is None:
            found = [*self._of_serials.values(), *self._noted.values(), *self._waiting]
            found.sort(key=_order)
            self._ordered = found
        return self._ordered

    # Reading

    async def build(self, runtime: Runtime, store: Store, last_serial: int) -> None:
        """Read everything that the store has of the case."""
        case = self.document.id
        self._known = last_serial
        async for found in store.scan(RUNS_KIND, f"{case}/"):
            self._past.update(_decode_runs(found.body).serials)
        async for found in store.scan(JOB_KIND, f"{case}/"):
            if (live := runtime.meta.jobs.get(JobId(found.id))) is not None:
                self._take_job(live, runtime)
            else:
                times = _decode_times(found.body)
                self._take_times(times, times.shown_state())
        async for found in store.scan(TASK_KIND, f"{case}/"):
            self._take_task(_decode_task(found.body))
        async for found in store.scan(CASE_KIND, f"{case}."):
            self._take_called(_decode_case(found.body))
        await self._read_notes(runtime, store)

    async def refresh(self, runtime: Runtime, store: Store, items: ItemList) -> None:
        """Read what was not over, and what has begun since."""
        self._ordered = None
        live = runtime.manager.live.get(self.document.id)
        last = live.case.last_serial if live is not None else self._known
        unread: list[int] = []
        for serial in (*self._open, *range(self._known + 1, last + 1)):
            job = runtime.meta.jobs.get(JobId(f"{self.document.id}/{serial}"))
            if job is not None:
                self._take_job(job, runtime)
            else:
                unread.append(serial)
        self._known = max(self._known, last)
        if live is not None:
            self._past |= live.past
        for begin in range(0, len(unread), WINDOW):
            await self._read_serials(unread[begin : begin + WINDOW], runtime, items)
        await self._read_notes(runtime, store)

    async def _read_serials(self, serials: Sequence[int], runtime: Runtime, items: ItemList) -> None:
        found = await items.documents(serials)
        for serial in serials:
            for job in found.jobs.get(serial, ()):
                self._take_job(job, runtime)
            if serial in found.tasks:
                self._take_task(found.tasks[serial])
            if serial in found.called:
                self._take_called(found.called[serial])

    async def _read_notes(self, runtime: Runtime, store: Store) -> None:
        async for found in store.scan(ITEM_KIND, f"{self.document.id}/"):
            note = _decode_item(found.body)
            start, end = note.created_at or note.ended_at, note.ended_at
            busy = note.created_at if note.state not in ("skipped", "cancelled") else 0
            entry = TimedEntry(note.serial, note.item, note.name, note.kind, note.state, start, busy, end)
            if note.serial in self._of_serials:  # it counts as something else than what its order came to
                self._put(entry)
            else:
                self._noted[note.item] = entry
        live = runtime.manager.live.get(self.document.id)
        started = live.case.started_at if live is not None else 0
        self._waiting = [
            TimedEntry(0, each.item, each.name, each.kind, "waiting", started, 0, 0)
            for each in (live_items(live.case) if live is not None else ())
            if not each.serial or each.serial not in self._of_serials
        ]

    def _put(self, entry: TimedEntry) -> None:
        if entry.serial in self._past:
            self._of_serials.pop(entry.serial, None)
            self._open.discard(entry.serial)
            return
        self._of_serials[entry.serial] = entry
        if entry.end:
            self._open.discard(entry.serial)
        else:
            self._open.add(entry.serial)

    def _take_job(self, job: Job, runtime: Runtime) -> None:
        """As the queue has it, or another store's reader."""
        times = _JobTimes(
            id=job.id,
            spec=_Spec(job.spec.item),
            name=job.name,
            created_at=job.created_at,
            finished_at=job.finished_at,
            history=[_Attempt(granted_at=each.granted_at) for each in job.history[:1]],
        )
        self._take_times(times, state_of(job, runs=job.state is not JobState.RUNNING or runtime.meta.runs(job)))

    def _take_times(self, job: _JobTimes, state: str) -> None:
        """A job that was submitted again began with its first submission, and is in the state of its last."""
        serial, (_, generation) = serial_of(job.id), item_views.generation_of(job.id)
        before = self._of_serials.get(serial) if generation > 1 else None
        busy = job.history[0].granted_at if job.history else 0
        self._put(
            TimedEntry(
                serial,
                job.spec.item,
                job.name or item_name(job.spec.item),
                "job",
                state,
                before.start if before is not None else job.created_at,
                before.busy if before is not None and before.busy else busy,
                job.finished_at,
            )
        )

    def _take_task(self, task: TaskDocument) -> None:
        view = item_views.of_task(task)
        busy = task.offered_at if task.claimed_by else 0
        self._put(
            TimedEntry(task.serial, task.item, view.name, view.kind, view.state, task.offered_at, busy, task.ended_at)
        )

    def _take_called(self, called: CaseDocument) -> None:
        if called.parent != self.document.id or called.parent_item is None:
            return
        state = "running" if called.live else called.status
        start, name = called.started_at, item_name(called.parent_item)
        self._put(
            TimedEntry(called.parent_serial, called.parent_item, name, "call", state, start, start, called.ended_at)
        )


def bands(items: Iterable[TimedEntry], begin: Instant, end: Instant, now: Instant) -> list[TimelineBand]:
    """The items by name, in the order in which the first of each began."""
    by_name: dict[str, list[TimedEntry]] = {}
    for item in items:
        by_name.setdefault(item.name, []).append(item)
    found = [_band(name, members, begin, end, now) for name, members in by_name.items()]
    return sorted(found, key=lambda band: (band.start, band.name))


def _band(name: str, members: Sequence[TimedEntry], begin: Instant, end: Instant, now: Instant) -> TimelineBand:
    """A case may have very many items: what is done for each of them is done in few steps."""
    span, last = max(1, end - begin), PARTS - 1
    spans = [
        (each.busy, each.end or now)
        for each in members
        if each.busy and each.busy <= end and (each.end or now) >= begin
    ]
    begun = Counter([(at - begin) * PARTS // span for at, _ in spans])
    ended = Counter([(at - begin) * PARTS // span for _, at in spans])
    changes = [0] * (PARTS + 1)
    for part, number in begun.items():
        changes[min(last, max(0, part))] += number
    for part, number in ended.items():
        changes[min(last, max(0, part)) + 1] -= number
    return TimelineBand(
        name=name,
        kind=members[0].kind,
        count=len(members),
        start=min([each.start for each in members]),
        end=max([each.end or now for each in members]),
        states=dict(Counter([each.state for each in members])),
        busy=list(accumulate(changes[:PARTS])),
    )
