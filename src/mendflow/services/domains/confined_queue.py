"""The way to our queue. A job reads files that came to its case, and no others.

Jobs of cases that other domains have sent are confined further. Whatever flow a job comes from, one that was
sent, one of ours that it calls, or one that mends it: it gets pilots of the sites that its domain may use, and of no
others. Its result stays out of our cache: what the job says of its code is what the other domain says."""

from collections.abc import Awaitable, Callable, Collection, Sequence

from msgspec.structs import replace

from mendflow.core.model.data import Publication
from mendflow.core.model.errors import Forbidden, NotFound
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.services.base.cluster import ENDPOINT, root_of
from mendflow.services.base.contracts import MetaScheduler, NewJob, SubmissionFailed
from mendflow.services.base.hub import Hub
from mendflow.services.cases.live_case import CaseDocument, Confinement
from mendflow.services.domains.case_files import FORBIDDEN_HERE, CaseFiles
from mendflow.services.domains.file_origins import FileOrigins, demand_own_files
from mendflow.services.domains.hosted_cases import allowed_site, may_start
from mendflow.services.domains.work_files import may_read_files

DocumentOf = Callable[[CaseId], Awaitable[CaseDocument | None]]
FlowsStartedBy = Callable[[Publication], Awaitable[Collection[str]]]


class ConfinedQueue:
    """A MetaScheduler: `queue`, with jobs confined. `document_of` gives a case, live or over, `flows_started_by` the
    flows that a published file starts."""

    def __init__(
        self, queue: MetaScheduler, document_of: DocumentOf, flows_started_by: FlowsStartedBy, hub: Hub
    ) -> None:
        self._queue = queue
        self._document_of = document_of
        self._flows_started_by = flows_started_by
        self._hub = hub
        self.status = queue.status
        self.subscribe = queue.subscribe
        self.suspend = queue.suspend
        self.resume = queue.resume
        self.cancel = queue.cancel
        self.capacity = queue.capacity

    async def submit(self, jobs: Sequence[NewJob], *, reissued: bool = False) -> None:
        bounded = False
        for case in {job.case for job in jobs}:
            bounded = await self._bounds_of(case) is not None or bounded
        if bounded:
            jobs = [await self._confined(job) for job in jobs]
        else:
            for job in jobs:
                if may_read_files(job.spec):
                    await self._demand_files(job, reissued=reissued)
        await self._queue.submit(jobs, reissued=reissued)

    async def run(self, job: NewJob, *, reissued: bool = False) -> Outcome:
        return await self._queue.run(await self._confined(job, reissued=reissued), reissued=reissued)

    async def _bounds_of(self, case: CaseId) -> Confinement | None:
        root = root_of(case)
        document = await self._document_of(root) if not root.endswith(ENDPOINT) else None
        return document.confined if document is not None else None

    async def _confined(self, job: NewJob, *, reissued: bool = False) -> NewJob:
        bounds = await self._bounds_of(job.case)
        if bounds is None:
            await self._demand_files(job, reissued=reissued)
            return job
        try:
            if (files := self._hub.provider(CaseFiles)) is not None:
                await files.demand_job(job.case, job.spec)
            return replace(job, spec=await self._allowed(job.spec, bounds), key="")
        except Forbidden as error:
            fault = Fault(name=FORBIDDEN_HERE, category=Category.REFUSED, message=error.message)
            raise SubmissionFailed(fault) from error

    async def _demand_files(self, job: NewJob, *, reissued: bool) -> None:
        """A job of our own case reads what came to that case. One that is in the queue was asked for its files."""
        if (origins := self._hub.provider(FileOrigins)) is None:
            return
        try:
            await demand_own_files(origins, job)
        except SubmissionFailed:
            if not reissued or not await self._is_queued(job):
                raise

    async def _is_queued(self, job: NewJob) -> bool:
        try:
            await self._queue.status(job.id)
        except NotFound:
            return False
        return True

    async def _allowed(self, spec: JobSpec, bounds: Confinement) -> JobSpec:
        for output, published in spec.publish.items():
            for flow in sorted(await self._flows_started_by(published)):
                if not may_start(flow, bounds.flows):
                    raise Forbidden(
                        f"where the output {output!r:.100} is published, files start the flow {flow!r}, which your"
                        " domain may not start here; ask for the right to it, or publish it elsewhere"
                    )
        site = allowed_site(spec.resources.site, bounds.sites)
        return spec if site == spec.resources.site else replace(spec, resources=replace(spec.resources, site=site))
