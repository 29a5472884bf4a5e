"""Searches of a domain: what lives here is seen as it is, whatever the store has of it by then."""  # JS-6

from typing import Any

import pytest

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Flow, ForEach, JobActivity, Sequence
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.views import CaseQuery, JobQuery
from mendflow.core.query.literals import InvalidSearch
from mendflow.services.api.domain import Domain
from mendflow.services.base import paging
from tests.services.conftest import HandPilot

LOOP = ForEach(name="loop", items=[1, 2, 3, 4], body=JobActivity(name="a", command="true"), on_fault="finish")


@pytest.fixture
async def case(domain: Domain) -> str:
    await domain.deploy(Flow(name=FlowName("f"), body=LOOP))
    return (await domain.start("f", {}, who="ann")).id


async def items(domain: Domain, where: str, **more: Any) -> list[str]:
    found = await domain.find_jobs(JobQuery(where=where, order="id", **more))
    return [str(job.spec.item) for job in found.rows]


async def test_a_job_that_its_pilot_has_not_begun_is_found_as_available(domain: Domain, pilot: Any, case: str) -> None:
    pilot.state = "held"
    await pilot.sync(want=2)
    await pilot.sync()
    assert await items(domain, "state == 'available'") == ["a[0]", "a[1]", "a[2]", "a[3]"]
    assert await items(domain, "state == 'running'") == []
    pilot.state = "running"
    await pilot.sync()
    assert await items(domain, "state == 'running' && attempts == 1 && host == 'here'") == ["a[0]", "a[1]"]
    assert await items(domain, "state == 'available'") == ["a[2]", "a[3]"]


async def test_a_job_is_of_whoever_started_its_case_unless_the_flow_says_whose_it_is(domain: Domain) -> None:
    body = Sequence(
        name="s",
        body=(JobActivity(name="a", command="true"), JobActivity(name="b", command="true", owner="calibration")),
    )
    await domain.deploy(Flow(name=FlowName("f"), body=body))
    await domain.start("f", {}, who="alignment")
    pilot = HandPilot(domain)
    await pilot.run_all(lambda _: Outcome())
    assert await items(domain, "owner == 'alignment' && attempts > 0") == ["a"]
    assert await items(domain, "attempts > 0", owner="calibration") == ["b"]


async def test_a_list_of_cases_goes_on_where_one_answer_of_the_search_ends(
    domain: Domain, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(6):
        await domain.start("f", {}, who="ann")
    listed = [each.id for each in await domain.cases(flow="f")]
    assert len(listed) == 7
    monkeypatch.setattr(paging, "EXAMINED_MAX", 2)
    assert [each.id for each in await domain.cases(flow="f")] == listed
    assert [each.id for each in await domain.cases(flow="f", limit=2, offset=3)] == listed[3:5]
    assert [each.id for each in await domain.cases(status="completed")] == []
    assert [each.id async for each in domain.each_case(CaseQuery(flow="f", limit=3))] == listed


async def test_a_condition_and_the_options_beside_it_hold_both(domain: Domain, pilot: Any, case: str) -> None:
    await pilot.sync(want=2)
    assert await items(domain, "attempts > 0 || item == 'a[3]'", state="available") == ["a[3]"]
    assert await items(domain, "attempts > 0", case=case, name="b") == []


async def test_a_place_in_what_was_typed_is_told_whatever_a_page_adds_to_it(
    domain: Domain, pilot: Any, case: str
) -> None:
    await pilot.sync(want=1)
    assert await items(domain, "attempts == 0", also="item != 'a[1]' || item == 'a[1]'") == ["a[1]", "a[2]", "a[3]"]
    assert await items(domain, "attempts >= 0", also="state == 'running' && item != 'a[1]'") == ["a[0]"]
    added = "status == 'running' && parent == null && mends == null"
    with pytest.raises(InvalidSearch, match="character 15") as refused:
        await domain.find_cases(CaseQuery(where="done == 1 && (strated > ago('1h'))", also=added))
    assert "started" in str(refused.value)
    assert [view.id for view in (await domain.find_cases(CaseQuery(also=added))).rows] == [case]
    assert (await domain.find_cases(CaseQuery(where="done == 0", also="status == 'failed'"))).rows == []


async def test_live_cases_are_found_by_how_far_they_have_come(domain: Domain, pilot: Any, case: str) -> None:
    await pilot.sync(want=1)
    await pilot.exchange({"a[0]": Outcome()})
    found = await domain.find_cases(CaseQuery(where="done == 1 && owner == 'ann' && status == 'running'"))
    assert [view.id for view in found.rows] == [case]
    assert (await domain.count_cases(CaseQuery(), by="status")).counts == {"running": 1}
    assert (await domain.count_jobs(JobQuery(), by="state")).counts == {"completed": 1, "available": 3}


async def test_items_are_found_by_conditions_too(domain: Domain, pilot: Any, case: str) -> None:
    await pilot.sync(want=1)
    await pilot.exchange({"a[0]": Outcome(outputs={"score": 3})})
    page = await domain.find_items(case, where="state == 'completed' && outputs.score > 2 && attempts == 1")
    assert [str(view.item) for view in page.rows] == ["a[0]"]
    with pytest.raises(InvalidSearch, match="did you mean `runtime`"):
        await domain.find_items(case, where="runtme > '1s'")


async def test_an_item_is_found_by_what_it_is_for_and_by_what_it_failed(domain: Domain) -> None:  # UI-1
    body = ForEach(name="loop", items=["S1", "S17"], body=JobActivity(name="a", command="true"), on_fault="finish")
    await domain.deploy(Flow(name=FlowName("s"), body=body))
    case = (await domain.start("s", {}, who="ann")).id
    no_index = Fault(name="exitCode", category=Category.JOB, message="No Index there")
    await HandPilot(domain).run_all(lambda _: Outcome(fault=no_index))

    async def found(where: str, also: str = "") -> list[str]:
        return [str(view.item) for view in (await domain.find_items(case, where=where, also=also)).rows]

    assert await found("text.contains('s17')") == await found("element == 'S17'") == ["a[1]"]
    assert await found("text.contains('no index')") == ["a[0]", "a[1]"]
    assert await found("item == 'a[0]' || item == 'a[1]'", also="text.contains('s17')") == ["a[1]"]
    with pytest.raises(InvalidSearch, match="character 1"):
        await domain.find_items(case, where="itme == 'a[0]'", also="text.contains('s17')")


async def test_pages_go_on_from_where_the_last_one_ended(domain: Domain, case: str) -> None:
    first = await domain.find_jobs(JobQuery(where="name == 'a'", order="-id", limit=3))
    second = await domain.find_jobs(JobQuery(where="name == 'a'", order="-id", limit=3, after=first.next))
    assert [str(job.spec.item) for job in (*first.rows, *second.rows)] == ["a[3]", "a[2]", "a[1]", "a[0]"]
    assert second.next == ""


async def test_a_list_of_jobs_goes_on_where_one_answer_of_the_search_ends(
    domain: Domain, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = [each.id for each in await domain.jobs(JobQuery(case=case))]
    assert len(listed) == 4
    monkeypatch.setattr(paging, "EXAMINED_MAX", 1)
    assert [each.id for each in await domain.jobs(JobQuery(case=case))] == listed
    assert [each.id for each in await domain.jobs(JobQuery(case=case, limit=2, offset=1))] == listed[1:3]
