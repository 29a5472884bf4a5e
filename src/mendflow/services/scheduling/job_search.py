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
from mendflow.services.base.paging import Paging, SearchQuery, equals
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


async def search(
    store: Store, meta: PilotScheduler, query: JobQuery, now: Instant, sight: Sight = EVERYTHING
) -> JobPage:
    """By default the newest first; at the same instant, the last submitted first."""
    page = await paging.find(store, _search_query(query, now, sight), _PublicJobs(meta))
    rows = [_decode_row(each) if isinstance(each, bytes) else _listed(each) for each in page.found]
    return JobPage(rows=rows, next=page.next, looked_at=page.looked_at)


def _listed(job: Job) -> ListedJob:
    """A copy, to which the list adds what it knows of the job."""
    return ListedJob(**msgspec.structs.asdict(job))


async def count(
    store: Store, meta: PilotScheduler, query: JobQuery, by: str, now: Instant, sight: Sight = EVERYTHING
) -> CountsView:
    counts, place, looked_at = await paging.count(store, _search_query(query, now, sight), by, _PublicJobs(meta))
    return CountsView(counts=counts, next=place, looked_at=looked_at)


def _search_query(query: JobQuery, now: Instant, sight: Sight = EVERYTHING) -> SearchQuery:
    fields = {"case": query.case, "state": query.state, "owner": query.owner, "pilot": query.pilot, "name": query.name}
    also = [equals(name, value) for name, value in fields.items() if value]
    if query.attempts_min:
        also.append(f"attempts >= {query.attempts_min}")
    also += [query.also] if query.also else []
    return paging.parse_query(
        JOBS,
        query.where,
        also,
        Paging(query.limit, query.offset, query.after),
        now=now,
        order=query.order,
        only=in_sight(sight, "spec.project"),
        usual="-created",
    )


class _PublicJobs:
    """Jobs as people see them; those that need not be read to know that are as they are stored."""

    def __init__(self, meta: PilotScheduler) -> None:
        self._meta = meta

    def read(self, document: StoredDocument) -> Job | bytes:
        live = self._meta.jobs.get(JobId(document.id))
        if live is None and _RUNNING not in document.body:
            return document.body
        return public_job(self._meta, live if live is not None else _decode(document.body))

    def data_of(self, found: Job | bytes) -> Mapping[str, Value]:
        return _decode_data(found if isinstance(found, bytes) else _encode(found))
