"""Results are found by what they were made from, over all cases of the store; and exactly what is needed runs."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mendflow.core.engine.messages import RestartItem
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import (
    Activity,
    Call,
    Flow,
    ForEach,
    Input,
    JobActivity,
    Scope,
    Sequence,
    UserTask,
)
from mendflow.core.model.ids import CaseId, FlowName, ItemId
from mendflow.core.model.jobs import JobSpec, Outcome, Submission
from mendflow.core.model.views import JobQuery
from mendflow.core.results.result_key import number_in
from mendflow.services.base.ledger import RESULT_KIND
from mendflow.services.cases.result_index import ResultDocument
from mendflow.stores.contract import Put, Store, StoredDocument
from mendflow.stores.memory import MemoryStore
from mendflow.stores.sqlite.store import SqliteStore
from tests.services.conftest import server_on
from tests.services.lab import Lab

SAMPLES = [f"sample {number}" for number in range(20)]


@pytest.fixture(params=["memory", "sqlite"])
async def lab(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Lab]:
    store: Store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "store.db")
    server = server_on(store, tmp_path)
    await server.open()
    yield Lab(server)
    await server.close()


def flow_of(body: Activity, name: str = "f", **more: Any) -> Flow:
    inputs = {"samples": Input(type="list", required=False, default=[])}
    return Flow(name=FlowName(name), body=body, inputs=inputs, **more)


def job(name: str, command: str = "", **more: Any) -> JobActivity:
    fields: dict[str, Any] = {"inputs": {"in.txt": "${{ inputs.samples[0] }}"}, "files": {"out": "out.txt"}}
    return JobActivity(name=name, command=command or f"{name} in.txt > out.txt", **{**fields, **more})


def mapped(name: str = "f", align: str = "align") -> Flow:
    """Each sample is aligned, all of them are merged."""
    inputs = {"in.txt": "${{ item }}"}
    loop = ForEach(
        name="loop", items="${{ inputs.samples }}", body=job("align", f"{align} in.txt > out.txt", inputs=inputs)
    )
    merge = JobActivity(
        name="merge",
        command="cat parts/* > all.txt",
        inputs={"parts/": "${{ jobs.loop.outputs }}"},
        files={"all": "all.txt"},
    )
    loop = msgspec.structs.replace(loop, collect=Expr("jobs.align.files.out"))
    return flow_of(Sequence(name="s", body=(loop, merge)), name)


OTHER_ORDERS: dict[str, Callable[[list[str]], list[str]]] = {
    "prepended": lambda old: ["new", *old],
    "appended": lambda old: [*old, "new"],
    "in another order": lambda old: [*reversed(old[:7]), "new", *old[7:]],
}


@pytest.mark.parametrize("way", OTHER_ORDERS)
async def test_one_more_sample_is_one_more_job_wherever_it_stands(lab: Lab, way: str) -> None:  # DU-2
    await lab.run(mapped(), {"samples": await lab.samples(SAMPLES)})
    assert len(lab.ran) == 21
    await lab.run(mapped(), {"samples": await lab.samples(["small"])})
    assert sorted(lab.ran) == ["align[0]", "merge"]
    samples = OTHER_ORDERS[way](SAMPLES)
    case = await lab.run(mapped(), {"samples": await lab.samples(samples)})
    assert sorted(lab.ran) == sorted([f"align[{samples.index('new')}]", "merge"])
    assert list((await lab.states(case)).values()).count("cached") == 20
    assert (await lab.domain.case(case)).status == "completed"


async def test_results_are_found_under_other_names_and_in_other_flows(lab: Lab) -> None:  # DU-2
    samples = await lab.samples(["one"])
    first = await lab.run(flow_of(job("a", "sort in.txt")), {"samples": samples})
    second = await lab.run(flow_of(job("b", "sort in.txt"), "g"), {"samples": samples})
    assert lab.ran == []
    reasons = await lab.reasons(second)
    assert reasons["b"].startswith(f"cached: made by case {first} item a on 20")
    [item] = await lab.domain.items(second)
    assert item.files["out"]["$file"] == (await lab.domain.items(first))[0].files["out"]["$file"]


async def test_what_changed_is_told(lab: Lab) -> None:  # DU-2
    samples = await lab.samples(["one"])
    first = await lab.run(flow_of(job("a", env={"N": "1"})), {"samples": samples})
    second = await lab.run(flow_of(job("a", env={"N": "2"})), {"samples": samples})
    assert (await lab.reasons(second))["a"] == f"run again: its environment variables changed since case {first}"
    third = await lab.run(flow_of(job("a", env={"N": "2"})), {"samples": await lab.samples(["two"])})
    assert (await lab.reasons(third))["a"] == f"run again: its input in.txt has other content since case {second}"
    told = await lab.domain.why(f"{third}:a")
    assert any("in.txt has other content" in fact for fact in told.facts)
    assert (await lab.reasons(first))["a"] == "", "nothing was there before"
    assert any("no earlier case" in fact for fact in (await lab.domain.why(f"{first}:a")).facts)
    undeclared = await lab.run(flow_of(job("a", files={})), {"samples": samples})
    assert any("declares no `files`" in fact for fact in (await lab.domain.why(f"{undeclared}:a")).facts)
    assert any("declares no `files`" in fact for fact in (await lab.domain.why(f"{undeclared}/1")).facts)


async def test_of_many_the_nearest_is_compared(lab: Lab) -> None:  # DU-2
    first = await lab.run(mapped(), {"samples": await lab.samples(["a", "b"])})
    second = await lab.run(mapped(align="align -v"), {"samples": await lab.samples(["new", "a", "b"])})
    reasons = await lab.reasons(second)
    assert reasons["align[2]"] == f"run again: its command changed since case {first} item align[1]"


async def test_a_job_for_a_new_element_is_new_and_not_changed(lab: Lab) -> None:  # DU-2
    async def samples(*names: str) -> list[Any]:
        return [msgspec.structs.replace(await lab.keep(name), name=name).as_value() for name in names]

    await lab.run(mapped(), {"samples": await samples("s1", "s2")})
    case = await lab.run(mapped(), {"samples": await samples("s0", "s1", "s2")})
    assert lab.ran == ["align[0]", "merge"]
    assert (await lab.reasons(case))["align[0]"] == "new: no earlier case had s0 here"
    assert any("no earlier case had s0" in fact for fact in (await lab.domain.why(f"{case}:align[0]")).facts)
    other = await lab.run(mapped(align="align -v"), {"samples": await samples("s9", "s2", "s1", "s0")})
    reasons = await lab.reasons(other)
    assert reasons["align[0]"] == "new: no earlier case had s9 here"
    assert reasons["align[3]"] == f"run again: its command changed since case {case} item align[0]"
    again = await lab.run(mapped(align="align -w"), {"samples": await samples("s7", "s1")}, cache_from=other)
    reasons = await lab.reasons(again)
    assert reasons["align[0]"] == "new: no earlier case had s7 here"
    assert reasons["align[1]"] == "run again: its command changed"


async def test_a_job_that_failed_before_is_not_new(lab: Lab) -> None:  # DU-2
    lab.fails = {"align"}
    first = await lab.run(mapped(), {"samples": await lab.samples(["a"])})
    lab.fails = set()
    second = await lab.run(mapped(), {"samples": await lab.samples(["a"])})
    assert (await lab.reasons(second))["align[0]"] == f"run again: it did not complete in case {first}"


@pytest.mark.parametrize(
    ("activity", "ran"),
    [
        (job("a", files={}), ["a"]),
        (job("a", inputs={}), ["a"]),
        (job("a", "cat /data/table in.txt > out.txt"), ["a"]),
        (job("a", cache=False), ["a"]),
        (job("a", submission=Submission.FORGET), ["a"]),
        (job("a", files={}, cache=True), []),
        (job("a", inputs={}, cache=True), []),
        (job("a"), []),
    ],
    ids=str,
)
async def test_without_being_asked_only_what_declares_enough_is_used(
    lab: Lab, activity: JobActivity, ran: list[str]
) -> None:  # DU-2
    samples = await lab.samples(["one"])
    for _ in range(2):
        await lab.run(flow_of(activity), {"samples": samples})
    assert lab.ran == ran


async def test_asked_for_all_results_are_used_but_those_that_forbid_it(lab: Lab) -> None:  # DU-2
    flow = flow_of(Sequence(name="s", body=(job("a", files={}, inputs={}), job("b", cache=False))))
    samples = await lab.samples(["one"])
    for _ in range(2):
        await lab.run(flow, {"samples": samples}, cache="all")
    assert lab.ran == ["b"]


@pytest.mark.parametrize("cache", ["", "none"])
async def test_a_case_that_asks_for_none_runs_everything_and_its_results_are_the_ones_used_next(
    lab: Lab, cache: str
) -> None:  # DU-2
    samples = await lab.samples(["one"])
    await lab.run(flow_of(job("a")), {"samples": samples})
    lab.salt = "the world has changed"
    second = await lab.run(flow_of(job("a")), {"samples": samples}, cache=cache)
    assert lab.ran == ["a"]
    third = await lab.run(flow_of(job("a")), {"samples": samples})
    assert lab.ran == []
    assert (await lab.reasons(third))["a"].startswith(f"cached: made by case {second} ")


async def test_a_result_that_gives_nothing_is_not_used_by_itself(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    # DU-2
    async def nothing(spec: JobSpec) -> Outcome:
        return Outcome()

    monkeypatch.setattr(lab, "made", nothing)
    samples = await lab.samples(["one"])
    for _ in range(2):
        await lab.run(flow_of(job("a")), {"samples": samples})
    assert lab.ran == ["a"]
    await lab.run(flow_of(job("a")), {"samples": samples}, cache="all")
    assert lab.ran == []


async def test_a_job_whose_files_are_gone_runs_again_and_is_found_afterwards(lab: Lab, tmp_path: Path) -> None:  # DU-2
    samples = await lab.samples(["one"])
    first = await lab.run(flow_of(job("a")), {"samples": samples})
    [item] = await lab.domain.items(first)
    [gone] = await asyncio.to_thread(lambda: list(tmp_path.rglob(f"*{item.files['out']['$file'][2:]}*")))
    await asyncio.to_thread(gone.unlink)
    second = await lab.run(flow_of(job("a")), {"samples": samples})
    assert lab.ran == ["a"]
    assert (await lab.reasons(second))["a"] == "run again: its file out is not stored here"
    await lab.run(flow_of(job("a")), {"samples": samples})
    assert lab.ran == []


@pytest.mark.parametrize("damage", [b"cut", b"other"], ids=["cut off", "changed"])
async def test_a_job_whose_stored_file_is_damaged_runs_again_and_stores_it_again(
    lab: Lab, tmp_path: Path, damage: bytes
) -> None:  # DU-2
    samples = await lab.samples(["one"])
    first = await lab.run(flow_of(job("a")), {"samples": samples})
    [item] = await lab.domain.items(first)
    digest = item.files["out"]["$file"]
    [place] = await asyncio.to_thread(lambda: list(tmp_path.rglob(digest)))
    whole = await asyncio.to_thread(place.read_bytes)
    await asyncio.to_thread(place.write_bytes, damage.ljust(len(whole) if damage == b"other" else 0))
    second = await lab.run(flow_of(job("a")), {"samples": samples})
    assert re.match("run again: its file out (is|was) damaged", (await lab.reasons(second))["a"])
    assert b"".join([piece async for piece in lab.domain.read_file(digest)]) == whole
    await lab.run(flow_of(job("a")), {"samples": samples})
    assert lab.ran == []


async def test_failed_jobs_and_those_completed_by_force_leave_no_result(lab: Lab) -> None:  # DU-2
    samples = await lab.samples(["one"])
    lab.fails = {"a"}
    await lab.run(flow_of(job("a")), {"samples": samples})
    assert await lab.server.store.count(RESULT_KIND) in ({}, {"": 0})
    lab.fails = set()
    await lab.run(flow_of(job("a")), {"samples": samples})
    assert lab.ran == ["a"]


async def test_equal_jobs_of_one_case_each_run_and_each_take_another_result(lab: Lab) -> None:  # DU-2
    """As random numbers do, which are drawn in a loop."""
    loop = ForEach(name="loop", items=[1, 2, 3], body=job("draw"), parallel=False)
    drawn = 0

    async def random(spec: JobSpec) -> Outcome:
        nonlocal drawn
        drawn += 1
        return Outcome(outputs=drawn, files={"out": await lab.keep(str(drawn))})

    lab.made = random  # type: ignore[method-assign]  # a program that makes something else each time
    samples = await lab.samples(["one"])
    await lab.run(flow_of(loop), {"samples": samples})
    assert len(lab.ran) == 3
    second = await lab.run(flow_of(loop), {"samples": samples})
    assert lab.ran == []
    assert sorted(item.outputs for item in await lab.domain.items(second) if item.kind == "job") == [1, 2, 3]
    longer = msgspec.structs.replace(loop, items=[1, 2, 3, 4])
    await lab.run(flow_of(longer), {"samples": samples})
    assert lab.ran == ["draw[3]"]


async def test_what_repeats_in_a_loop_or_in_called_cases_is_not_taken_from_its_own_case(lab: Lab) -> None:  # DU-2
    inner = flow_of(job("a"), "inner")
    call = Call(name="calls", flow="inner", inputs={"samples": "${{ inputs.samples }}"})
    loop = ForEach(name="loop", items=[1, 2], body=call, parallel=False)
    outer = flow_of(loop, "outer", calls=(inner,))
    samples = await lab.samples(["one"])
    await lab.run(outer, {"samples": samples})
    assert lab.ran == ["a", "a"]
    await lab.run(outer, {"samples": samples})
    assert lab.ran == []


async def test_what_can_be_undone_runs_again(lab: Lab) -> None:  # DU-2
    undo = job("undo", "drop in.txt > out.txt")
    undoable = Scope(name="undoable", body=job("a"), compensation=undo)
    flow = flow_of(Sequence(name="s", body=(undoable, job("b"))))
    samples = await lab.samples(["one"])
    lab.fails = {"b"}
    first = await lab.run(flow, {"samples": samples})
    assert (await lab.domain.case(first)).status == "failed"
    assert "undo" in lab.ran
    await lab.run(flow, {"samples": samples})
    assert {"a", "undo"} <= set(lab.ran)
    await lab.domain.rerun("last", who="me")
    await lab.work()
    assert {"a", "undo"} <= set(lab.ran), "what it made was undone"


async def only_result(lab: Lab) -> StoredDocument:
    [listed] = await lab.server.runtime.results.index.newest([], limit=2)
    found = await lab.server.store.get(RESULT_KIND, listed.key)
    assert found is not None
    return found


async def test_an_item_that_is_restarted_runs_and_its_earlier_result_is_forgotten(lab: Lab) -> None:  # DU-2
    samples = await lab.samples(["one"])
    await lab.domain.deploy(flow_of(job("a")))
    case = (await lab.domain.start("f", {"samples": samples}, who="me", cache="declared")).id
    await lab.pilot.sync(want=1)
    await lab.domain.suspend(case, "a", who="me")
    await lab.pilot.sync(a=await lab.made(lab.pilot.held[0].spec))
    entry = await only_result(lab)
    await lab.server.runtime.manager.command(CaseId(case), RestartItem(item=ItemId("a"), by="me"))
    await lab.work()
    assert lab.ran == ["a"]
    assert (await lab.domain.case(case)).status == "completed"
    assert await lab.server.store.get(RESULT_KIND, entry.id) is None, "somebody did not want it"
    await lab.run(flow_of(job("a")), {"samples": samples})
    assert lab.ran == ["a"]


async def test_counts_of_equal_jobs_survive_a_restart_of_the_server(lab: Lab, restart: Any) -> None:  # DU-2
    two = Sequence(
        name="s", body=(job("a", "same in.txt"), UserTask(name="ask", role="r", title="?"), job("b", "same in.txt"))
    )
    samples = await lab.samples(["one"])
    case = await lab.run(flow_of(two), {"samples": samples})
    assert lab.ran == ["a"]
    await restart(lab.server)
    await lab.pilot.sync()
    [task] = await lab.domain.worklist()
    await lab.domain.complete(task.id, {}, who="me")
    await lab.work()
    assert lab.ran == ["b"], "it is another job, although it is made from the same"
    assert (await lab.domain.case(case)).status == "completed"


async def test_what_a_crash_hid_comes_back_when_the_case_is_loaded(lab: Lab, restart: Any) -> None:  # DU-2
    flow = flow_of(Sequence(name="s", body=(job("a"), UserTask(name="ask", role="r", title="?"))))
    samples = await lab.samples(["one"])
    await lab.run(flow, {"samples": samples})
    await lab.server.runtime.results.index.remove(await only_result(lab))
    await restart(lab.server)
    await lab.run(flow_of(job("a"), "g"), {"samples": samples})
    assert lab.ran == []


async def test_an_entry_that_leads_to_no_completed_job_is_not_believed(lab: Lab) -> None:  # DU-2
    samples = await lab.samples(["one"])
    await lab.run(flow_of(job("a")), {"samples": samples})
    store = lab.server.store
    [entry] = [found async for found in store.scan(RESULT_KIND)]
    document = msgspec.json.decode(entry.body, type=ResultDocument)
    for wrong in ("never/1", "gone/1~2"):
        [found] = [found async for found in store.scan(RESULT_KIND)]
        lie = msgspec.structs.replace(document, job=wrong, at=1)
        await store.write([Put(RESULT_KIND, entry.id, msgspec.json.encode(lie), found.version)])
        await lab.run(flow_of(job("a")), {"samples": samples})
        assert lab.ran == ["a"]
    await lab.run(flow_of(job("a")), {"samples": samples})
    assert lab.ran == []


async def test_two_cases_at_once_make_it_once_or_twice_and_both_are_right(lab: Lab) -> None:  # DU-2
    flow = mapped()
    await lab.domain.deploy(flow)
    samples = await lab.samples(SAMPLES[:6])
    cases = await asyncio.gather(
        *(lab.domain.start("f", {"samples": samples}, who="me", cache="declared") for _ in range(2))
    )
    await lab.work()
    assert 7 <= len(lab.ran) <= 14
    made = [{item.item: item.files for item in await lab.domain.items(case.id)} for case in cases]
    assert made[0] == made[1]
    await lab.run(flow, {"samples": samples})
    assert lab.ran == []


async def test_a_rerun_uses_all_results_of_its_case_and_the_declared_ones_of_others(lab: Lab) -> None:  # DU-2
    flow = flow_of(Sequence(name="s", body=(job("post", files={}), job("a"), job("b"))))
    samples = await lab.samples(["one"])
    lab.fails = {"post"}
    await lab.run(flow, {"samples": samples})
    lab.fails = set()
    await lab.run(flow_of(job("a"), "g"), {"samples": samples})
    failed = next(case for case in await lab.domain.cases() if case.status == "failed")
    again = await lab.domain.rerun(failed.id, who="me")
    await lab.work()
    assert lab.ran == ["post", "b"]
    await lab.domain.rerun(again.id, who="me")
    await lab.work()
    assert lab.ran == []
    await lab.domain.rerun(again.id, who="me", cache="none")
    await lab.work()
    assert lab.ran == ["post", "a", "b"]


async def test_a_restart_does_not_shift_the_numbers_of_equal_jobs(lab: Lab, restart: Any) -> None:  # DU-2
    loop = ForEach(name="loop", items=[1, 1, 1], body=job("a", "draw > out.txt", inputs={}))
    both = Sequence(name="s", body=(loop, job("b", "draw > out.txt", inputs={})))
    await lab.domain.deploy(flow_of(both))
    case = (await lab.domain.start("f", {}, who="me")).id
    await lab.pilot.sync(want=1)
    await restart(lab.server)
    await restart(lab.server)
    await lab.pilot.run_all(lambda _: Outcome())
    found = await lab.domain.jobs(JobQuery(case=case))
    assert sorted(number_in(each.key) for each in found) == [1, 2, 3, 4]
