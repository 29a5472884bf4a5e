"""The synchronous submission of a job, for every meta-scheduler that has the other ways."""

import asyncio

from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import Outcome
from mendflow.services.base.contracts import MetaScheduler, NewJob


async def run_to_end(meta: MetaScheduler, job: NewJob, *, reissued: bool) -> Outcome:
    """Submit it, and wait for its outcome."""
    over: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    async def take(_: JobId, outcome: Outcome) -> None:
        if not over.done():
            over.set_result(outcome)

    await meta.submit([job], reissued=reissued)
    await meta.subscribe(job.id, take)
    return await over
