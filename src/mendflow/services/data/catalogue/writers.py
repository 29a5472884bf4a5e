"""The jobs that names are reserved for: which of them run, and which are over without having published anything."""

import msgspec

from mendflow.core.model.data import LogicalFile
from mendflow.core.model.errors import Conflict, Forbidden, NotFound
from mendflow.core.model.ids import JobId, PilotId
from mendflow.core.model.jobs import Job, JobSpec, JobState
from mendflow.core.model.values import FileRef
from mendflow.core.recovery.ids import flow_job_id
from mendflow.services.base.cluster import JOB_KIND
from mendflow.stores.contract import Store

_decode = msgspec.json.Decoder(Job).decode


class WritingJobs:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def running(self, job: JobId, pilot: PilotId, who: str) -> JobSpec:
        """The description of a job that this pilot runs, under the token `who`. A grant is on disk before the job
        leaves its server."""
        found = await self._store.get(JOB_KIND, job)
        if found is None:
            raise NotFound(f"there is no job {job:.200}")
        known = _decode(found.body)
        if known.state is not JobState.RUNNING:
            raise Conflict(f"job {job} is {known.state}: only a running job publishes")
        if known.pilot != pilot or known.history[-1].token not in ("", who):
            raise Forbidden(
                f"job {job} does not run on pilot {pilot:.100}; only the pilot that runs it publishes its files"
            )
        return known.spec

    async def free(self, kept: LogicalFile | None, ref: FileRef, *, unless: str = "") -> LogicalFile | None:
        """The document, if its name is reserved for other content and only for jobs that are over, or for the one that
        asks. It is given up only at its present version."""
        if kept is None or kept.replicas or kept.sha256 == ref.sha256:
            return None
        for job in kept.writing:
            if job != unless and await self.lives(JobId(job)):
                return None
        return kept

    async def lives(self, job: JobId) -> bool:
        """Whether the job, or a later submission of it, is not over."""
        async for found in self._store.scan(JOB_KIND, job):
            if flow_job_id(JobId(found.id)) == job and not _decode(found.body).finished:
                return True
        return False
