"""Who may publish what a job makes: the pilot that runs it, under the token that it was given the job under."""

import msgspec
import pytest

from mendflow.core.model.data import LogicalFile, Publication, Replica
from mendflow.core.model.errors import Conflict, Forbidden, NotFound
from mendflow.core.model.ids import CaseId, ItemId, JobId, PilotId
from mendflow.core.model.jobs import Attempt, Job, JobSpec, JobState
from mendflow.core.model.values import FileRef
from mendflow.services.data.catalogue.writers import WritingJobs
from mendflow.stores.contract import Put
from mendflow.stores.memory import MemoryStore

SPEC = JobSpec(item=ItemId("make"), command="x", publish={"out": Publication(logical="/store/out")})
OTHER = FileRef(sha256="b" * 64, bytes=3, name="out")


def job(id: str, state: JobState = JobState.RUNNING) -> Job:
    attempt = Attempt(fence=1, pilot=PilotId("p"), token="node7", granted_at=1)
    return Job(id=JobId(id), case=CaseId("c"), spec=SPEC, state=state, fence=1, pilot=PilotId("p"), history=[attempt])


@pytest.fixture
async def store() -> MemoryStore:
    store = MemoryStore()
    await store.open()
    return store


async def put(store: MemoryStore, *jobs: Job) -> WritingJobs:
    await store.write([Put("job", each.id, msgspec.json.encode(each), 0) for each in jobs])
    return WritingJobs(store)


async def test_only_under_the_token_that_has_the_job(store: MemoryStore) -> None:
    writers = await put(store, job("c/1"))
    assert await writers.running(JobId("c/1"), PilotId("p"), "node7") == SPEC
    for pilot, who in (("p", "node8"), ("q", "node7"), ("p", "")):
        with pytest.raises(Forbidden):
            await writers.running(JobId("c/1"), PilotId(pilot), who)


async def test_only_what_runs_publishes(store: MemoryStore) -> None:
    writers = await put(store, job("c/1", JobState.FAILED), job("c/2", JobState.AVAILABLE))
    for id in ("c/1", "c/2"):
        with pytest.raises(Conflict):
            await writers.running(JobId(id), PilotId("p"), "node7")
    with pytest.raises(NotFound):
        await writers.running(JobId("c/3"), PilotId("p"), "node7")


async def test_a_name_stays_with_a_job_that_was_submitted_again(store: MemoryStore) -> None:
    writers = await put(store, job("c/1", JobState.FAILED), job("c/1~2"), job("c/10", JobState.FAILED))
    kept = LogicalFile(name="/store/out", sha256="a" * 64, bytes=3, writing={"c/1": Replica(element="e")})
    assert await writers.free(kept, OTHER) is None
    assert await writers.free(kept, OTHER, unless="c/1") == kept
    over = LogicalFile(name="/store/out", sha256="a" * 64, bytes=3, writing={"c/10": Replica(element="e")})
    assert await writers.free(over, OTHER) == over
    published = LogicalFile(name="/store/out", sha256="a" * 64, bytes=3, replicas=(Replica(element="e"),))
    assert await writers.free(published, OTHER) is None
