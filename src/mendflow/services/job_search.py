"""Jobs as people look for them: by what their documents say, and whether they run by what their pilots say.

A document says that a job was granted. Of what was granted to a pilot ahead, only the pilot knows what has begun; so
those that have not are shown as available, under either state that is asked for. They are few: what pilots hold."""

from collections.abc import Sequence

import msgspec

from mendflow.core.model.jobs import Job, JobState
from mendflow.core.model.views import JobQuery
from mendflow.services.meta_scheduler import JOB_KIND, QueueAndPilots
from mendflow.stores.contract import Store, Where

GRANTED_MAX = 100_000
_decode = msgspec.json.Decoder(Job).decode


def shown(meta: QueueAndPilots, job: Job) -> Job:
    """The job as people see it."""
    if job.state is JobState.RUNNING and not meta.runs(job):
        return msgspec.structs.replace(job, state=JobState.AVAILABLE)
    return job


async def search(store: Store, meta: QueueAndPilots, query: JobQuery) -> list[Job]:
    """The newest first; of one moment, the last submitted first."""
    first, last = query.offset, query.offset + query.limit
    if query.state == JobState.RUNNING:
        return [job for job in await _granted(store, meta, query) if job.state is JobState.RUNNING][first:last]
    if query.state != JobState.AVAILABLE:
        return [shown(meta, job) for job in await _found(store, query, query.state, query.limit, query.offset)]
    held = [job for job in await _granted(store, meta, query) if job.state is JobState.AVAILABLE]
    waiting = held + await _found(store, query, query.state, last, 0)
    waiting.sort(key=lambda job: (job.created_at, len(job.id), job.id), reverse=True)
    return waiting[first:last]


async def _granted(store: Store, meta: QueueAndPilots, query: JobQuery) -> Sequence[Job]:
    return [shown(meta, job) for job in await _found(store, query, JobState.RUNNING, GRANTED_MAX, 0)]


async def _found(store: Store, query: JobQuery, state: str, limit: int, offset: int) -> list[Job]:
    fields = {"case": query.case, "state": state, "spec.owner": query.owner, "pilot": query.pilot, "name": query.name}
    where = [Where(field, value) for field, value in fields.items() if value]
    if query.attempts_min:
        where.append(Where("fence", query.attempts_min, "ge"))
    found = await store.search(JOB_KIND, where, order_by="created_at", descending=True, limit=limit, offset=offset)
    return [_decode(document.body) for document in found]
