"""Search for jobs: by their documents, and whether they run by the reports of their pilots.

A document says that a job was granted. Of the jobs that a pilot prefetched, only the pilot knows which have begun;
those that have not are shown, and found, as available. A job that lives here is read from memory, which is never behind
the store; each is returned once, in the state that it has then."""

import msgspec

from mendflow.core.model.ids import Instant, JobId
from mendflow.core.model.jobs import Job, JobState
from mendflow.core.model.principals import EVERYTHING, Sight
from mendflow.core.model.views import CountsView, JobPage, JobQuery
from mendflow.core.query.search_fields import JOBS
from mendflow.services.base import paging
from mendflow.services.base.paging import Paging, SearchQuery, equals
from mendflow.services.base.visibility import in_sight
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.stores.contract import Store, StoredDocument

_decode = msgspec.json.Decoder(Job).decode
_encode = msgspec.json.Encoder().encode
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
    found = await paging.find(store, _search_query(query, now, sight), lambda document: _current_body(meta, document))
    return JobPage(rows=[_decode(body) for body in found.bodies], next=found.next, looked_at=found.looked_at)


async def count(
    store: Store, meta: PilotScheduler, query: JobQuery, by: str, now: Instant, sight: Sight = EVERYTHING
) -> CountsView:
    counts, place, looked_at = await paging.count(
        store, _search_query(query, now, sight), by, lambda document: _current_body(meta, document)
    )
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


def _current_body(meta: PilotScheduler, document: StoredDocument) -> bytes:
    live = meta.jobs.get(JobId(document.id))
    if live is None and _RUNNING not in document.body:
        return document.body
    job = live if live is not None else _decode(document.body)
    return _encode(public_job(meta, job))
