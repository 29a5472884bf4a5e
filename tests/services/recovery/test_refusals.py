"""What makes no sense is refused when it comes, whole, with the place and the reason, and leaves no trace."""

from typing import Any

import pytest

from mendflow.core.model.errors import BadFlow, BadRules, InvalidRequest, NotFound, RequestError
from mendflow.core.model.flow import JobActivity, PrimitiveStep
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Job, JobState
from mendflow.core.model.repair import ExceptionType, Primitive, Target
from mendflow.core.model.repair_views import RepairRequest
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set

A = JobActivity(name="a", command="true")

REFUSED: list[tuple[Primitive, Target, dict[str, Any], str]] = [
    (Primitive.RETRY_LATER, "item", {"level": "abc"}, "`level` must be the number of a level"),
    (Primitive.RETRY_LATER, "item", {"level": -3}, "`level` must be the number of a level"),
    (Primitive.RETRY_LATER, "item", {"level": 1.5}, "`level` must be the number of a level"),
    (Primitive.RETRY_LATER, "item", {"mode": "zzz"}, "`mode` must be `recoverable` or `express`, not 'zzz'"),
    (Primitive.RESUBMIT, "item", {"wait_ms": -1}, "`wait_ms` must be a number of milliseconds from 0 on, not -1"),
    (Primitive.RESUBMIT, "item", {"memory": 5}, "re-submit knows no `memory`; it takes avoid_hosts"),
    (Primitive.RESUBMIT, "item", {"resources": {"memory": 5}}, "there is no resource `memory`"),
    (Primitive.RESUBMIT, "item", {"resources": {"cpus": -1}}, "`resources.cpus` must be a number"),
    (Primitive.RESUBMIT, "item", {"resources": {"hosts": 5}}, "`resources.hosts` must be a list of hosts, not 5"),
    (Primitive.RESUBMIT, "item", {"resources": {"system": 5}}, "`resources.system` must be an operating system"),
    (Primitive.RESUBMIT, "item", {"resources": {"memory_auto": True}}, "there is no resource `memory_auto`"),
    (Primitive.RESUBMIT, "case", {}, "re-submit is for items, not for case"),
    (Primitive.RESTAGE, "item", {"way": "back"}, "`way` must be same, parameters, replica or target"),
    (Primitive.SUSPEND, "item", {"for": 5}, "suspend knows no `for`; it takes no settings"),
    (Primitive.FAIL, "item", {"throw": "yes"}, "`throw` must be true or false"),
    (Primitive.WRITE, "case", {"values": 5}, "`values` must be a map of values"),
    (Primitive.WRITE, "case", {}, "write needs `values`"),
]


@pytest.mark.parametrize(("do", "target", "settings", "said"), REFUSED)
async def test_an_exlet_that_tells_a_primitive_what_makes_no_sense_is_refused_when_it_is_added(
    memory: World, do: Primitive, target: Target, settings: dict[str, Any], said: str
) -> None:
    # EX-2: as a file would be, also when it comes as data
    wrong = exlet("wrong", PrimitiveStep(name="here", do=do, target=target, settings=settings))
    with pytest.raises(BadRules) as refused:
        await memory.put(rule_set("f", ExceptionType.ABORT, ("true", "wrong"), exlets=[wrong]))
    assert f"exlet wrong: step here: {said}" in str(refused.value)
    assert "f" not in [each.name for each in await memory.domain.rule_sets()]
    case = await memory.start(flow(A))
    with pytest.raises(RequestError, match="step here"):
        await memory.domain.mend(case, RepairRequest(flow=wrong), who="ann")
    assert await memory.decisions(case) == []
    with pytest.raises(BadFlow, match="step here"):
        await memory.domain.deploy(wrong)


async def waiting_job(world: World, case: CaseId) -> Job:
    async def submitted() -> Job | None:
        jobs = (job for job in world.runtime.meta.jobs.values() if job.case == case)
        return next((job for job in jobs if job.state is JobState.AVAILABLE), None)

    found = await world.until(submitted, "a job that waits")
    assert isinstance(found, Job)
    return found


async def test_what_an_expression_gives_is_judged_when_it_is_known(memory: World) -> None:  # EX-2
    computed = {"level": "${{ job.level + 1 }}", "wait_ms": "${{ 5 * 2 }}", "resources": {"cpus": "${{ 1 + 1 }}"}}
    later = exlet("later", PrimitiveStep(name="here", do=Primitive.RETRY_LATER, settings=computed))
    await memory.put(rule_set("f", ExceptionType.ABORT, ("true", "later"), exlets=[later]))
    case = await memory.start(flow(A))
    await memory.take()
    await memory.report(a=FAILED)
    assert (await waiting_job(memory, case)).spec.resources.cpus == 2


async def test_an_expression_that_gives_what_makes_no_sense_ends_the_repair_with_the_reason(memory: World) -> None:
    # EX-2
    wrong = PrimitiveStep(name="here", do=Primitive.RETRY_LATER, settings={"level": "${{ 'abc' }}"})
    await memory.put(rule_set("f", ExceptionType.ABORT, ("true", "wrong"), exlets=[exlet("wrong", wrong)]))
    case = await memory.start(flow(A))
    await memory.take()
    await memory.report(a=FAILED)
    decision = await memory.until_decided(case, "failed")
    assert "a level is a number from 1 on, or 0 for the next, not 'abc'" in decision.note
    await memory.until_status(case, "failed")


async def test_another_host_system_or_machine_can_be_asked_for(memory: World) -> None:  # EX-2, FM-8
    asked = {"resources": {"hosts": ["node1"], "system": "linux", "machine": "x86_64", "site": "north"}}
    moved = exlet("moved", PrimitiveStep(name="here", do=Primitive.RESUBMIT, settings=asked))
    await memory.put(rule_set("f", ExceptionType.ABORT, ("true", "moved"), exlets=[moved]))
    case = await memory.start(flow(A))
    await memory.take()
    await memory.report(a=FAILED)
    needs = (await waiting_job(memory, case)).spec.resources
    assert (needs.hosts, needs.system, needs.machine, needs.site) == (("node1",), "linux", "x86_64", "north")


async def test_what_is_raised_is_bounded(memory: World) -> None:
    # EX-9
    case = await memory.start(flow(A))
    for trigger, data, said in (
        ("x" * 201, None, "in a few words"),
        ("", None, "in a few words"),
        ("flood", "x" * 70_000, "70002 bytes, and at most 65536"),
    ):
        with pytest.raises(InvalidRequest, match=said):
            await memory.domain.raise_trigger(case, trigger, who="ann", data=data)
    assert (await memory.decisions(case), await memory.status(case)) == ([], "running")


@pytest.mark.parametrize(("level", "said"), [(9, "there are 2 levels to wait in, and no level 9"), (0, "all of the 2")])
async def test_after_the_last_level_a_failure_is_passed_on(memory: World, level: int, said: str) -> None:
    # EX-4: the job has waited in both levels before
    later = exlet("later", mend(Primitive.RETRY_LATER, level=level))
    await memory.put(rule_set("f", ExceptionType.ABORT, ("true", "later"), exlets=[later]))
    case = await memory.start(flow(JobActivity(name="a", command="true")))
    for _ in range(3 if level == 0 else 1):
        await memory.take()
        await memory.report(a=FAILED)
    decision = await memory.until_decided(case, "failed")
    assert (decision.result, said in decision.note) == ("passed-on", True), decision.note
    await memory.until_status(case, "failed")


async def test_what_may_happen_to_an_item_that_is_not_there_is_not_told(memory: World) -> None:
    # EX-9
    case = await memory.start(flow(JobActivity(name="a", command="true")))
    with pytest.raises(NotFound, match="has no live item 'nope'"):
        await memory.runtime.administration.triggers(case, "nope")


@pytest.mark.parametrize("name", ["a/b", "", "n" * 201, "line\nbreak", ".."])
async def test_a_rule_set_has_a_name_that_can_be_part_of_an_address(memory: World, name: str) -> None:
    with pytest.raises(BadRules, match="is not a valid name for a rule set"):
        await memory.put(rule_set(name, ExceptionType.ABORT, ("true", "")))
