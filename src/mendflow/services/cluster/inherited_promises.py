"""Promises that other servers have made to pilots, about the jobs of trees that this server takes up.

Until such a promise is over its pilot may be running the job, so nobody else gets it."""

from collections.abc import Iterable

from mendflow.core.model.ids import CaseId, JobId
from mendflow.core.model.jobs import Job
from mendflow.services.base.cluster import root_of
from mendflow.services.base.homes import CaseTree
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler


class InheritedPromises:
    """They count until the trees are loaded: from then on each job has a lease of this server."""

    def __init__(self) -> None:
        self._by_tree: dict[CaseId, int] = {}  # when the last promise about one of its jobs can have begun
        self._by_job: dict[JobId, int] = {}  # the same, where the last server has promised nothing

    def note(self, trees: Iterable[CaseTree], now: int) -> None:
        for tree in trees:
            if tree.promised_ms is not None:
                self._by_tree[tree.root] = now + tree.promised_ms
            self._by_job |= {job: now + left for job, left in tree.inherited_ms.items()}

    def forget(self, trees: Iterable[CaseTree]) -> None:
        for tree in trees:
            self._by_tree.pop(tree.root, None)
            for job in tree.inherited_ms:
                self._by_job.pop(job, None)

    def until(self, job: Job, scheduler: PilotScheduler) -> int:
        """When the promise of another server to the pilot of a job is over. The lease of the server that granted it may
        have been longer than that of the server that took it over."""
        promised = self._by_tree.get(root_of(job.case))
        if promised is None:
            return scheduler.full_lease_end(job)
        longer_ms = job.history[-1].lease_ms - scheduler.leases.lease_ms
        return min(promised + max(0, longer_ms), self._by_job.get(job.id, promised + max(0, longer_ms)))
