"""Lists say of each row why it waits or failed, at the cost of one explanation for all of like needs; and how far a
case is, counted over what its flow still has to do."""

from typing import Any

import pytest

from mendflow.core.model.expr import Expr
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import (
    Branch,
    Call,
    Catch,
    Choose,
    Flow,
    ForEach,
    JobActivity,
    Parallel,
    Scope,
    Sequence,
    UserTask,
)
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import Job, Outcome
from mendflow.core.model.templates import ResourceTemplates
from mendflow.core.model.views import JobQuery, Reason
from mendflow.services.api.domain import Domain
from mendflow.services.scheduling.waiting_reasons import WaitingReasons
from tests.services.conftest import HandPilot
from tests.services.test_domain import named, start

FAILED = Outcome(fault=Fault(name="exit", category=Category.JOB, message="no stars in field 7"))


def job(name: str, **more: Any) -> JobActivity:
    return JobActivity(name=name, command="true", **more)


async def reasons(domain: Domain, case: str) -> dict[str, str]:
    """What the list of items says."""
    return {item.item: item.why for item in (await domain.find_items(case)).rows}


async def test_ui_1_jobs_of_like_needs_are_explained_once_for_a_list(
    domain: Domain, monkeypatch: pytest.MonkeyPatch
) -> None:
    each = ForEach(name="l", items=[*range(30)], body=job("a"), parallel=True)
    large = job("large", resources=ResourceTemplates(cpus=64))
    case = await start(domain, named(Parallel(name="p", branches=(each, large))))
    asked, explain = list[Job](), WaitingReasons.why

    def counted(self: WaitingReasons, job: Job, *, is_of_many: bool = False) -> Reason:
        asked.append(job)
        return explain(self, job, is_of_many=is_of_many)

    monkeypatch.setattr(WaitingReasons, "why", counted)
    rows = (await domain.find_jobs(JobQuery(case=case))).rows
    assert len(rows) == 31 and all(row.why.startswith("no pilot is connected") for row in rows)
    assert len(asked) == 2, "one explanation for each kind of needs"
    said = await reasons(domain, case)
    assert len(said) == 31 and set(said.values()) == {rows[0].why}
    assert len(asked) == 4


async def test_ui_1_items_say_why_they_failed_or_were_skipped(domain: Domain, pilot: HandPilot) -> None:
    never = Choose(name="c", branches=(Branch(Expr("false"), job("never")),))
    case = await start(domain, named(Sequence(name="q", body=(never, job("broken", retries=0)))))
    await pilot.sync(want=1)
    await pilot.exchange({"broken": FAILED})
    said = await reasons(domain, case)
    assert said == {"broken": "no stars in field 7", "never": (await domain.item(case, "never")).reason}
    assert said["never"]


async def test_ui_1_a_persons_task_and_a_called_case_are_what_it_waits_for(domain: Domain) -> None:
    await domain.deploy(Flow(name=FlowName("called"), body=job("inner")))
    body = Parallel(name="p", branches=(UserTask(name="approve", role="boss"), Call(name="call", flow="called")))
    case = await start(domain, named(body))
    said = await reasons(domain, case)
    assert said == {
        "approve": "it waits for somebody with the role boss",
        "call": "waits for the case that it called",
    }
    (task,) = await domain.worklist(case=case)
    await domain.claim(task.id, who="ann")
    assert (await reasons(domain, case))["approve"] == "ann has claimed it"


async def test_ui_1_a_list_of_jobs_says_why_one_failed_and_why_another_is_tried_again(
    domain: Domain, pilot: HandPilot
) -> None:
    case = await start(domain, named(job("a", retries=3)))
    await pilot.sync(want=1)
    await pilot.exchange({"a": FAILED})
    (row,) = (await domain.find_jobs(JobQuery(case=case))).rows
    assert row.why == "a pilot has room, and it will be taken soon; attempt 1 failed: no stars in field 7"
    await pilot.sync(want=1)
    assert await reasons(domain, case) == {"a": "attempt 2; attempt 1 failed: no stars in field 7"}


async def test_what_has_not_begun_is_counted_as_to_come(domain: Domain, pilot: HandPilot) -> None:  # UI-1
    loop = ForEach(name="l", items=[1, 2, 3], body=job("each"), parallel=True)
    choice = Choose(name="c", branches=(Branch(Expr("false"), job("never")),), otherwise=job("always"))
    handled = Scope(name="s", body=job("last"), catches=(Catch(body=job("only-if-it-fails")),))
    case = await start(domain, named(Sequence(name="q", body=(job("first"), loop, choice, handled))))
    view = await domain.case(case)
    assert (sum(count.waiting for count in view.counts), view.to_come) == (1, 4)
    await pilot.sync(want=1)
    await pilot.exchange({"first": Outcome()}, want=3, wait_ms=100)
    view = await domain.case(case)
    assert {count.name for count in view.counts} == {"first", "each"} and view.to_come == 3
    await pilot.run_all(lambda spec: Outcome())
    view = await domain.case(case)
    assert (view.status, view.to_come) == ("completed", 0)
    assert {count.name: count.skipped for count in view.counts}["never"] == 1


async def test_of_a_case_that_failed_what_never_began_stays_counted(domain: Domain, pilot: HandPilot) -> None:  # UI-1
    case = await start(domain, named(Sequence(name="q", body=(job("first", retries=0), job("second"), job("third")))))
    await pilot.sync(want=1)
    await pilot.exchange({"first": FAILED})
    view = await domain.case(case)
    assert (view.status, view.to_come) == ("failed", 2)
    (listed,) = [each for each in await domain.cases() if each.id == case]
    assert listed.to_come == 2
