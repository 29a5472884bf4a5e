"""Search for jobs: by their documents, and whether they run by the reports of their pilots.

A document says that a job was granted. Of the jobs that a pilot prefetched, only the pilot knows which have begun;
those that have not are shown, and found, as available. A job that lives here is read from memory, which is never behind
the store; each is returned once, in the state that it has then."""

from collections.abc import Mapping

import msgspec

from mendflow.core.model.ids import Instant, JobId
from mendflow.core.model.jobs import Job, JobState
from mendflow.core.model.principals import EVERYTHING, Sight
from mendflow.core.model.values import Value
from mendflow.core.model.views import CountsView, JobPage, JobQuery, ListedJob
from mendflow.core.query.search_fields import JOBS
from mendflow.services.base import paging
from mendflow.services.base.paging import SearchQuery
from mendflow.services.base.visibility import in_sight
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.stores.contract import Store, StoredDocument

_decode = msgspec.json.Decoder(Job).decode
_decode_row = msgspec.json.Decoder(ListedJob).decode
_encode = msgspec.json.Encoder().encode
_decode_data = msgspec.json.Decoder(dict[str, Value]).decode
_RUNNING = b"running"


def public_job(meta: PilotScheduler, job: Job) -> Job:
    """The job as people see it."""
    if job.state is JobState.RUNNING and not meta.runs(job):
        return msgspec.structs.replace(job, state=JobState.AVAILABLE)
    return job


class JobSearch(msgspec.Struct, frozen=True):
    """`meta` knows the jobs that live here, `sight` says what may be found."""

    store: Store
    meta: PilotScheduler
    query: JobQuery
    now: Instant
    sight: Sight = EVERYTHING

    async def find(self) -> JobPage:
        """By default the newest first; at the same instant, the last submitted first."""
        page = await paging.find(self.store, self._wanted(), self)
        rows = [_decode_row(each) if isinstance(each, bytes) else _listed(each) for each in page.found]
        return JobPage(rows=rows, next=page.next, looked_at=page.looked_at)

    async def count(self, by: str) -> CountsView:
        counts, place, looked_at = await paging.count(self.store, self._wanted(), by, self)
        return CountsView(counts=counts, next=place, looked_at=looked_at)

    def _wanted(self) -> SearchQuery:
        query = self.query
        return paging.parse_query(
            JOBS,
            query,
            now=self.now,
            fields={
                "case": query.case,
                "state": query.state,
                "owner": query.owner,
                "pilot": query.pilot,
                "name": query.name,
            },
            more=[f"attempts >= {query.attempts_min}"] if query.attempts_min else [],
            only=in_sight(self.sight, "spec.project"),
            usual="-created",
        )

    def read(self, document: StoredDocument) -> Job | bytes:
        """As people see it; one that need not be read to know that is as it is stored."""
        live = self.meta.jobs.get(JobId(document.id))
        if live is None and _RUNNING not in document.body:
            return document.body
        return public_job(self.meta, live if live is not None else _decode(document.body))

    def data_of(self, found: Job | bytes) -> Mapping[str, Value]:
        return _decode_data(found if isinstance(found, bytes) else _encode(found))


def _listed(job: Job) -> ListedJob:
    """A copy, to which the list adds what it knows of the job."""
    return ListedJob(**msgspec.structs.asdict(job))
