"""Jobs that their flow does not wait for are mended like others, also when the case is long over."""

from mendflow.core.model.flow import Job
from mendflow.core.model.jobs import Submission
from mendflow.core.model.mending import ExceptionType, Primitive
from tests.services.exceptions.kit import FAILED, World, exlet, flow, mend, rule_set


async def test_each_repair_of_a_forgotten_job_has_an_exlet_of_its_own(world: World) -> None:
    # FM-8 EX-2
    again = exlet("again", mend(Primitive.RESUBMIT), mend(Primitive.NOTIFY, message="again"))
    await world.put(rule_set("f", ExceptionType.ABORT, ("job.generation < 3", "again"), exlets=[again], task="a"))
    case = await world.start(flow(Job(name="a", command="true", submission=Submission.FORGET)))
    await world.until_status(case, "completed")
    for _ in range(3):
        assert await world.take() == ["a"]
        await world.report(a=FAILED)

    async def both_over() -> bool:
        return [each.status for each in await world.exlets(case)] == ["completed", "completed"]

    await world.until(both_over)
    assert {each.id for each in await world.exlets(case)} == {f"{case}.x1", f"{case}.x2"}
