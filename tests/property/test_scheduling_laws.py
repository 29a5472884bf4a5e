"""The laws of scheduling, in whatever order things happen: one holder, one result, no charge for others' faults."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mendflow.core.model.faults import INFRASTRUCTURE_CATEGORIES, Category, Fault
from mendflow.core.model.ids import CaseId, ItemId, JobId, PilotId
from mendflow.core.model.jobs import JobSpec, JobState, Measurements, Outcome, Resources
from mendflow.core.model.sync import AttemptStatus, Capacity
from mendflow.core.scheduling import job_events, jobs
from mendflow.core.scheduling.job_events import AttemptGranted, JobEvent, JobFinished
from mendflow.core.scheduling.jobs import RetryPolicy
from mendflow.core.scheduling.leases import Leases
from mendflow.core.scheduling.offer import Offer
from mendflow.core.scheduling.queue import JobQueue
from tests.core.scheduling.holding import is_holder

PILOTS = [PilotId("p-0"), PilotId("p-1"), PilotId("p-2")]
POLICY = RetryPolicy(losses_max=4, loss_wait_ms=10, wait_max_ms=100)
LEASE_MS = 100
JOB = JobId("c/1")

outcomes = st.one_of(
    st.just(Outcome(outputs=1)),
    st.sampled_from(sorted(Category)).map(
        lambda category: Outcome(fault=Fault(name="x", category=category, message="it broke"))
    ),
)
pilots = st.sampled_from(PILOTS)


class LifeOfAJob(RuleBasedStateMachine):  # JS-1 JS-2 JS-7
    """One job, three pilots that say anything at any time, a server that sees leases end and is started again."""

    @initialize(retries=st.integers(0, 3))
    def begin(self, retries: int) -> None:
        self.now = 1000
        spec = JobSpec(item=ItemId("x"), command="true", retries=retries, retry_wait_ms=5)
        self.job = jobs.create(JOB, CaseId("c"), spec, now=self.now)
        self.leases = Leases(LEASE_MS)
        self.fences: list[tuple[int, PilotId]] = []
        self.accepted_finals = 0
        self.ends = 0
        self.own_failures = 0

    def happen(self, events: list[JobEvent] | tuple[JobEvent, ...]) -> None:
        before, fence = self.job.state, self.job.fence
        for event in events:
            job_events.evolve(self.job, event)
            if isinstance(event, AttemptGranted):
                assert before is JobState.AVAILABLE and event.fence > fence, "a grant must find nobody, and raise"
            if isinstance(event, JobFinished):
                self.ends += 1
        if self.job.state is not before:
            assert self.job.state in job_events.TRANSITIONS[before]

    @rule(ms=st.integers(0, 60))
    def time_passes(self, ms: int) -> None:
        self.now += ms
        for over in self.leases.expired_attempts(now=self.now):
            assert (self.job.pilot, self.job.fence) == (over.pilot, over.fence)
            self.happen(jobs.lose(self.job, now=self.now, policy=POLICY))

    @rule(pilot=pilots)
    def grant(self, pilot: PilotId) -> None:
        events = jobs.grant(self.job, pilot, now=self.now)
        self.happen(events)
        if events:
            self.fences.append((self.job.fence, pilot))
            self.leases.grant(pilot, JOB, self.job.fence, now=self.now)

    @rule(pilot=pilots, back=st.integers(-1, 4), outcome=outcomes)
    def report(self, pilot: PilotId, back: int, outcome: Outcome) -> None:
        """Any pilot reports any attempt: its own, an older one, one that never was."""
        fence = self.job.fence - back
        holds = is_holder(self.leases, pilot, JOB, fence)
        failures, losses = self.job.failures, self.job.losses
        verdict = jobs.report(self.job, pilot, fence, outcome, now=self.now, policy=POLICY)
        assert bool(verdict.events) == holds, "only the present holder may change anything"
        assert verdict.accepted or not verdict.events
        assert not holds or verdict.accepted
        self.happen(verdict.events)
        self.accepted_finals += verdict.final
        if holds:
            self.leases.drop(pilot, JOB)
            own = outcome.fault is not None and outcome.fault.category not in INFRASTRUCTURE_CATEGORIES
            self.own_failures += own
            assert self.job.failures == failures + own
            assert self.job.losses == losses + (outcome.fault is not None and not own)
        else:
            again = jobs.report(self.job, pilot, fence, outcome, now=self.now, policy=POLICY)
            assert again == verdict, "a repeated report gets the same verdict"

    @rule(pilot=pilots, back=st.integers(0, 2))
    def give_back(self, pilot: PilotId, back: int) -> None:
        fence = self.job.fence - back
        if is_holder(self.leases, pilot, JOB, fence):
            charged = self.job.failures, self.job.losses
            self.happen(jobs.give_back(self.job, fence, now=self.now))
            self.leases.drop(pilot, JOB)
            assert (self.job.failures, self.job.losses) == charged
        elif back:
            assert jobs.give_back(self.job, fence, now=self.now) == []

    @rule(pilot=pilots, back=st.integers(0, 2))
    def heartbeat(self, pilot: PilotId, back: int) -> None:
        beat = AttemptStatus(JOB, self.job.fence - back, "running", Measurements())
        held = is_holder(self.leases, pilot, JOB, beat.fence)
        lost = self.leases.renew(pilot, [beat], now=self.now)
        assert bool(lost) != held

    @precondition(lambda self: self.ends == 0)
    @rule()
    def server_restarts(self) -> None:
        """Leases are only in memory; the job's document tells who holds it."""
        self.leases = Leases(LEASE_MS)
        self.leases.restore([self.job], now=self.now)

    @rule(rarely=st.integers(0, 9))
    def cancel(self, rarely: int) -> None:
        if rarely == 0:
            if self.job.pilot is not None:
                self.leases.drop(self.job.pilot, JOB)
            self.happen(jobs.cancel(self.job, now=self.now))

    @rule()
    def suspend(self) -> None:
        self.happen(jobs.suspend(self.job))

    @rule()
    def resume(self) -> None:
        self.happen(jobs.resume(self.job))

    @invariant()
    def the_job_is_whole(self) -> None:
        job_events.validate(self.job)

    @invariant()
    def at_most_one_holds_it_and_the_document_names_it(self) -> None:
        holders = [pilot for pilot in PILOTS if is_holder(self.leases, pilot, JOB, self.job.fence)]
        assert holders == ([self.job.pilot] if self.job.state is JobState.RUNNING else [])

    @invariant()
    def fences_only_rise(self) -> None:
        numbers = [fence for fence, _ in self.fences]
        assert numbers == sorted(set(numbers))

    @invariant()
    def it_ends_at_most_once(self) -> None:
        assert self.accepted_finals <= self.ends <= 1
        assert (self.ends == 1) == self.job.finished

    @invariant()
    def the_infrastructure_never_spends_its_retries(self) -> None:
        assert self.job.failures == self.own_failures
        assert self.job.losses <= POLICY.losses_max + 1


TestLifeOfAJob = LifeOfAJob.TestCase

GB = 1 << 30
needs = st.builds(
    Resources,
    cpus=st.sampled_from([0.5, 1.0, 2.0, 4.0]),
    memory_bytes=st.sampled_from([0, GB, 3 * GB, 8 * GB]),
    disk_bytes=st.sampled_from([0, GB]),
    gpus=st.integers(0, 1),
    wall_ms=st.sampled_from([0, 500]),
    site=st.sampled_from(["", "", "here", "there"]),
)
offers = st.builds(
    Offer,
    cpus=st.sampled_from([0.5, 1.0, 3.0, 8.0]),
    memory_bytes=st.sampled_from([0, 2 * GB, 8 * GB, 20 * GB]),
    disk_bytes=st.sampled_from([0, 2 * GB]),
    gpus=st.integers(0, 2),
    ttl_ms=st.sampled_from([0, 100, 1000]),
    site=st.sampled_from(["", "here", "there", "elsewhere"]),
)


def fits(r: Resources, offer: Offer) -> bool:
    return (
        r.cpus <= offer.cpus
        and r.memory_bytes <= offer.memory_bytes
        and r.disk_bytes <= offer.disk_bytes
        and r.gpus <= offer.gpus
        and (not offer.ttl_ms or r.wall_ms <= offer.ttl_ms)
        and r.site in ("", offer.site)
    )


class QueueAgainstAList(RuleBasedStateMachine):  # PJ-1
    """The queue gives what a plain search through a sorted list would give."""

    @initialize()
    def begin(self) -> None:
        self.queue = JobQueue()
        self.model: dict[JobId, tuple[int, int, int, int, Resources]] = {}
        self.serial = 0
        self.now = 1000

    @rule(r=needs, priority=st.integers(-1, 2), age=st.integers(0, 5), wait=st.sampled_from([0, 0, 0, 7]))
    def add(self, r: Resources, priority: int, age: int, wait: int) -> None:
        self.serial += 1
        id, since = JobId(f"c/{self.serial}"), self.now - age
        not_before = self.now + wait if wait else 0
        self.queue.add(id, r, priority, since, not_before)
        self.model[id] = (-priority, since, self.serial, not_before, r)

    @rule(pick=st.integers(0, 1000))
    def remove(self, pick: int) -> None:
        if self.model:
            id = sorted(self.model)[pick % len(self.model)]
            del self.model[id]
            assert self.queue.remove(id)
        assert not self.queue.remove(JobId("c/never"))

    @rule(ms=st.integers(0, 5))
    def time_passes(self, ms: int) -> None:
        self.now += ms

    @rule(offer=offers, most=st.integers(0, 4))
    def take(self, offer: Offer, most: int) -> None:
        expected: list[JobId] = []
        left = offer
        for id, (_, _, _, not_before, r) in sorted(self.model.items(), key=lambda pair: pair[1][:3]):
            if len(expected) < most and not_before <= self.now and fits(r, left):
                expected.append(id)
                left = Offer(
                    cpus=left.cpus - r.cpus,
                    memory_bytes=left.memory_bytes - r.memory_bytes,
                    disk_bytes=left.disk_bytes - r.disk_bytes,
                    gpus=left.gpus - r.gpus,
                    ttl_ms=left.ttl_ms,
                    site=left.site,
                )
        assert self.queue.take(offer, most, self.now) == expected
        for id in expected:
            del self.model[id]

    @invariant()
    def both_have_the_same_jobs(self) -> None:
        assert len(self.queue) == len(self.model)
        assert all(id in self.queue for id in self.model)


TestQueueAgainstAList = QueueAgainstAList.TestCase


class NobodyStarves(RuleBasedStateMachine):
    """However small jobs stream in, a large one runs as long as jobs end and its pilots keep asking."""

    @initialize(pilots=st.integers(1, 3))
    def begin(self, pilots: int) -> None:
        self.queue = JobQueue(patience_ms=50)
        self.now = 0
        self.serial = 0
        # Every pilot is busy already, with jobs that end one after another.
        self.running: dict[PilotId, list[tuple[int, float]]] = {
            PilotId(f"p-{n}"): [(end, 1) for end in (10, 17, 24, 31)] for n in range(pilots)
        }
        self.large_done = False
        self.queue.add(JobId("large"), Resources(cpus=4), 0, 0)

    @rule(small=st.integers(1, 6), lasts=st.integers(1, 30), pick=st.integers(0, 2))
    def small_ones_stream_in(self, small: int, lasts: int, pick: int) -> None:
        self.now += 3
        for _ in range(small):
            self.serial += 1
            self.queue.add(JobId(f"s{self.serial}"), Resources(cpus=1), 0, self.now)
        names = sorted(self.running)
        self.ask(names[pick % len(names)], lasts)

    def ask(self, name: PilotId, lasts: int) -> None:
        self.running[name] = [(end, cpus) for end, cpus in self.running[name] if end > self.now]
        free = 4 - sum(cpus for _, cpus in self.running[name])
        whole = Capacity(slots=4, cpus=4, memory_bytes=0, disk_bytes=0)
        offer = Offer(cpus=free, memory_bytes=0, disk_bytes=0, pilot=name, whole=whole)
        for id in self.queue.take(offer, 1, self.now):  # one at a time, so that they never end all at once
            self.large_done = self.large_done or id == "large"
            self.running[name].append((self.now + lasts, 4 if id == "large" else 1))
        assert sum(cpus for _, cpus in self.running[name]) <= 4

    def teardown(self) -> None:
        """From wherever the run has left it, the large job comes within its patience and the longest small job."""
        if not hasattr(self, "queue"):
            return
        for _ in range(60):
            self.now += 3
            for name in self.running:
                self.serial += 1
                self.queue.add(JobId(f"s{self.serial}"), Resources(cpus=1), 0, self.now)
                self.ask(name, 30)
        assert self.large_done


TestNobodyStarves = NobodyStarves.TestCase
