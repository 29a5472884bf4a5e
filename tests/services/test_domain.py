"""A domain as its users see it: cases, items, re-runs, people's work, and the way back when the store was away."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mendflow.core.model.errors import Conflict, NotFound, RequestError, StoreUnavailable
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import (
    Call,
    Catch,
    Flow,
    ForEach,
    Input,
    JobActivity,
    Scope,
    Sequence,
    Stage,
    UserTask,
    Wait,
)
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.core.model.views import CaseQuery, JobQuery
from mendflow.services.api.domain import Domain
from mendflow.stores.contract import WriteConflict, WriteDone
from mendflow.stores.memory import MemoryStore
from tests.patience import PATIENCE_S

FAILED = Outcome(fault=Fault(name="exit", category=Category.JOB, message="exit code 1"))


def named(body: Any, **more: Any) -> Flow:
    return Flow(name=FlowName("f"), body=body, **more)


async def start(domain: Domain, flow: Flow, **inputs: Any) -> str:
    await domain.deploy(flow)
    return (await domain.start(flow.name, inputs, who="me")).id


async def test_the_counts_follow_the_items(domain: Domain, pilot: Any) -> None:
    loop = ForEach(
        name="loop", items=[1, 2, 3], body=JobActivity(name="a", command="true", retries=1), on_fault="finish"
    )
    case = await start(domain, named(loop))
    await pilot.sync(want=2)
    [count] = (await domain.case(case)).counts
    assert (count.running, count.waiting) == (2, 1)
    await pilot.sync(**{"a[0]": FAILED, "a[1]": Outcome()})
    await pilot.run_all(lambda spec: Outcome())
    view = await domain.case(case)
    [count] = view.counts
    assert (count.done, count.mended, count.failed, count.running) == (3, 1, 0, 0)
    assert view.status == "completed"


async def test_counts_are_the_same_after_a_restart(server: Any, domain: Domain, pilot: Any, restart: Any) -> None:
    loop = ForEach(name="loop", items=[1, 2, 3], body=JobActivity(name="a", command="true"))
    case = await start(domain, named(loop))
    await pilot.sync(want=2)
    await pilot.sync(**{"a[0]": Outcome()})
    before = (await domain.case(case)).counts
    await restart(server)
    [count] = (await domain.case(case)).counts
    assert (count.done, count.running) == (1, 0), "nobody has said yet that anything runs"
    await pilot.sync()
    assert (await domain.case(case)).counts == before


async def test_a_rerun_takes_over_what_did_not_change_and_says_why_not_the_rest(domain: Domain, pilot: Any) -> None:
    def flow(command: str) -> Flow:
        first = JobActivity(name="a", command="echo a")
        then = JobActivity(name="b", command=command, env={"A": "${{ jobs.a.outputs }}"})
        return named(Sequence(name="s", body=(first, then)))

    def play(spec: JobSpec) -> Outcome:
        return FAILED if spec.item == "b" and spec.command == "false" else Outcome(outputs=spec.item)

    first = await start(domain, flow("false"))
    await pilot.run_all(play)
    assert (await domain.case(first)).status == "failed"
    await domain.deploy(flow("true"))
    second = (await domain.start("f", {}, who="me", cache_from="last")).id
    await pilot.run_all(play)
    view = await domain.case(second)
    assert view.status == "completed"
    assert view.rerun_of == first
    a, b = await domain.items(second)
    assert (a.state, a.outputs) == ("cached", "a")
    assert a.cache_reason.startswith(f"cached: made by case {first} item a on ")
    assert (b.state, b.cache_reason) == ("completed", "run again: it did not complete in the earlier case")


async def test_a_rerun_from_failed_wants_a_failure(domain: Domain, pilot: Any) -> None:
    case = await start(domain, named(JobActivity(name="a", command="true")))
    with pytest.raises(Conflict, match="has not ended, it is running"):
        await domain.rerun(case, who="me")
    await pilot.run_all(lambda spec: Outcome())
    with pytest.raises(Conflict, match="nothing failed"):
        await domain.rerun(case, who="me", from_failed=True)
    again = await domain.rerun("last", who="me")
    assert (again.rerun_of, again.stands_for, (await domain.case(again.id)).flow) == (case, case, "f")
    [found] = (await domain.find_cases(CaseQuery(where=f"stands_for == '{case}'"))).rows
    assert found.id == again.id


async def test_what_failed_in_a_case_that_completed_all_the_same_is_run_again(
    domain: Domain, pilot: Any
) -> None:  # UI-1
    job = JobActivity(name="a", command="echo ${{ item }}")
    case = await start(domain, named(ForEach(name="l", items=[1, 2, 3], body=job, parallel=True, tolerate=1)))
    await pilot.sync(want=3)
    failed = Outcome(fault=Fault(name="exitCode", category=Category.JOB, message="no"))
    await pilot.exchange({"a[0]": Outcome(), "a[1]": failed, "a[2]": Outcome()})
    assert (await domain.case(case)).status == "completed"
    again = await domain.rerun(case, who="me", from_failed=True)
    await pilot.run_all(lambda _: Outcome())
    states = {str(item.item): item.state for item in await domain.items(again.id)}
    assert states == {"a[0]": "cached", "a[1]": "completed", "a[2]": "cached"}


async def test_a_manual_task_is_offered_claimed_and_completed(domain: Domain) -> None:
    # AD-6
    task = UserTask(name="approve", role="editor", title="Approve the slot", fields={"price": "what it costs"})
    case = await start(domain, named(task, outputs={"price": "${{ jobs.approve.outputs.price }}"}))
    [offered] = await domain.worklist(role="editor", state="offered")
    assert (offered.title, offered.case) == ("Approve the slot", case)
    await domain.claim(offered.id, who="ann")
    with pytest.raises(Conflict, match="claimed by ann"):
        await domain.complete(offered.id, {"price": 3}, who="bob")
    with pytest.raises(Conflict, match="wants a value for price"):
        await domain.complete(offered.id, {}, who="ann")
    await domain.complete(offered.id, {"price": 3}, who="ann")
    view = await domain.case(case)
    assert (view.status, view.outputs) == ("completed", {"price": 3})
    with pytest.raises(Conflict, match="is over: completed by ann"):
        await domain.reject(offered.id, who="ann")


async def test_a_rejected_task_throws_and_one_past_its_deadline_expires(domain: Domain) -> None:
    # AD-6
    rejected = await start(domain, named(UserTask(name="approve", role="editor")))
    [offered] = await domain.worklist(state="offered")
    await domain.reject(offered.id, who="ann", comment="too dear")
    fault = (await domain.case(rejected)).fault
    assert fault is not None
    assert (fault.name, fault.message) == ("rejected", "approve was rejected by ann: too dear")
    late = await start(domain, named(UserTask(name="approve", role="editor", deadline_ms=30)))
    while (await domain.case(late)).status == "running":
        await asyncio.sleep(0.01)
    fault = (await domain.case(late)).fault
    assert fault is not None
    assert fault.name == "deadline"
    assert (await domain.worklist(case=late))[0].state == "expired"


async def test_an_open_task_survives_a_restart(server: Any, domain: Domain, restart: Any) -> None:
    # AD-6
    case = await start(domain, named(UserTask(name="approve", role="editor")))
    [offered] = await domain.worklist(state="offered")
    await domain.claim(offered.id, who="ann")
    await restart(server)
    await domain.complete(offered.id, None, who="ann")
    assert (await domain.case(case)).status == "completed"


async def test_a_called_flow_is_a_case_of_its_own_and_gives_its_outputs_back(domain: Domain, pilot: Any) -> None:
    inner = Flow(
        name=FlowName("inner"),
        body=JobActivity(name="a", command="true", env={"N": "${{ inputs.n }}"}),
        inputs={"n": Input(type="number", required=True)},
        outputs={"n": "${{ jobs.a.outputs }}"},
    )
    outer = named(
        Call(name="go", flow="inner", inputs={"n": 3}), calls=(inner,), outputs={"got": "${{ jobs.go.outputs.n }}"}
    )
    case = await start(domain, outer)
    await pilot.run_all(lambda spec: Outcome(outputs=spec.env["N"]))
    view = await domain.case(case)
    assert (view.status, view.outputs) == ("completed", {"got": "3"})
    [called] = [each for each in await domain.cases() if each.parent == case]
    assert called.flow == "inner"


async def test_a_call_of_an_unknown_flow_fails_with_what_to_do(domain: Domain) -> None:
    case = await start(domain, named(Call(name="go", flow="nowhere")))
    await asyncio.sleep(0.05)
    fault = (await domain.case(case)).fault
    assert fault is not None
    assert "mendflow flows deploy" in fault.message


async def test_given_files_are_staged_before_the_job_is_submitted(domain: Domain, pilot: Any, tmp_path: Path) -> None:
    # FM-6 FM-7: staging, submission, completed
    (tmp_path / "data.txt").write_text("hello")
    job = JobActivity(name="a", command="cat d", inputs={"d": str(tmp_path / "data.txt")})
    case = await start(domain, named(job))
    await pilot.sync(want=1, wait_ms=2000)
    [held] = pilot.held
    assert held.spec.inputs["d"].bytes == 5
    assert b"".join([chunk async for chunk in domain.read_file(held.spec.inputs["d"].sha256)]) == b"hello"
    await pilot.sync(a=Outcome())
    assert (await domain.case(case)).status == "completed"


@pytest.mark.parametrize("order", ["parallel", "sequence"])
async def test_a_file_that_is_not_there_fails_the_staging(domain: Domain, tmp_path: Path, order: Any) -> None:
    # FM-6
    case = await start(domain, named(Stage(name="in", files={"x": str(tmp_path / "no")}, order=order)))
    while (await domain.case(case)).status == "running":
        await asyncio.sleep(0.01)
    fault = (await domain.case(case)).fault
    assert fault is not None
    assert (fault.name, fault.category) == ("stagingFailed", Category.DATA)


async def test_a_waiting_case_goes_on_when_its_time_comes_also_after_a_restart(
    server: Any, domain: Domain, restart: Any
) -> None:
    case = await start(domain, named(Wait(name="w", duration=700)))
    await restart(server)
    assert (await domain.case(case)).status == "running"
    while (await domain.case(case)).status == "running":
        await asyncio.sleep(0.01)
    view = await domain.case(case)
    assert view.status == "completed"
    assert view.ended_at - view.started_at >= 700


async def test_suspend_holds_a_case_and_resume_lets_it_go_on(domain: Domain, pilot: Any) -> None:
    case = await start(
        domain, named(Sequence(name="s", body=(JobActivity(name="a", command="x"), JobActivity(name="b", command="x"))))
    )
    await pilot.sync(want=1)
    assert (await domain.suspend(case, who="me")).status == "suspended"
    answer = await pilot.sync()
    assert [order.control for order in answer.orders] == ["suspend"]
    await pilot.sync(a=Outcome())
    assert (await pilot.sync(want=1)).jobs == []
    assert (await domain.resume(case, who="me")).status == "running"
    assert [job.spec.item for job in (await pilot.sync(want=1, wait_ms=500)).jobs] == ["b"]


async def test_a_removed_case_cancels_its_jobs(domain: Domain, pilot: Any) -> None:
    case = await start(domain, named(JobActivity(name="a", command="x")))
    await pilot.sync(want=1)
    assert (await domain.cancel(case, who="me")).status == "cancelled"
    answer = await pilot.sync()
    assert [order.control for order in answer.orders] == ["cancel"]
    with pytest.raises(Conflict, match="is over"):
        await domain.suspend(case, who="me")


async def test_jobs_are_searched_by_their_metadata(domain: Domain, pilot: Any) -> None:
    # JS-6
    await start(domain, named(JobActivity(name="a", command="x", owner="alignment", priority=7, expected_ms=5000)))
    await start(domain, named(JobActivity(name="b", command="x", owner="other")))
    [job] = await domain.jobs(JobQuery(owner="alignment"))
    assert (job.spec.item, job.spec.priority, job.spec.expected_ms, job.fence) == ("a", 7, 5000, 0)
    assert await domain.jobs(JobQuery(attempts_min=1)) == []


async def test_happenings_end_with_their_case_and_go_on_from_a_serial(domain: Domain, pilot: Any) -> None:
    case = await start(domain, named(JobActivity(name="a", command="x")))

    async def listen() -> list[Any]:
        return [each async for each in domain.events(case)]

    listening = asyncio.create_task(listen())
    await asyncio.sleep(0.01)
    await pilot.run_all(lambda spec: Outcome())
    told = await asyncio.wait_for(listening, PATIENCE_S)
    assert [(each.kind, each.state) for each in told] == [
        ("case", "running"),
        ("item", "waiting"),
        ("item", "running"),
        ("item", "completed"),
        ("case", "completed"),
    ]
    later = [each async for each in domain.events(case, after=told[2].serial)]
    assert [each.serial for each in later] == [each.serial for each in told[3:]]
    of_the_case = [each async for each in domain.events(case, kind="case")]
    assert [each.serial for each in of_the_case] == [told[0].serial, told[4].serial]


async def test_whoever_waits_for_one_kind_hears_of_no_other(domain: Domain, pilot: Any) -> None:
    case = await start(domain, named(JobActivity(name="a", command="x")))

    async def listen() -> list[tuple[str, str]]:
        return [(each.kind, each.state) async for each in domain.events(case, kind="case")]

    listening = asyncio.create_task(listen())
    await asyncio.sleep(0.01)
    await pilot.run_all(lambda spec: Outcome())
    assert await asyncio.wait_for(listening, PATIENCE_S) == [("case", "running"), ("case", "completed")]


async def test_wrong_inputs_are_refused_whole(domain: Domain) -> None:
    await domain.deploy(named(JobActivity(name="a", command="x"), inputs={"n": Input(type="number", required=True)}))
    with pytest.raises(RequestError, match="n is missing"):
        await domain.start("f", {}, who="me")
    with pytest.raises(RequestError, match="must be a number"):
        await domain.start("f", {"n": "x"}, who="me")
    assert await domain.cases() == []


async def test_unknown_names_are_told_with_what_to_do(domain: Domain) -> None:
    with pytest.raises(NotFound, match="mendflow flows deploy"):
        await domain.start("nope", {}, who="me")
    with pytest.raises(NotFound, match="no case yet"):
        await domain.case("last")
    with pytest.raises(NotFound, match="mendflow cases"):
        await domain.case("nope-1")


async def test_a_fault_handler_sees_the_jobs_fault(domain: Domain, pilot: Any) -> None:
    handler = Catch(body=JobActivity(name="tell", command="x", env={"WHY": "${{ fault.message }}"}))
    case = await start(domain, named(Scope(name="s", body=JobActivity(name="a", command="x"), catches=(handler,))))
    seen = []

    def play(spec: JobSpec) -> Outcome:
        seen.append((spec.item, dict(spec.env)))
        return FAILED if spec.item == "a" else Outcome()

    await pilot.run_all(play)
    assert seen[1] == ("tell", {"WHY": "exit code 1"})
    assert (await domain.case(case)).status == "completed"


class FullDisk(MemoryStore):
    """A store that cannot write while `full`."""

    full = False

    async def write(self, writes: Any) -> list[WriteDone | WriteConflict]:
        if self.full:
            raise StoreUnavailable("the disk is full; free some space")
        return await super().write(writes)


async def test_a_full_disk_loses_nothing_and_acknowledges_nothing(server: Any, domain: Domain, pilot: Any) -> None:
    case = await start(domain, named(JobActivity(name="a", command="x")))
    await pilot.sync(want=1)
    held = list(pilot.held)
    store = server.store
    store.__class__ = FullDisk
    store.full = True
    with pytest.raises(StoreUnavailable, match="disk is full"):
        await pilot.sync(a=Outcome(outputs=7))
    with pytest.raises(StoreUnavailable, match="disk is full"):
        await domain.case(case)
    assert (await domain.health()).status == "store-away"
    store.full = False
    while (await domain.health()).status != "ok":
        await asyncio.sleep(0.02)
    assert (await domain.case(case)).status == "running", "what was not acknowledged has not happened"
    pilot.held = held
    answer = await pilot.sync(a=Outcome(outputs=7))
    assert len(answer.accepted) == 1
    assert (await domain.item(case, "a")).outputs == 7


async def test_a_case_that_cannot_be_read_fails_alone(server: Any, domain: Domain, pilot: Any, restart: Any) -> None:
    good = await start(domain, named(JobActivity(name="a", command="x")))
    bad = await start(domain, named(JobActivity(name="a", command="y")))
    server.store._streams[f"case/{bad}"][0] = b'{"at":1,"fact":{"type":"nonsense"}}'
    await restart(server)
    view = await domain.case(bad)
    assert view.fault is not None
    assert (view.status, view.fault.name) == ("failed", "unreadable")
    await pilot.run_all(lambda spec: Outcome())
    assert (await domain.case(good)).status == "completed"


async def test_a_fault_of_ours_in_the_middle_leaves_memory_as_the_disk_is(
    server: Any, domain: Domain, pilot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = await start(domain, named(JobActivity(name="a", command="x")))
    await pilot.sync(want=1)
    held = list(pilot.held)

    def explode(*_: Any) -> None:
        raise RuntimeError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr(server.runtime.manager._recorder, "record", explode)
        with pytest.raises(RuntimeError):
            await pilot.sync(a=Outcome(outputs=1))
    while (await domain.health()).status != "ok":
        await asyncio.sleep(0.02)
    assert (await domain.case(case)).status == "running"
    pilot.held = held
    await pilot.sync(a=Outcome(outputs=1))
    assert (await domain.case(case)).status == "completed"


async def test_outputs_that_are_no_value_fail_the_job_and_nothing_else(domain: Domain, pilot: Any) -> None:
    deep: Any = []
    for _ in range(975):
        deep = [deep]
    case = await start(domain, named(JobActivity(name="a", command="x")))
    await pilot.sync(want=1)
    await pilot.sync(a=Outcome(outputs=deep))
    fault = (await domain.case(case)).fault
    assert fault is not None
    assert fault.name == "notData"


async def test_a_job_whose_expression_fails_is_an_item_that_failed(domain: Domain, pilot: Any) -> None:
    second = JobActivity(name="z", command="echo ${{ jobs.a.outputs.typo }}")
    case = await start(domain, named(Sequence(name="s", body=(JobActivity(name="a", command="x"), second))))
    await pilot.run_all(lambda spec: Outcome(outputs={"good": 1}))
    item = await domain.item(case, "z")
    assert item.fault is not None
    assert (item.state, "typo" in item.fault.message) == ("failed", True)
    assert [count.failed for count in (await domain.case(case)).counts if count.name == "z"] == [1]


async def test_cancelled_jobs_are_not_counted_as_failed(domain: Domain, pilot: Any) -> None:
    case = await start(domain, named(JobActivity(name="a", command="x")))
    await pilot.sync(want=1)
    await domain.cancel(case, who="me")
    [count] = (await domain.case(case)).counts
    assert (count.failed, count.cancelled) == (0, 1)


async def test_staging_does_not_count_as_a_job_of_its_own(domain: Domain, pilot: Any, tmp_path: Path) -> None:
    (tmp_path / "d").write_text("x")
    case = await start(domain, named(JobActivity(name="a", command="x", inputs={"d": str(tmp_path / "d")})))
    while not pilot.held:
        await pilot.sync(want=1, wait_ms=200)
    await pilot.sync(a=Outcome())
    [count] = (await domain.case(case)).counts
    assert (count.name, count.kind, count.done) == ("a", "job", 1)


async def test_last_is_the_last_case_that_somebody_started(domain: Domain) -> None:
    inner = Flow(name=FlowName("inner"), body=JobActivity(name="a", command="true"))
    case = await start(domain, named(Call(name="go", flow="inner"), calls=(inner,)))
    while len(await domain.cases()) < 2:
        await asyncio.sleep(0.01)
    assert (await domain.case("last")).id == case
