"""The assigner: takes jobs that fit a pilot from the queue, grants them, and puts them into the answer."""

from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import Resources
from mendflow.core.model.sync import Assignment, SyncRequest
from mendflow.core.scheduling import jobs as job_lifecycle
from mendflow.core.scheduling import prefetch
from mendflow.services.base.contracts import Clock
from mendflow.services.scheduling.answer import AnswerBuilder
from mendflow.services.scheduling.pilot_records import GrantedAttempt, PilotRecord
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler

EXPECTED_MS = 1_000
"""For how long a pilot that has reported is expected to ask for jobs."""


class Assigner:
    def __init__(self, meta: PilotScheduler, clock: Clock) -> None:
        self._meta = meta
        self._clock = clock

    def expect(self, pilot: PilotRecord, request: SyncRequest) -> None:
        """The pilot reports ended jobs, and wants more. Jobs that follow from them are put into the queue while its
        reports are processed, and read what it has just made: no other pilot gets these before it has asked."""
        if request.reports and request.want > 0 and self._meta.caches.holds(pilot.id):
            now = self._clock.now()
            self._meta.queue.expect(pilot.offer((), rounds=1, now=now, idle_ms=EXPECTED_MS), request.want, now)

    def hand_out(self, pilot: PilotRecord, request: SyncRequest, draft: AnswerBuilder, idle_ms: int) -> None:
        """Give the pilot jobs that fit. If these are fewer than it wants, it counts as idle for so long."""
        if self._meta.pilots.get(pilot.id) is not pilot:
            return  # this server was paused for a whole lease in the middle of this, and counts the pilot as gone
        want = request.want - len(draft.jobs)
        if want <= 0 or not (len(self._meta.queue) or self._meta.caches.holds(pilot.id)):
            pilot.wants_jobs = want > 0
            self._meta.queue.mark_busy(pilot.id)
            return
        now, slots_open = self._clock.now(), pilot.slots_open()
        taken = self._take(pilot, request, draft, want, idle_ms)
        pilot.wants_jobs = len(taken) < want
        if self._meta.queue.take_freed(now):
            self._meta.idle.wake()
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
            self._meta.leases.grant(pilot.id, id, job.fence, now=self._meta.steady_ms_now())
            pilot.held[id] = GrantedAttempt(request.serial, runs=place < slots_open)
            self._meta.changed(job, from_outside=True)
            draft.jobs.append(Assignment(id, job.fence, self._meta.spec_for_pilot(job), job.tries))

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
        return meta.queue.take(offer, most, now)

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
