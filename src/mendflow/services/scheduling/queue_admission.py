"""The quota of waiting jobs: a project's jobs enter the queue only while it has fewer there than it may have.

Those beyond wait outside of it, in the order in which they came, and their cases with them; each that leaves the queue
lets the next one in. Over several servers, each holds a part of the quota in the store, and lets in no more."""

from collections.abc import Iterable

from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import Job


class QueueAdmission:
    """`allowed` says how many jobs of a project this server may have in its queue; of others, any number."""

    def __init__(self) -> None:
        self.allowed: dict[str, int] = {}
        self._queued: dict[str, set[JobId]] = {}
        self._outside: dict[str, dict[JobId, Job]] = {}

    def admits(self, job: Job) -> bool:
        """Whether the job may enter the queue now; otherwise it is remembered."""
        project = job.spec.project
        allowed = self.allowed.get(project)
        if allowed is None:
            return True
        queued, outside = self._queued.setdefault(project, set()), self._outside.setdefault(project, {})
        if job.id not in queued and len(queued) >= allowed:
            outside[job.id] = job
            return False
        queued.add(job.id)
        outside.pop(job.id, None)
        return True

    def left(self, job: Job) -> None:
        """The job waits no longer, or not in the queue."""
        project = job.spec.project
        if project in self._queued:
            self._queued[project].discard(job.id)
            self._outside[project].pop(job.id, None)

    def is_outside(self, job: Job) -> bool:
        return job.id in self._outside.get(job.spec.project, ())

    def outside(self) -> dict[str, list[Job]]:
        """By project: the jobs that wait outside of the queue, in the order in which they came."""
        return {project: list(jobs.values()) for project, jobs in self._outside.items() if jobs}

    def waiting_jobs(self, project: str) -> int:
        """How many jobs of the project wait here, in the queue and outside."""
        return len(self._queued.get(project, ())) + len(self._outside.get(project, ()))

    def queued(self, project: str) -> int:
        return len(self._queued.get(project, ()))

    def next(self, project: str) -> list[Job]:
        """Those that may enter by now."""
        room = self.allowed.get(project, 0) - self.queued(project)
        outside = self._outside.get(project)
        return [] if room <= 0 or not outside else [job for job, _ in zip(outside.values(), range(room), strict=False)]

    def allow(self, allowed: dict[str, int], waiting: Iterable[Job]) -> list[Job]:
        """Take these numbers. `waiting` are the jobs that are in the queue already; the answer is those that were
        outside, of projects that are bounded no longer."""
        for job in waiting:
            if job.spec.project in allowed and job.spec.project not in self.allowed:
                self._queued.setdefault(job.spec.project, set()).add(job.id)
                self._outside.setdefault(job.spec.project, {})
        freed = [
            job for project in self.allowed.keys() - allowed.keys() for job in self._outside.pop(project, {}).values()
        ]
        for project in self.allowed.keys() - allowed.keys():
            self._queued.pop(project, None)
        self.allowed = allowed
        return freed
