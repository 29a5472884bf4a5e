"""Why a job of this server's queue waits."""

from collections.abc import Callable

import msgspec

from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import Job, JobState, Resources
from mendflow.core.model.views import Reason
from mendflow.core.scheduling import data_explanations, explanations
from mendflow.core.scheduling.jobs import effective_needs
from mendflow.services.base.contracts import Clock
from mendflow.services.scheduling.limit_service import LimitService
from mendflow.services.scheduling.pilot_records import PilotRecord
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.services.scheduling.project_service import ProjectService
from mendflow.services.scheduling.sites.pilot_monitor import SiteHelp


class WaitingReasons:
    """`help_for` says what sites do for jobs with such needs, `limits` who uses named limits, `projects`
    what quotas and shares have to do with it."""

    def __init__(
        self,
        meta: PilotScheduler,
        clock: Clock,
        help_for: Callable[[Resources], SiteHelp],
        limits: LimitService | None = None,
        projects: ProjectService | None = None,
    ) -> None:
        self._meta = meta
        self._limits = limits
        self._projects = projects
        self._clock = clock
        self._help_for = help_for

    def of(self, id: JobId, *, is_of_many: bool = False) -> Reason | None:
        """The reason without the name of the job; None if it does not wait in this server's queue. If it stands for
        many that need the like, nothing is said of its own place in the queue."""
        job = self._meta.jobs.get(id)
        if job is None or job.state is not JobState.AVAILABLE:
            return None
        told = self.why(job, is_of_many=is_of_many)
        return msgspec.structs.replace(told, sentence=told.sentence.removeprefix(f"{job.spec.shown}: "))

    def why(self, job: Job, *, is_of_many: bool = False) -> Reason:
        meta, now = self._meta, self._clock.now()
        sites = self._help_for(effective_needs(job))
        told = explanations.why_waiting(
            job,
            [self._facts(pilot) for pilot in meta.pilots.values() if pilot.seen_at],
            None if is_of_many else meta.queue.jobs_ahead(job.id, now),
            now,
            coming=sites.helps or sites.cannot,
        )
        kept, data = meta.queue.kept_back(job.id, now), []
        if job.spec.inputs:
            data = data_explanations.facts(job.spec, meta.queue.caches, meta.queue.overtaken_count(job.id))
        sentence = (
            f"{job.spec.shown}: {data_explanations.explain_deferral(job.spec, kept, now)}" if kept else told.sentence
        )
        limited, needs_administrator = self._limits.why(job) if self._limits is not None else ("", False)
        outside = self._projects.why_not_queued(job) if self._projects is not None else ""
        limited = outside or limited
        if limited and not job.suspended and job.available_at <= now:
            return Reason(
                subject=job.id,
                state="waiting",
                sentence=f"{job.spec.shown}: {limited}",
                facts=data,
                stuck=needs_administrator,
                needs_limit=needs_administrator,
            )
        about = [*sites.helps, *sites.cannot][: explanations.FACTS_MAX]
        facts = [*told.facts, *data, *about, *self._share_facts(job)]
        return msgspec.structs.replace(told, sentence=sentence, facts=facts, stuck=told.stuck and not sites.helps)

    def _share_facts(self, job: Job) -> list[str]:
        """Whose turn it is before this job's; other projects are not named, for the reader may not know them."""
        others = self._projects.others_first(job) if self._projects is not None else 0
        if not others:
            return []
        who, have = ("another", "has") if others == 1 else (f"{others} others", "have")
        return [f"by the fair share {who} of the projects and users that wait {have} used less, and so goes first"]

    def _facts(self, pilot: PilotRecord) -> explanations.PilotFacts:
        meta, now = self._meta, self._clock.now()
        free = pilot.offer((meta.jobs[id].spec.resources for id in pilot.held), rounds=1, now=now)
        return explanations.PilotFacts(
            id=pilot.id,
            host=pilot.host,
            site=pilot.site,
            capacity=pilot.capacity,
            cpus_free=free.cpus,
            memory_free_bytes=free.memory_bytes,
            disk_free_bytes=free.disk_bytes,
            gpus_free=free.gpus,
            ttl_ms=free.ttl_ms,
            reserved_for=meta.queue.reserved_for(pilot.id) or "",
            slots_free=pilot.slots_open(),
            paused=pilot.paused or pilot.drained,
            projects=pilot.projects,
        )
