"""A case that waits for a person says so, names the task, and is found by that."""  # UI-1

from mendflow.core.model.flow import Call, Flow, JobActivity, Sequence, UserTask
from mendflow.core.model.ids import FlowName
from mendflow.core.model.views import CaseQuery
from mendflow.services.api.domain import Domain
from tests.patience import until
from tests.services.conftest import HandPilot
from tests.services.recovery.kit import FAILED

ASK = UserTask(name="ask", role="clerk", title="Sign it")
FOR_PERSON = "for_person && parent == null"
WORDS = "ended with exit code 3"


async def found(domain: Domain, where: str) -> list[str]:
    return [view.id for view in (await domain.find_cases(CaseQuery(where=where, order="started"))).rows]


async def test_a_case_names_the_tasks_that_are_open_in_it_and_below_it(domain: Domain) -> None:
    await domain.deploy(Flow(name=FlowName("inner"), body=ASK))
    await domain.deploy(Flow(name=FlowName("outer"), body=Call(name="sub", flow="inner")))
    case = (await domain.start("outer", {}, who="me")).id
    [task] = await until(domain.worklist)
    view = await domain.case(case)
    assert [(each.id, each.title, each.role) for each in view.tasks] == [(task.id, "Sign it", "clerk")]
    assert (view.tasks_open, view.tasks[0].case) == (1, task.case) and task.case != case
    await domain.claim(task.id, who="ann")
    assert (await domain.case(case)).tasks[0].claimed_by == "ann"
    await domain.complete(task.id, {}, who="ann")
    assert ((await domain.case(case)).tasks, (await domain.case(case)).tasks_open) == ([], 0)


async def test_why_names_the_task_unless_something_runs(domain: Domain) -> None:
    await domain.deploy(Flow(name=FlowName("f"), body=ASK))
    case = (await domain.start("f", {}, who="me")).id
    [task] = await until(domain.worklist)
    told = await domain.why(case)
    assert (told.state, told.sentence) == ("asked", f"case {case} waits for a person: Sign it.")
    assert any(task.id in fact for fact in told.facts)


async def test_cases_that_wait_for_a_person_are_found_and_counted_as_such(domain: Domain) -> None:
    await domain.deploy(Flow(name=FlowName("inner"), body=ASK))
    await domain.deploy(Flow(name=FlowName("asks"), body=Call(name="sub", flow="inner")))
    await domain.deploy(Flow(name=FlowName("held"), body=JobActivity(name="a", command="false"), on_unhandled="hold"))
    later = Sequence(name="s", body=(JobActivity(name="b", command="true"), ASK))
    await domain.deploy(Flow(name=FlowName("works"), body=later))
    asks, held, works = [(await domain.start(name, {}, who="me")).id for name in ("asks", "held", "works")]
    assert await until(lambda: domain.worklist())
    assert await found(domain, FOR_PERSON) == [asks], "the one below which a task is open"
    pilot = HandPilot(domain)
    await pilot.sync(want=2)
    await pilot.exchange({"a": FAILED})
    assert await until(lambda: _both(domain, 2)) == [asks, held]
    counted = await domain.count_cases(CaseQuery(where="parent == null && mends == null"), by="for_person")
    assert counted.counts == {"true": 2, "false": 1}
    assert await found(domain, "!for_person && parent == null") == [works]
    await domain.cancel(asks, who="me")
    assert await until(lambda: _both(domain, 1)) == [held], "what is over waits for nobody"


async def test_words_of_a_failure_find_the_case_that_it_waits_in_and_those_that_called_it(domain: Domain) -> None:
    await domain.deploy(Flow(name=FlowName("held"), body=JobActivity(name="a", command="false"), on_unhandled="hold"))
    await domain.deploy(Flow(name=FlowName("outer"), body=Call(name="sub", flow="held"), on_unhandled="hold"))
    await domain.deploy(Flow(name=FlowName("other"), body=JobActivity(name="b", command="true")))
    outer, other = [(await domain.start(name, {}, who="me")).id for name in ("outer", "other")]
    pilot = HandPilot(domain)
    await pilot.sync(want=2)
    await pilot.exchange({"a": FAILED})
    words = f"text.contains('{WORDS}') && parent == null"
    assert await until(lambda: found(domain, words)) == [outer], "it has not failed"
    assert await found(domain, f"!text.contains('{WORDS}') && parent == null") == [other]
    counted = await domain.count_cases(CaseQuery(where=f"text.contains('{WORDS}')"))
    assert sum(counted.counts.values()) == 2, "the case that called, and the one called"
    await domain.cancel(outer, who="me")
    assert await until(lambda: _none(domain, words)), "what was cancelled waits no more"


async def _none(domain: Domain, where: str) -> bool:
    return not await found(domain, where)


async def _both(domain: Domain, number: int) -> list[str]:
    seen = await found(domain, FOR_PERSON)
    return seen if len(seen) == number else []
