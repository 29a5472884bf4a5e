"""What a repair changed of a job is told to whoever asks why it is so, and to those who decide about its result."""

from mendflow.core.model.flow import JobActivity, Sequence, UserTask
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.principals import DEFAULT_PROJECT
from mendflow.core.model.repair import ExceptionType, Primitive
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set

LONG = "hunter22" * 10
"""A secret that is longer than what is shown of a value."""
SMALLER = exlet("smaller-dt", mend(Primitive.RESUBMIT, env={"DT": "0.1", "KEY": LONG}))
RULES = rule_set("f", ExceptionType.ABORT, ("job.generation == 1", "smaller-dt"), exlets=[SMALLER], task="simulate")
CHANGED = f"DT=0.1, KEY={'*' * 60}..."


async def test_with_what_a_result_was_made_is_told_to_those_who_approve_it(world: World) -> None:
    world.server.hidden.add_secret(DEFAULT_PROJECT, "key", LONG)
    await world.put(RULES)
    simulate = JobActivity(name="simulate", command="run it", env={"SEED": "1"})
    made = flow(Sequence(name="s", body=(simulate, UserTask(name="approve", role="author"))))
    case = await world.start(made)
    await world.take()
    await world.report(simulate=FAILED)
    await world.take()
    await world.report(simulate=Outcome(outputs=1))

    async def asked() -> bool:
        return any(each.item == "approve" for each in await world.domain.items(case))

    await world.until(asked)
    told = f"mended: simulate was run again with {CHANGED} by rule 0 of f"
    assert told in (await world.domain.why(case)).facts
    assert f"it was submitted again, with {CHANGED}" in (await world.domain.why(f"{case}:simulate")).facts
    names = "DT=(hidden), KEY=(hidden)"
    assert (
        f"mended: simulate was run again with {names} by rule 0 of f"
        in (await world.domain.why(case, shows_env=False)).facts
    )
    assert (
        f"it was submitted again, with {names}" in (await world.domain.why(f"{case}:simulate", shows_env=False)).facts
    )
    await world.domain.cancel(case, who="me")
    again = (await world.domain.rerun(case, who="me")).id

    async def asked_again() -> bool:
        return any(each.item == "approve" for each in await world.domain.items(again))

    await world.until(asked_again)
    [item] = [each for each in await world.domain.items(again) if each.item == "simulate"]
    assert item.state == "cached"
    origin = f"mended: simulate was taken over from case {case}, where it was run again with {CHANGED}"
    assert origin in (await world.domain.why(again)).facts
    assert origin in (await world.domain.why(f"{again}:simulate")).facts
