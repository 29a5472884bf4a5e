"""The assigner: takes jobs that fit a pilot from the queue, grants them, and puts them into the answer."""

import logging

from mendflow.core.model.errors import RequestError, StoreUnavailable
from mendflow.core.model.faults import Fault
from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import Job, JobState, Resources
from mendflow.core.model.sync import Assignment, SyncRequest
from mendflow.core.scheduling import jobs as job_lifecycle
from mendflow.core.scheduling import prefetch
from mendflow.services.base.contracts import Clock
from mendflow.services.scheduling.answer import AnswerBuilder
from mendflow.services.scheduling.limit_service import LimitService
from mendflow.services.scheduling.pilot_records import GrantedAttempt, PilotRecord
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.services.scheduling.secret_service import SecretService, SecretUnavailable, unavailable_fault

log = logging.getLogger("mendflow.assigner")

EXPECTED_MS = 1_000
"""For how long a pilot that has reported is expected to ask for jobs."""


class Assigner:
    def __init__(
        self,
        meta: PilotScheduler,
        clock: Clock,
        limits: LimitService | None = None,
        secrets: SecretService | None = None,
    ) -> None:
        """Without `limits` no job is granted that uses some, and without `secrets` none that uses a secret."""
        self._meta = meta
        self._limits = limits
        self._secrets = secrets
        self._clock = clock

    def expect(self, pilot: PilotRecord, request: SyncRequest) -> None:
        """The pilot reports ended jobs, and wants more. Jobs that follow from them are put into the queue while its
        reports are processed, and read what it has just made: no other pilot gets these before it has asked."""
        if request.reports and request.want > 0 and not pilot.drained and self._meta.caches.holds(pilot.id):
            now = self._clock.now()
            self._meta.queue.expect(pilot.offer((), rounds=1, now=now, idle_ms=EXPECTED_MS), request.want, now)

    async def hand_out(self, pilot: PilotRecord, request: SyncRequest, draft: AnswerBuilder, idle_ms: int) -> None:
        """Give the pilot jobs that fit. If these are fewer than it wants, it counts as idle for so long."""
        if self._meta.pilots.get(pilot.id) is not pilot:
            return  # this server was paused for a whole lease in the middle of this, and counts the pilot as gone
        want = request.want - len(draft.jobs) if not pilot.drained else 0
        if want <= 0 or not (len(self._meta.queue) or self._meta.caches.holds(pilot.id)):
            pilot.wants_jobs = want > 0
            self._meta.queue.mark_busy(pilot.id)
            return
        now, slots_open = self._clock.now(), pilot.slots_open()
        taken = self._take(pilot, request, draft, want, idle_ms)
        pilot.wants_jobs = len(taken) < want
        if self._meta.queue.take_freed(now):
            self._meta.idle.wake()
        jobs = [self._meta.jobs[id] for id in taken]
        limited = [job for job in jobs if self._is_limited(job)]
        values: dict[JobId, dict[str, str]] = {}
        if limited or any(job.spec.secrets for job in jobs):
            taken, values = await self._prepare_or_put_back(pilot, request, jobs, limited)
            pilot.wants_jobs = len(taken) < want
        lease_begins = self._meta.steady_ms_now()
        for place, id in enumerate(taken):
            job = self._meta.jobs[id]
            events = job_lifecycle.grant(
                job,
                pilot.id,
                now=now,
                host=pilot.host,
                site=pilot.site,
                token=pilot.owner,
                serial=request.serial,
                lease_ms=self._meta.leases.lease_ms,
                because=self._meta.match_reason(job),
            )
            self._meta.apply(job, events)
            assert job.pilot == pilot.id
            self._meta.leases.grant(pilot.id, id, job.fence, now=lease_begins)
            pilot.held[id] = GrantedAttempt(request.serial, runs=place < slots_open)
            self._meta.changed(job, from_outside=True)
            spec = self._meta.spec_for_pilot(job)
            number = spec.earlier_attempts + job.tries
            draft.jobs.append(Assignment(id, job.fence, spec, number, values.get(id, {})))
        if limited and self._limits is not None:
            self._limits.granted(limited)

    def _is_limited(self, job: Job) -> bool:
        return bool(self._limits.uses(job) if self._limits is not None else job.spec.limits.named)

    async def _prepare_or_put_back(
        self, pilot: PilotRecord, request: SyncRequest, jobs: list[Job], limited: list[Job]
    ) -> tuple[list[JobId], dict[JobId, dict[str, str]]]:
        """Whatever goes wrong with the limits or the secrets of some jobs, or if the pilot hangs up meanwhile: all that
        were taken from the queue go back into it, and what they hold is given back."""
        try:
            return await self._prepare(pilot, request, jobs, limited)
        except BaseException as error:  # whatever it is, and a pilot that hangs up: no job may be lost
            for job in jobs:
                if self._waits_still(job):
                    self._meta.enqueue(job)
            if self._limits is not None:
                self._limits.granted(limited)
            if not isinstance(error, RequestError) or isinstance(error, StoreUnavailable):
                raise
            log.warning("pilot %s gets no jobs now, they wait again: %s", pilot.id, error.message)
            return [], {}

    async def _prepare(
        self, pilot: PilotRecord, request: SyncRequest, jobs: list[Job], limited: list[Job]
    ) -> tuple[list[JobId], dict[JobId, dict[str, str]]]:
        """Let jobs hold the named limits that they use, and open their secrets. Those that may not start are put back
        into the queue, and those whose secrets cannot be opened end. Meanwhile jobs and pilots may have changed: what
        was cancelled or suspended is not granted, nor anything to a pilot that has asked anew."""
        may_start = await self._limits.take(limited) if self._limits is not None and limited else frozenset()
        may_not = {job.id for job in limited} - may_start
        values, faults = await self._open_secrets([job for job in jobs if job.id not in may_not])
        there = self._meta.pilots.get(pilot.id) is pilot and pilot.newest == request.serial and not pilot.released
        ready: list[JobId] = []
        for job in jobs:
            if not self._waits_still(job):
                continue
            if (fault := faults.get(job.id)) is not None:
                self._meta.apply(job, job_lifecycle.refuse(job, fault, now=self._clock.now()))
                await self._meta.finish(job)
            elif not there or job.id in may_not:
                self._meta.enqueue(job)
            else:
                ready.append(job.id)
        return [id for id in ready if id in self._meta.jobs], values

    async def _open_secrets(self, jobs: list[Job]) -> tuple[dict[JobId, dict[str, str]], dict[JobId, Fault]]:
        """The values of the secrets that jobs use, and why some cannot be had."""
        values: dict[JobId, dict[str, str]] = {}
        faults: dict[JobId, Fault] = {}
        for job in jobs:
            if not job.spec.secrets:
                continue
            try:
                if self._secrets is None:
                    raise SecretUnavailable("this server gives no secrets to jobs")
                values[job.id] = await self._secrets.values_for(job)
            except SecretUnavailable as error:
                faults[job.id] = unavailable_fault(error)
        return values, faults

    def _waits_still(self, job: Job) -> bool:
        """Whether a job that was taken from the queue is as it was: it has not ended, and nobody has put it back."""
        same = self._meta.jobs.get(job.id) is job and job.state is JobState.AVAILABLE
        return same and not job.suspended and job.id not in self._meta.queue

    def _take(
        self, pilot: PilotRecord, request: SyncRequest, draft: AnswerBuilder, want: int, idle_ms: int
    ) -> list[JobId]:
        """Jobs that fit into the pilot. Of short jobs, which it prefetches, it gets no more than its share while other
        pilots want some too."""
        meta, now = self._meta, self._clock.now()
        attempts, needs = self._resources_in_use(pilot, request, draft)
        free_slots = max(0, request.capacity.slots - attempts)
        most = want
        if most > free_slots:
            hungry = sum(other.want > 0 for other in meta.pilots.values()) or 1
            most = min(most, max(free_slots, -(-len(meta.queue) // hungry)))
        rounds = prefetch.rounds(most, request.capacity.slots)
        offer = pilot.offer([] if most > free_slots else needs, rounds=rounds, now=now, idle_ms=idle_ms)
        return meta.queue.take(offer, most, now, limited_most=min(most, free_slots))

    def _resources_in_use(
        self, pilot: PilotRecord, request: SyncRequest, draft: AnswerBuilder
    ) -> tuple[int, list[Resources]]:
        """How many attempts the pilot has, and their resources: by our records, or by its own report if it has attempts
        of other servers too. Grants that it has not confirmed yet are added."""
        jobs = self._meta.jobs
        if request.taken is None or not (request.front or draft.has_remote):
            return len(pilot.held), [jobs[id].spec.resources for id in pilot.held]
        named = {beat.job for beat in request.running}
        coming = [jobs[id].spec.resources for id in pilot.held if id not in named]
        attempts = request.taken.attempts + len(coming) + len(draft.jobs)
        return attempts, [*draft.resources_used(request), *coming]
