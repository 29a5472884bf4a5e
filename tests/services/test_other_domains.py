"""A house with another domain: rules see it by its name, and a job that failed here can go there."""

from pathlib import Path

from mendflow.core.model.flow import JobActivity
from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.services.runtime.server import ServerSettings
from mendflow.stores.memory import MemoryStore
from tests.proxy.far_domain import FarDomain
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set


async def test_a_failed_job_goes_to_a_domain_that_the_house_was_given(tmp_path: Path) -> None:
    # FM-8
    far = FarDomain()
    world = World(MemoryStore(), tmp_path, ServerSettings(files_roots=None), domains={"far": far})
    await world.server.open()
    away = exlet("away", mend(Primitive.RESUBMIT, domain="far"))
    await world.put(rule_set("f", ExceptionType.ABORT, ('capacity.domains == ["far"]', "away"), exlets=[away]))
    case = await world.start(flow(JobActivity(name="a", command="true")))
    await world.take()
    await world.report(a=FAILED)
    second = JobId(f"{case}/1~2")

    async def there() -> bool:
        return second in far.callbacks

    await world.until(there)
    await far.end(second, Outcome(outputs=7))
    await world.until_status(case, "completed")
    await world.server.close()
