"""The attempts that a pilot holds, from the assignment to the server's acknowledgement.

Each request names every attempt: as a heartbeat while it is here, as a report once it has ended. So the server knows
from one request what a pilot has and what it has lost."""

from bisect import bisect
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import JobSpec, Measurements, Resources
from mendflow.core.model.sync import ATTEMPTS_MAX, NOT_STARTED, Capacity, ResourcesInUse
from mendflow.core.model.values import Value
from mendflow.pilot.agent.slot_link import SlotLink
from mendflow.pilot.containers.start import ContainerStart
from mendflow.pilot.files.linked_inputs import LinkedInput
from mendflow.pilot.slot.messages import AttemptKey, FinishedAttempt, Heartbeat, RawReport, SlotWork
from mendflow.pilot.software.ready import NOTHING_LOADED, ReadySoftware

_NOTHING = Measurements()
_PLAIN = Resources()
_NO_VALUES: dict[str, Value] = {}

HELD_MAX = ATTEMPTS_MAX // 2
"""A pilot asks for no more: two requests may ask for jobs at a time, and the next one has to name all that came."""

GROWN, GROWN_BYTES = 1.25, 16 << 20
"""Report an attempt's memory again when it has grown by this much."""


@dataclass(slots=True, eq=False)
class HeldAttempt:
    """One attempt in the agent. `link` is the slot that has it; `is_abandoned` means that nobody wants its result."""

    job: JobId
    fence: int
    resources: Resources
    spec: JobSpec | None = None
    number: int = 0  # the number of this try; 0 if the server does not say
    secrets: dict[str, str] = field(default_factory=dict)  # the values of those that it uses, by name
    state: str = "held"
    work: SlotWork | None = None
    link: SlotLink | None = None
    slot: int = -1  # the slot that has it or had it; -1 for results found on disk
    pins: list[str] = field(default_factory=list)
    links: list[LinkedInput] = field(default_factory=list)  # not yet looked at since it ended
    staging_measures: Measurements = _NOTHING  # measured while its files were staged
    software: ReadySoftware = NOTHING_LOADED
    devices: tuple[str, ...] = ()
    container: ContainerStart | None = None  # what its command runs in, once its image was found
    measures: Measurements = _NOTHING
    log_tail: str = ""
    values: dict[str, Value] = field(default_factory=lambda: _NO_VALUES)
    has_new_tail: bool = False
    has_new_values: bool = False
    reported_peak_bytes: int = 0  # the peak memory that was last reported
    suspended: bool = False
    cancelled: bool = False
    is_abandoned: bool = False
    was_reported_begun: bool = False  # the server was told that it has started
    arrived: int = 0  # how many arrived before it
    alive: bool = True
    done: FinishedAttempt | None = None

    @property
    def key(self) -> AttemptKey:
        return (self.job, self.fence)

    @property
    def rank(self) -> tuple[int, int]:
        """Sort key: the lowest starts first."""
        return (-self.spec.priority if self.spec is not None else 0, self.arrived)

    def on_message(self, heartbeat: Heartbeat) -> bool:
        """Process a message of its slot; True if rules that watch running jobs may see something new."""
        self.state, self.measures = heartbeat.state, heartbeat.measures
        if heartbeat.log_tail:
            self.log_tail, self.has_new_tail = heartbeat.log_tail, True
        grown = heartbeat.measures.peak_bytes > self.reported_peak_bytes * GROWN + GROWN_BYTES
        if grown:
            self.reported_peak_bytes = heartbeat.measures.peak_bytes
        if heartbeat.values == self.values:
            return grown
        self.values, self.has_new_values = heartbeat.values, True
        return True

    @property
    def can_be_returned(self) -> bool:
        """Whether it has not started and the server does not think otherwise. One whose files are staged here stays:
        elsewhere they would be fetched again."""
        has_files = bool(self.pins) or self.staging_measures != _NOTHING
        return self.state == "held" and not (self.was_reported_begun or self.suspended or self.cancelled or has_files)

    def to_heartbeat(self) -> Heartbeat:
        """Its heartbeat for the next request; long fields are included only when they have changed."""
        if self.is_abandoned:
            return Heartbeat(self.job, self.fence, "ending", _NOTHING)
        self.was_reported_begun |= self.state not in NOT_STARTED
        if not (self.has_new_tail or self.has_new_values):
            return Heartbeat(self.job, self.fence, self.state, self.measures)
        tail = self.log_tail if self.has_new_tail else ""
        values = self.values if self.has_new_values else _NO_VALUES
        self.has_new_tail = self.has_new_values = False
        return Heartbeat(self.job, self.fence, self.state, self.measures, tail, values)

    def resend_all(self) -> None:
        """Send all fields again: the last heartbeat may not have arrived."""
        self.has_new_tail, self.has_new_values = bool(self.log_tail), bool(self.values)


class Attempts:
    """All attempts of the pilot, those ready for a slot, and those to be reported. Ready attempts run by priority, then
    by arrival; an attempt that still waits for files does not block others."""

    def __init__(self, capacity: Capacity) -> None:
        self._capacity = capacity
        self.all: dict[AttemptKey, HeldAttempt] = {}
        self.ready: deque[HeldAttempt] = deque()
        self.reports: dict[AttemptKey, RawReport] = {}
        self._by_job: dict[JobId, HeldAttempt] = {}
        self._alive = 0
        self._came = 0
        self._after: dict[AttemptKey, HeldAttempt] = {}

    def add(self, held: HeldAttempt) -> HeldAttempt | None:
        """Add an attempt. Returns an older attempt of the same job that is still alive: it must end before the new one
        starts."""
        self.all[held.key] = held
        self._alive += 1
        self._came += 1
        held.arrived = self._came
        older = self._by_job.get(held.job)
        self._by_job[held.job] = held
        if older is not None and older.done is None and older.key in self.all:
            self._after[older.key] = held
            return older
        return None

    def enqueue(self, held: HeldAttempt) -> None:
        """Queue an attempt that needs nothing more than a slot."""
        if not self.ready or self.ready[-1].rank <= held.rank:
            self.ready.append(held)
        else:
            self.ready.insert(bisect(self.ready, held.rank, key=lambda each: each.rank), held)

    def can_start(self, held: HeldAttempt) -> bool:
        return held not in self._after.values() if self._after else True

    def mark_ended(self, held: HeldAttempt) -> HeldAttempt | None:
        """Mark an attempt as ended in its slot; returns the attempt that waited for this, if any."""
        if held.alive:
            held.alive = False
            self._alive -= 1
        if held.link is not None:
            held.link.holds.discard(held.key)
            held.link = None
        return self._after.pop(held.key, None)

    def report(self, held: HeldAttempt, outcome: msgspec.Raw) -> None:
        self.reports[held.key] = RawReport(held.job, held.fence, outcome)

    def forget(self, key: AttemptKey) -> HeldAttempt | None:
        self.reports.pop(key, None)
        held = self.all.pop(key, None)
        if held is not None and self._by_job.get(held.job) is held:
            del self._by_job[held.job]
        return held

    def heartbeats(self) -> list[Heartbeat]:
        reports = self.reports
        return [held.to_heartbeat() for key, held in self.all.items() if key not in reports]

    def resend_all(self) -> None:
        """Send every heartbeat in full: an exchange failed or was overtaken."""
        for held in self.all.values():
            held.resend_all()

    def alive(self) -> int:
        """How many attempts have not ended, in slots or not."""
        return self._alive

    @property
    def room(self) -> int:
        """How many more may come."""
        return max(0, HELD_MAX - len(self.all))

    def resources_in_use(self) -> ResourcesInUse:
        """The resources that running attempts use, whichever server assigned them."""
        needs = [held.resources for held in self.all.values() if held.alive]
        return ResourcesInUse(
            len(needs),
            sum(each.cpus for each in needs),
            sum(each.memory_bytes for each in needs),
            sum(each.disk_bytes for each in needs),
            sum(each.gpus for each in needs),
        )

    def fits(self, held: HeldAttempt, links: Iterable[SlotLink]) -> bool:
        """Whether the pilot has room for the attempt beside those in other slots."""
        needs = held.resources
        if needs == _PLAIN and self._capacity.cpus >= self._capacity.slots:
            return True
        cpus, memory_bytes, gpus = needs.cpus, needs.memory_bytes, needs.gpus
        busy = False
        for link in links:
            running = [self.all[key].resources for key in link.holds if key in self.all]
            if running:
                busy = True
                cpus += max(one.cpus for one in running)
                memory_bytes += max(one.memory_bytes for one in running)
                gpus += max(one.gpus for one in running)
        has = self._capacity
        # The server assigned it although it does not fit even an empty pilot: let it try.
        return not busy or (cpus <= has.cpus and memory_bytes <= has.memory_bytes and gpus <= has.gpus)
