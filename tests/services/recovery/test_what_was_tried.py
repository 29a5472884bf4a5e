"""A failure that rules have tried to mend in vain says so, wherever it would say that no rule took it up."""

from mendflow.core.model.flow import JobActivity
from mendflow.core.model.repair import ExceptionType, Primitive
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set

A = JobActivity(name="a", command="run a")
AGAIN = exlet("try-again", mend(Primitive.RESUBMIT))
MORE = exlet("more", mend(Primitive.RESUBMIT, env={"MORE": "yes"}))
RULES = rule_set(
    "f",
    ExceptionType.ABORT,
    ("job.generation <= 2", "try-again"),
    ("job.generation == 3", "more"),
    exlets=[AGAIN, MORE],
)


async def fail_three_times(world: World) -> str:
    await world.put(RULES)
    case = await world.start(flow(A))
    for _ in range(4):
        await world.take()
        await world.report(a=FAILED)
    return case


async def test_a_failure_that_was_mended_in_vain_names_the_rules_and_how_often(world: World) -> None:  # EX-1 JS-5
    case = await fail_three_times(world)
    await world.until_status(case, "failed")
    [last] = [each for each in await world.decisions(case) if each.conclusion is None]
    assert last.tried == "rule 0 of f did try-again twice and rule 1 of f did more once, without success"
