"""A match by data gives what a plain search through all jobs would give, as long as its bounds do not bite; and
whatever pilots have and do, every job is taken in the end."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mendflow.core.model.data import CachedFile, CacheUpdate
from mendflow.core.model.ids import JobId, PilotId
from mendflow.core.model.jobs import Resources
from mendflow.core.scheduling.cache_index import file_key
from mendflow.core.scheduling.data_match import JOBS_LOOKED, OVERTAKES_MAX, OWN_SHIFT
from mendflow.core.scheduling.data_wait import DATA_WAIT_MS
from mendflow.core.scheduling.offer import Offer
from mendflow.core.scheduling.queue import JobQueue

SIZES = {f"{number + 1:x}".ljust(64, "0"): size for number, size in enumerate((0, 7, 7, 5_000))}
KEYS = {digest: file_key(digest) for digest in SIZES}
HOSTS = {"p0": "north", "p1": "north", "p2": "south", "p3": ""}

pilots = st.sampled_from(sorted(HOSTS))
digests = st.frozensets(st.sampled_from(sorted(SIZES)), max_size=3)
needs = st.builds(Resources, cpus=st.sampled_from([1.0, 2.0]), site=st.sampled_from(["", "", "here"]))


class Job:
    def __init__(self, priority: int, since: int, serial: int, needs: Resources, files: frozenset[str]) -> None:
        self.order = (-priority, since, serial)
        self.needs = needs
        self.files = files
        self.overtaken = 0


def offer(pilot: str, cpus: float, site: str = "", idle_ms: int = 0) -> Offer:
    return Offer(cpus=cpus, memory_bytes=1, disk_bytes=1, site=site, pilot=PilotId(pilot), idle_ms=idle_ms)


class World(RuleBasedStateMachine):
    """Pilots with caches that change, and a queue; nobody is ever idle here."""

    idle_ms = 0

    @initialize()
    def begin(self) -> None:
        self.queue = JobQueue()
        self.jobs: dict[JobId, Job] = {}
        self.caches: dict[str, dict[str, int]] = {pilot: {} for pilot in HOSTS}
        self.versions = dict.fromkeys(HOSTS, 0)
        self.serial = 0
        self.now = 1000

    @precondition(lambda self: len(self.jobs) < JOBS_LOOKED // len(SIZES))
    @rule(priority=st.integers(0, 1), age=st.integers(0, 3), r=needs, files=digests)
    def add(self, priority: int, age: int, r: Resources, files: frozenset[str]) -> None:
        self.serial += 1
        id = JobId(f"c/{self.serial}")
        self.jobs[id] = Job(priority, self.now - age, self.serial, r, files)
        self.queue.add(id, r, priority, self.now - age, files=tuple(KEYS[each] for each in files))

    @rule(pick=st.integers(0, 1000))
    def remove(self, pick: int) -> None:
        if self.jobs:
            id = sorted(self.jobs)[pick % len(self.jobs)]
            del self.jobs[id]
            assert self.queue.remove(id)

    @rule(pilot=pilots, files=digests, whole=st.booleans())
    def news(self, pilot: str, files: frozenset[str], whole: bool) -> None:
        """The pilot has these files now, and says what has changed or all of it."""
        before, held = self.caches[pilot], {digest: SIZES[digest] for digest in files}
        base, version = (0 if whole else self.versions[pilot]), self.versions[pilot] + 1
        added = [CachedFile(digest, size) for digest, size in held.items() if not base or digest not in before]
        gone = [digest for digest in before if digest not in held] if base else []
        assert self.queue.caches.hear(PilotId(pilot), CacheUpdate(version, base, added, gone), HOSTS[pilot])
        self.caches[pilot], self.versions[pilot] = held, version

    @rule(pilot=pilots)
    def leaves(self, pilot: str) -> None:
        self.queue.leave(PilotId(pilot))
        self.caches[pilot], self.versions[pilot] = {}, 0

    @invariant()
    def both_have_the_same_jobs(self) -> None:
        assert len(self.queue) == len(self.jobs)


class AgainstAPlainSearch(World):  # PJ-3
    @rule(
        pilot=pilots, cpus=st.sampled_from([1.0, 2.0, 3.0]), site=st.sampled_from(["", "here"]), most=st.integers(1, 3)
    )
    def take(self, pilot: str, cpus: float, site: str, most: int) -> None:
        expected = self.expected(pilot, cpus, site, most)
        assert self.queue.take(offer(pilot, cpus, site), most, self.now) == expected
        for id in expected:
            del self.jobs[id]

    def expected(self, pilot: str, cpus: float, site: str, most: int) -> list[JobId]:
        taken: list[JobId] = []
        while len(taken) < most:
            fitting = [
                (id, job)
                for id, job in self.jobs.items()
                if id not in taken and job.needs.cpus <= cpus and job.needs.site in ("", site)
            ]
            if not fitting:
                break
            first, its = min(fitting, key=lambda each: each[1].order)
            best, job = min(fitting, key=lambda each: (each[1].order[0], -self.counts(pilot, each[1]), each[1].order))
            if best != first and its.overtaken >= OVERTAKES_MAX:
                best, job = first, its
            elif best != first:
                its.overtaken += 1
            taken.append(best)
            cpus -= job.needs.cpus
        return taken

    def counts(self, pilot: str, job: Job) -> int:
        """The bytes of a job's input that are at hand; own files count a little more than the host's."""
        host = HOSTS[pilot] if self.versions[pilot] else ""  # who has said nothing shares nothing
        near = [self.caches[other] for other in HOSTS if other == pilot or (host and HOSTS[other] == host)]
        return sum(
            SIZES[each] + (SIZES[each] >> OWN_SHIFT) + 1
            if each in self.caches[pilot]
            else max((cache.get(each, 0) for cache in near), default=0)
            for each in job.files
        )


TestAgainstAPlainSearch = AgainstAPlainSearch.TestCase


class NothingIsKeptBackForEver(World):  # PJ-4
    """Pilots that come, fall silent or leave while they count as idle: no job waits for them longer than the bound."""

    @rule(ms=st.integers(0, DATA_WAIT_MS))
    def time_passes(self, ms: int) -> None:
        self.now += ms

    @rule(pilot=pilots, most=st.integers(1, 2), idle_ms=st.sampled_from([0, 100, 100_000]))
    def ask(self, pilot: str, most: int, idle_ms: int) -> None:
        for id in self.queue.take(offer(pilot, most, "here", idle_ms), most, self.now):
            del self.jobs[id]

    @rule(pilot=pilots)
    def wants_nothing(self, pilot: str) -> None:
        self.queue.mark_busy(PilotId(pilot))

    @invariant()
    def nothing_is_kept_back_longer_than_the_bound(self) -> None:
        for id in self.jobs:
            kept = self.queue.kept_back(id, self.now)
            assert kept is None or self.now < kept.until <= self.now + DATA_WAIT_MS

    def teardown(self) -> None:
        """However it was left: one pilot without any data, asking for one at a time, gets everything."""
        if not hasattr(self, "queue"):
            return
        for _ in range(2 * len(self.jobs) + 2):
            for id in self.queue.take(offer("new", 2, "here"), 1, self.now):
                del self.jobs[id]
            self.now += DATA_WAIT_MS
        assert not self.jobs


TestNothingIsKeptBackForEver = NothingIsKeptBackForEver.TestCase
