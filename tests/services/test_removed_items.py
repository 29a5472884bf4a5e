"""What was removed, or came too late, is told once, and in the same words by all who are asked."""

from typing import Any

from mendflow.core.model.flow import Activity, Catch, Empty, Flow, JobActivity, Parallel, Scope, UserTask
from mendflow.core.model.ids import FlowName
from mendflow.services.api.domain import Domain
from tests.patience import until


async def start(domain: Domain, body: Activity) -> str:
    await domain.deploy(Flow(name=FlowName("f"), body=body))
    return (await domain.start("f", {}, who="me")).id


async def test_a_removed_job_is_one_item_cancelled_with_the_reason_that_was_given(domain: Domain, pilot: Any) -> None:
    body = Parallel(name="both", branches=(JobActivity(name="gpu", command="x"), JobActivity(name="cpu", command="y")))
    case = await start(domain, body)
    await domain.cancel(case, "gpu", who="me", reason="no such machine")
    [item] = await domain.items(case, name="gpu")
    assert (item.state, item.fault and item.fault.message) == ("cancelled", "cancelled: no such machine")
    told = await domain.why(f"{case}:gpu")
    assert (told.state, told.sentence) == ("cancelled", "gpu was cancelled before it began: no such machine")
    assert "gpu was cancelled: no such machine" in (await domain.why(case)).facts
    [count] = [count for count in (await domain.case(case)).counts if count.name == "gpu"]
    assert (count.cancelled, count.skipped, count.failed, count.waiting) == (1, 0, 0, 0)


async def test_a_removed_task_keeps_the_reason_too(domain: Domain) -> None:
    case = await start(domain, UserTask(name="ask", role="pi", title="ok?"))
    await domain.cancel(case, "ask", who="me", reason="the pi is away")
    [item] = await domain.items(case)
    assert (item.state, item.reason) == ("cancelled", "the pi is away")
    assert (await domain.why(f"{case}:ask")).sentence == "ask was withdrawn: the pi is away"


async def test_whoever_removes_without_a_word_is_named(domain: Domain) -> None:
    case = await start(domain, JobActivity(name="a", command="x"))
    await domain.cancel(case, "a", who="ann")
    assert (await domain.why(f"{case}:a")).sentence == "a was cancelled before it began: asked for by ann"


async def test_a_task_past_its_deadline_has_failed_for_all_who_count(domain: Domain) -> None:
    late = UserTask(name="ask", role="pi", title="too late?", deadline_ms=30)
    case = await start(domain, Scope(name="s", body=late, catches=(Catch(fault="deadline", body=Empty(name="e")),)))

    async def is_over() -> bool:
        return (await domain.case(case)).status == "completed"

    await until(is_over, "the end of the case")
    [item] = await domain.items(case, name="ask")
    [count] = [count for count in (await domain.case(case)).counts if count.name == "ask"]
    assert (item.state, count.failed, count.cancelled) == ("failed", 1, 0)
    assert item.fault is not None and item.fault.message == "too late? has expired"
