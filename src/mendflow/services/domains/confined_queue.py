"""The way to our queue for jobs of cases that other domains have sent. Whatever flow a job comes from, one that was
sent, one of ours that it calls, or one that mends it: it gets pilots of the sites that its domain may use, and of no
others. Its result stays out of our cache: what the job says of its code is what the other domain says."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final

from msgspec.structs import replace

from mendflow.core.model.errors import Forbidden
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.services.base.cluster import ENDPOINT, root_of
from mendflow.services.base.contracts import MetaScheduler, NewJob, SubmissionFailed
from mendflow.services.cases.live_case import CaseDocument, Confinement
from mendflow.services.domains.hosted_cases import allowed_site, may_start

FORBIDDEN_HERE: Final = "forbiddenHere"
"""The fault of a job that the domain which has sent its case has no right to."""

DocumentOf = Callable[[CaseId], Awaitable[CaseDocument | None]]
FlowsOfSet = Callable[[str], Awaitable[Collection[str]]]


class ConfinedQueue:
    """A MetaScheduler: `queue`, with jobs confined. `document_of` gives a case, live or over, `flows_of_set` the flows
    that files in a data set start."""

    def __init__(self, queue: MetaScheduler, document_of: DocumentOf, flows_of_set: FlowsOfSet) -> None:
        self._queue = queue
        self._document_of = document_of
        self._flows_of_set = flows_of_set
        self.status = queue.status
        self.subscribe = queue.subscribe
        self.suspend = queue.suspend
        self.resume = queue.resume
        self.cancel = queue.cancel
        self.capacity = queue.capacity

    async def submit(self, jobs: Sequence[NewJob], *, reissued: bool = False) -> None:
        await self._queue.submit([await self._confined(job) for job in jobs], reissued=reissued)

    async def run(self, job: NewJob, *, reissued: bool = False) -> Outcome:
        return await self._queue.run(await self._confined(job), reissued=reissued)

    async def _confined(self, job: NewJob) -> NewJob:
        root = root_of(job.case)
        document = await self._document_of(root) if not root.endswith(ENDPOINT) else None
        if document is None or document.confined is None:
            return job
        try:
            return replace(job, spec=await self._allowed(job.spec, document.confined), key="")
        except Forbidden as error:
            fault = Fault(name=FORBIDDEN_HERE, category=Category.REFUSED, message=error.message)
            raise SubmissionFailed(fault) from error

    async def _allowed(self, spec: JobSpec, bounds: Confinement) -> JobSpec:
        for published in spec.publish.values():
            started = await self._flows_of_set(published.data_set) if published.data_set else ()
            for flow in started:
                if not may_start(flow, bounds.flows):
                    raise Forbidden(
                        f"files of the data set {published.data_set!r:.100} start the flow {flow!r}, which your domain"
                        " may not start here; ask for the right to it"
                    )
        site = allowed_site(spec.resources.site, bounds.sites)
        return spec if site == spec.resources.site else replace(spec, resources=replace(spec.resources, site=site))
