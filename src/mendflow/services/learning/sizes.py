"""Sizes jobs whose memory or time is learned.

What the finished jobs of a name have used is a small document, shared by all servers: each merges into it, by
compare-and-set, what has ended there, and reads from it what has ended elsewhere. What a job asks for is written into
its own document before a pilot gets it, so it does not depend on what is learned later. Jobs that still wait are sized
again when twice as much is known, or when a scout has failed."""

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from mendflow.core.learning.sizes import RUNS_MAX, SCOUTS
from mendflow.core.learning.sizes_requests import (
    JobSizes,
    LearnedJobName,
    LearnedRun,
    flow_of,
    job_name,
    run_of,
)
from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.ids import CaseId, Instant, item_name
from mendflow.core.model.jobs import Job, JobState, LearnedRequest
from mendflow.services.base.background_tasks import BackgroundTasks
from mendflow.services.base.contracts import Clock, NewJob
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.learning.ended_jobs import EndedJobs
from mendflow.services.scheduling.facts import JobRequeued, JobSizer
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.stores.contract import Put, Store, StoredDocument, WriteConflict

SIZE_KIND: Final = "size"
READ_AGAIN_MS: Final = 60_000
"""A name's document is read again after so long: other servers learn too."""

MERGE_SOON_MS: Final = 500
MERGE_LATER_MS: Final = 20_000
"""After how long what has ended is written: of names whose sizes are learned, and of all others."""

NAMES_MAX: Final = 10_000
"""One server learns no more names than this at a time: if there are more, something generates them."""

NAMES_AT_ONCE: Final = 200
"""So many names are read and written together."""


class SizeStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """The latest runs of a flow's jobs of one name, and how many there were in all."""

    flow: str
    name: str
    jobs: int = 0
    runs: list[LearnedRun] = []
    at: Instant = 0


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(SizeStatistics).decode


class _KnownName:
    """What this server knows of a name that is being sized."""

    def __init__(self, runs: Sequence[LearnedRun], read_at: Instant) -> None:
        self.read_at = read_at
        self.sizes = JobSizes(runs)
        self.learned = self._sized_with = len(runs)

    def learn(self, run: LearnedRun) -> bool:
        """Whether so much more is known that jobs that wait are to be sized again."""
        self.sizes.learn(run)
        self.learned += 1
        enough = self.learned >= max(2 * self._sized_with, SCOUTS) or self.learned - self._sized_with >= RUNS_MAX
        if enough:
            self._sized_with = self.learned
        return enough


class _EndedRuns:
    """What has ended here of one name since it was last written: how many runs, and the latest of them."""

    def __init__(self) -> None:
        self.jobs = 0
        self.runs: deque[LearnedRun] = deque(maxlen=RUNS_MAX)

    def add(self, run: LearnedRun) -> None:
        self.jobs += 1
        self.runs.append(run)


class SizeLearner:
    """Provides `JobSizer`."""

    def __init__(
        self, *, store: Store, ledger: Ledger, clock: Clock, hub: Hub, meta: PilotScheduler, ended_jobs: EndedJobs
    ) -> None:
        self._store = store
        self._clock = clock
        self._meta = meta
        self._known: dict[LearnedJobName, _KnownName] = {}
        self._sized_names: set[str] = set()  # of `_known`, without their flows
        self._new: dict[LearnedJobName, _EndedRuns] = {}
        self._new_by_case: dict[tuple[CaseId, str], _EndedRuns | None] = {}  # of `_new`, so that they are found quickly
        self._background = BackgroundTasks(ledger)
        self._merge_at: Instant = 0
        self._merging = asyncio.Lock()
        self._ended_jobs = ended_jobs
        ended_jobs.want_at_once(self._sized_names)
        ended_jobs.read_by(self._jobs_ended)
        hub.provide(JobSizer, self)
        if ended_jobs.learns:
            hub.subscribe(JobRequeued, self._job_requeued)

    async def stop(self) -> None:
        """Write what was learned."""
        try:
            await self.merge()  # before others are stopped: one of them may be writing
        except StoreUnavailable:
            pass  # a few runs less are known
        await self._background.stop()

    async def load(self, jobs: Sequence[NewJob]) -> None:
        now = self._clock.now()
        for name in {LearnedJobName(flow_of(new.case), item_name(new.spec.item)) for new in jobs}:
            known = self._known.get(name)
            if known is not None and now - known.read_at < READ_AGAIN_MS:
                continue
            try:
                found = _statistics(name, await self._store.get(SIZE_KIND, _id(name)))
            except StoreUnavailable:
                continue  # they are sized by what is known here
            self._know(name, found, now)

    def size_of(self, job: Job) -> LearnedRequest | None:
        known = self._known.get(job_name(job))
        if known is not None:
            return known.sizes.request(job)
        return None if job.sizing is not None else JobSizes().request(job)

    async def merge(self) -> None:
        """Write the runs since the last time; what is being written already is written when this returns."""
        self._ended_jobs.hand_over()
        async with self._merging:
            names = list(self._new)
            for at in range(0, len(names), NAMES_AT_ONCE):
                ended = {name: self._new.pop(name) for name in names[at : at + NAMES_AT_ONCE]}
                self._new_by_case = {}
                while ended:
                    ended = await self._merge(ended)

    async def statistics(self, flow: str = "", name: str = "") -> list[SizeStatistics]:
        """What the store knows of all names: of one flow, of one name."""
        await self.merge()
        found = []
        async for document in self._store.scan(SIZE_KIND, f"{flow}/" if flow else ""):
            known = _decode(document.body)
            if name in ("", known.name) and flow in ("", known.flow):
                found.append(known)
        return found

    def _job_requeued(self, requeued: JobRequeued) -> None:
        if requeued.job.spec.resources.is_learned:
            self._attempt_failed(requeued.job)

    def _jobs_ended(self, jobs: Sequence[Job]) -> None:
        """A job whose name is being sized teaches what waits at once; any other is only remembered. Every job that ends
        comes here, so it takes no more steps than it must."""
        by_case, sized_names = self._new_by_case, self._sized_names
        for job in jobs:
            if job.name in sized_names:
                self._learn_job(job)
                continue
            if not job.history or (run := run_of(job)) is None:
                continue
            key = (job.case, job.name)
            try:
                new = by_case[key]
            except KeyError:
                new = by_case[key] = self._ended_runs(job_name(job))
            if new is not None:
                new.add(run)
        if not self._merge_at:  # nothing is written later than that
            self._merge_within(MERGE_LATER_MS)

    def _learn_job(self, job: Job) -> None:
        if not job.history:
            return
        run = run_of(job)
        if run is None:
            self._attempt_failed(job)
            return
        name = job_name(job)
        new = self._ended_runs(name)
        if new is not None:
            new.add(run)
        known = self._known.get(name)
        self._merge_within(MERGE_SOON_MS)
        if known is not None and known.learn(run):
            self._meta.size_waiting_again(list(self._waiting(name)))

    def _ended_runs(self, name: LearnedJobName) -> _EndedRuns | None:
        """Where runs of the name are gathered; None if there are too many names."""
        new = self._new.get(name)
        if new is None and len(self._new) < NAMES_MAX:
            new = self._new[name] = _EndedRuns()
        return new

    def _attempt_failed(self, job: Job) -> None:
        if (fault := job.history[-1].fault) is None:
            return
        name = job_name(job)
        known = self._known.get(name)
        if known is not None and known.sizes.note_failure(fault.category):
            self._meta.size_waiting_again(list(self._waiting(name)))

    def _waiting(self, name: LearnedJobName) -> Iterator[Job]:
        for job in self._meta.jobs.values():
            if job.state is JobState.AVAILABLE and job.spec.resources.is_learned and job_name(job) == name:
                yield job

    def _merge_within(self, wait_ms: int) -> None:
        """Have it written then, unless it is written before."""
        now = self._clock.now()
        if not now < self._merge_at <= now + wait_ms:
            self._merge_at = now + wait_ms
            self._background.start(self._merge_later(wait_ms))

    async def _merge_later(self, wait_ms: int) -> None:
        merge_at = self._merge_at
        await self._clock.sleep(wait_ms)
        if merge_at == self._merge_at:
            self._merge_at = 0
        await self.merge()

    async def _merge(self, ended: dict[LearnedJobName, _EndedRuns]) -> dict[LearnedJobName, _EndedRuns]:
        """Those that another server wrote meanwhile are returned. The store commits the writes together."""
        stored = {each.id: each for each in await self._store.get_many(SIZE_KIND, [_id(name) for name in ended])}
        now = self._clock.now()
        writes = []
        for name, new in ended.items():
            found = stored.get(_id(name))
            before = _statistics(name, found)
            merged = msgspec.structs.replace(
                before, jobs=before.jobs + new.jobs, runs=[*before.runs, *new.runs][-RUNS_MAX:], at=now
            )
            writes.append(Put(SIZE_KIND, _id(name), _encode(merged), found.version if found else 0))
        results = await asyncio.gather(*(self._store.write([write]) for write in writes))
        late = {write.id for write, [one] in zip(writes, results, strict=True) if isinstance(one, WriteConflict)}
        return {name: new for name, new in ended.items() if _id(name) in late}

    def _know(self, name: LearnedJobName, found: SizeStatistics, now: Instant) -> None:
        """Take what the store knows, and what has ended here since it was written."""
        before = self._known.pop(name, None)
        ended = self._new.get(name)
        self._sized_names.add(name.name)
        self._known[name] = known = _KnownName([*found.runs, *(ended.runs if ended is not None else ())], now)
        if before is not None:
            known.sizes.share_failures(before.sizes)
        if len(self._known) > NAMES_MAX:
            del self._known[next(iter(self._known))]
            self._sized_names.clear()
            self._sized_names.update(each.name for each in self._known)


def _statistics(name: LearnedJobName, stored: StoredDocument | None) -> SizeStatistics:
    return _decode(stored.body) if stored is not None else SizeStatistics(flow=name.flow, name=name.name)


def _id(name: LearnedJobName) -> str:
    return f"{name.flow}/{name.name}"
