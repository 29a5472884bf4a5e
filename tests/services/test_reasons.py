"""Why things are as they are: the true reason, and who can do something about it."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mendflow.core.model.errors import NotFound, RequestError
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import ForEach, JobActivity, LinkSource, Parallel, Sequence, UserTask
from mendflow.core.model.jobs import Outcome
from mendflow.formats.yaml import load_flow
from mendflow.services.api import view_operations
from mendflow.services.api.domain import Domain
from mendflow.services.base.search_budget import SearchBudget
from mendflow.services.runtime.server import Server
from tests.services.conftest import HandPilot
from tests.services.test_domain import named, start


async def test_why_tells_what_an_activity_that_has_not_begun_waits_for(domain: Domain) -> None:
    jobs = Parallel(
        name="jobs",
        links=("a.b",),
        branches=(
            JobActivity(name="a", command="x", sources=(LinkSource("a.b"),)),
            JobActivity(name="b", command="x", targets=("a.b",), join="all"),
        ),
    )
    case = await start(domain, named(jobs))
    told = await domain.why(f"{case}:b")
    assert told.sentence == "b has not begun: it waits for a."
    assert told.facts == ["a is waiting"]
    with pytest.raises(NotFound, match="no item 'c'"):
        await domain.why(f"{case}:c")


async def test_why_names_the_role_the_holder_and_the_end_of_a_persons_work(domain: Domain) -> None:
    case = await start(domain, named(UserTask(name="approve", role="boss")))
    assert "waits for somebody with the role boss" in (await domain.why(f"{case}:approve")).sentence
    (task,) = await domain.worklist(case=case)
    await domain.claim(task.id, who="ann")
    assert (await domain.why(f"{case}:approve")).sentence == "approve is claimed by ann, for the role boss."
    await domain.complete(task.id, {}, who="ann", comment="fine")
    assert (await domain.why(f"{case}:approve")).sentence == "approve was completed by ann: fine"


async def test_a_pilot_that_was_not_heard_since_the_start_is_no_reason(
    server: Server, domain: Domain, pilot: Any, restart: Any
) -> None:
    case = await start(domain, named(ForEach(name="l", items=[1, 2, 3, 4, 5], body=JobActivity(name="a", command="x"))))
    await pilot.sync(want=4)
    await restart(server)
    told = await domain.why(f"{case}:a[4]")
    assert "no pilot is connected" in told.sentence


async def test_why_repeats_the_reason_that_somebody_gave(domain: Domain) -> None:
    case = await start(domain, named(JobActivity(name="a", command="x")))
    await domain.cancel(case, who="ann", reason="enough of it")
    assert "enough of it" in (await domain.why(case)).sentence


async def test_why_of_a_for_each_tells_of_all_its_items(domain: Domain, pilot: HandPilot, tmp_path: Path) -> None:
    flow = tmp_path / "each.yaml"
    flow.write_text("name: each\njobs:\n  r:\n    for-each: [1, 2, 3]\n    run: echo ${{ item }}\n")
    case = await start(domain, load_flow(flow))
    told = await domain.why(f"{case}:r")
    assert (told.state, told.sentence.partition(";")[0]) == ("waiting", "r is r[0] to r[2]: 3 waiting")
    while len(pilot.held) < 3:
        await pilot.sync(want=3, wait_ms=100)
    await pilot.exchange({each.spec.item: Outcome() for each in pilot.held})
    told = await domain.why(f"{case}:r")
    assert (told.state, told.sentence.partition(";")[0]) == ("completed", "r is r[0] to r[2]: 3 completed")


async def test_why_finds_what_stands_behind_more_items_than_one_page_looks_at(
    domain: Domain, pilot: HandPilot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_operations, "EXAMINED_MAX", 3)
    each = ForEach(name="l", items=[*range(9)], body=JobActivity(name="a", command="x"))
    last = JobActivity(name="z", command="x", sources=(LinkSource("z.end"),))
    end = JobActivity(name="end", command="x", targets=("z.end",), join="all")
    case = await start(
        domain, named(Sequence(name="s", body=(each, Parallel(name="p", links=("z.end",), branches=(last, end)))))
    )
    while not any(held.spec.item == "z" for held in pilot.held):
        await pilot.exchange({held.spec.item: Outcome() for held in pilot.held}, want=4, wait_ms=50)
    assert (await domain.why(f"{case}:end")).facts == ["z is running"]
    fault = Fault(name="exitCode", category=Category.JOB, message="it broke")
    await pilot.exchange({"z": Outcome(fault=fault)})
    told = await domain.why(case)
    assert (told.state, told.sentence.partition(": ")[2]) == ("failed", "z: it broke")
    assert [item.item for item in await domain.items(case, offset=4, limit=5)] == [f"a[{n}]" for n in range(4, 9)]


async def test_a_costly_condition_is_asked_about_fewer_items_at_once(
    domain: Domain, monkeypatch: pytest.MonkeyPatch
) -> None:
    # SE-1
    monkeypatch.setattr(view_operations, "SearchBudget", partial(SearchBudget, work_max=40_000))
    each = ForEach(name="l", items=[*range(9)], body=JobActivity(name="a", command="x"))
    case = await start(domain, named(each))
    cheap = await domain.find_items(case, where="state == 'waiting'")
    assert (len(cheap.rows), cheap.looked_at, cheap.next) == (9, 9, "")
    found, after, answers = list[str](), "", 0
    while answers == 0 or after:
        page = await domain.find_items(case, where="size(range(15000)) > 0 && state == 'waiting'", after=after)
        assert page.looked_at <= 3, "one answer has taken more than its budget"
        found += [item.item for item in page.rows]
        after, answers = page.next, answers + 1
    assert found == [item.item for item in cheap.rows] and answers >= 3


@pytest.mark.parametrize("offset", [2, 5, 8, 20])
async def test_items_that_a_cut_page_has_not_skipped_are_skipped_by_the_next(
    domain: Domain, monkeypatch: pytest.MonkeyPatch, offset: int
) -> None:
    monkeypatch.setattr(view_operations, "SearchBudget", partial(SearchBudget, work_max=40_000))
    case = await start(domain, named(ForEach(name="l", items=[*range(9)], body=JobActivity(name="a", command="x"))))
    where = "size(range(15000)) > 0 && state == 'waiting'"
    page = await domain.find_items(case, where=where, offset=offset)
    assert page.looked_at <= 3 and page.next
    found = [item.item for item in page.rows]
    while page.next:
        page = await domain.find_items(case, where=where, after=page.next)
        found += [item.item for item in page.rows]
    assert found == [f"a[{number}]" for number in range(offset, 9)]


@pytest.mark.parametrize("after", ["~3", "1~", "1~x", "1~-2", "1~²", "x~3"])
async def test_a_place_with_nothing_to_skip_that_is_a_number_is_refused(domain: Domain, after: str) -> None:
    case = await start(domain, named(JobActivity(name="a", command="x")))
    with pytest.raises(RequestError, match="`after` is"):
        await domain.find_items(case, after=after)


async def test_a_failed_task_tells_why(domain: Domain) -> None:
    # AD-6
    case = await start(domain, named(UserTask(name="approve", role="editor", title="Look")))
    [offered] = await domain.worklist(state="offered")
    await domain.reject(offered.id, who="ann", comment="too dear")
    assert (await domain.why(f"{case}:approve")).sentence == "approve was rejected by ann: too dear"


async def test_why_says_that_items_failed_also_of_a_case_that_completed(domain: Domain) -> None:  # UI-1
    loop = ForEach(name="l", items=[1, 2, 3], body=JobActivity(name="a", command="x"), parallel=True, tolerate=1)
    case = await start(domain, named(Sequence(name="s", body=(loop, JobActivity(name="b", command="x")))))
    pilot = HandPilot(domain)
    await pilot.sync(want=3)
    failed = Outcome(fault=Fault(name="exitCode", category=Category.JOB, message="no"))
    await pilot.exchange({"a[0]": Outcome(), "a[1]": failed, "a[2]": Outcome()})
    await pilot.run_all(lambda _: Outcome())
    assert (await domain.why(case)).sentence.endswith("; 1 of 4 items failed, and the flow went on.")


async def test_why_names_some_that_failed_and_where_all_are(domain: Domain) -> None:
    loop = ForEach(name="l", items=list(range(8)), body=JobActivity(name="a", command="x"), parallel=True, tolerate=7)
    case = await start(domain, named(loop))
    pilot = HandPilot(domain)
    failed = Outcome(fault=Fault(name="exitCode", category=Category.JOB, message="no disk"))
    await pilot.run_all(lambda _: failed)
    told = await domain.why(case)
    assert [fact for fact in told.facts if fact.startswith("and ")] == [
        f"and 2 more: `mendflow items {case} --state failed`"
    ]
    assert told.items == {f"a[{at}]": f"a[{at}]" for at in range(6)}
