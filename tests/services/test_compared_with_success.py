"""What tells failures apart is also compared with jobs that ended well: what every job has tells nothing."""

from typing import Any

import msgspec
import pytest

from mendflow.core.model.flow import Empty, Flow, Input, JobActivity, Sequence
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.services.api.domain import Domain
from mendflow.services.base.cluster import CASE_KIND
from mendflow.services.recovery import succeeded_jobs
from mendflow.services.runtime.server import Server
from mendflow.stores.contract import Put
from tests.services.test_repairs import failed

SPLIT = JobActivity(name="split", command="split")
CLEAN = JobActivity(name="clean", command="clean")
SURVEY = Flow(
    name=FlowName("survey"),
    inputs={"table": Input(type="string", required=True)},
    body=Sequence(name="steps", body=(SPLIT, CLEAN)),
)


def all_well(_: JobSpec) -> Outcome:
    return Outcome(exit_code=0)


def clean_fails(spec: JobSpec) -> Outcome:
    return failed(7) if spec.item == "clean" else Outcome(exit_code=0)


async def ran(domain: Domain, pilot: Any, table: str, play: Any) -> str:
    case = (await domain.start(SURVEY.name, {"table": table}, who="alice")).id
    await pilot.run_all(play)
    return case


async def test_ex_7_what_jobs_that_ended_well_have_too_tells_no_failure_apart(domain: Domain, pilot: Any) -> None:
    await domain.deploy(SURVEY)
    await ran(domain, pilot, "night01.csv", all_well)
    await ran(domain, pilot, "night08.csv", clean_fails)
    [group] = await domain.failures()
    values = await domain.failure_values(group.id)
    rows = {each.path: each for each in values}
    owner, table, code = rows["job.owner"], rows["case.data.table"], rows["job.exit_code"]
    assert (owner.value, owner.succeeded, owner.known_succeeded) == ("alice", 3, 3)
    assert (table.value, table.succeeded, table.known_succeeded) == ("night08.csv", 0, 2), (
        "a job that ended well in the case that failed had the same input, which may be why the other one failed"
    )
    assert (code.value, code.succeeded, code.known_succeeded) == (7, 0, 3)
    assert rows["case.jobs.split.exit_code"].succeeded == rows["case.jobs.split.exit_code"].known_succeeded > 0
    order = [each.path for each in values]
    assert max(order.index("case.data.table"), order.index("job.exit_code")) < order.index("job.owner")
    conditions = [each.condition for each in (await domain.failure(group.id)).candidates]
    assert "fault.exit_code == 7" in conditions
    for path in ("job.owner", "job.cpus", "job.host", "case.jobs.split.exit_code", "case.flow"):
        assert not any(path in each for each in conditions), "no condition that holds for what ended well is offered"


async def test_ex_7_runs_that_ended_well_are_found_behind_many_of_other_flows(
    domain: Domain, pilot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(succeeded_jobs, "PAGE", 5)
    await domain.deploy(SURVEY)
    await domain.deploy(Flow(name=FlowName("other"), body=Empty(name="nothing")))
    await ran(domain, pilot, "night01.csv", all_well)
    for _ in range(12):
        await domain.start(FlowName("other"), {}, who="bob")
    await ran(domain, pilot, "night08.csv", clean_fails)
    [group] = await domain.failures()
    rows = {each.path: each for each in await domain.failure_values(group.id)}
    assert (rows["job.exit_code"].succeeded, rows["job.exit_code"].known_succeeded) == (0, 3)


async def test_ex_7_where_nothing_ended_well_nothing_is_compared(domain: Domain, pilot: Any) -> None:
    await domain.deploy(SURVEY)
    await ran(domain, pilot, "night08.csv", lambda _: failed(7))
    [group] = await domain.failures()
    assert {each.known_succeeded for each in await domain.failure_values(group.id)} == {0}
    assert (await domain.failure(group.id)).candidates[0].condition == "fault.exit_code == 7"


DEPTH = Flow(
    name=FlowName("depth"),
    inputs={"table": Input(type="string", required=True), "memory": Input(type="string", default="300 MB")},
    body=Sequence(name="steps", body=(SPLIT, CLEAN)),
)


async def test_ex_7_a_default_is_a_value_of_what_ended_well_too(domain: Domain, pilot: Any) -> None:
    await domain.deploy(DEPTH)
    for given in ({}, {}, {}, {"memory": "2 GB"}):
        await domain.start(DEPTH.name, {"table": "night01.csv", **given}, who="alice")
    await pilot.run_all(all_well)
    await domain.start(DEPTH.name, {"table": "night08.csv"}, who="alice")
    await pilot.run_all(clean_fails)
    [group] = await domain.failures()
    rows = {each.path: each for each in await domain.failure_values(group.id)}
    memory = rows["case.data.memory"]
    assert (memory.value, memory.succeeded, memory.known_succeeded) == ("300 MB", 6, 8), (
        "two jobs of each of four cases"
    )
    conditions = [each.condition for each in (await domain.failure(group.id)).candidates]
    assert not any("case.data.memory" in each for each in conditions)


async def test_ex_7_a_case_of_which_the_defaults_are_not_known_any_more_is_no_evidence(
    domain: Domain, pilot: Any, server: Server
) -> None:
    await domain.deploy(DEPTH)
    old = (await domain.start(DEPTH.name, {"table": "night01.csv", "memory": "2 GB"}, who="alice")).id
    await pilot.run_all(all_well)
    await domain.deploy(msgspec.structs.replace(DEPTH, description="of another digest"))
    await domain.start(DEPTH.name, {"table": "night08.csv"}, who="alice")
    await pilot.run_all(clean_fails)
    await written_before_defaults(server, old)
    [group] = await domain.failures()
    memory = next(each for each in await domain.failure_values(group.id) if each.path == "case.data.memory")
    assert (memory.value, memory.known_succeeded) == ("300 MB", 0)


async def written_before_defaults(server: Server, case: str) -> None:
    """As a version wrote it that kept no defaults."""
    await server.runtime.ledger.settled()
    found = await server.store.get(CASE_KIND, case)
    assert found is not None
    body = msgspec.json.decode(found.body)
    assert body.pop("defaults") == {}
    await server.store.write([Put(CASE_KIND, case, msgspec.json.encode(body), found.version)])


MANY = Flow(
    name=FlowName("many"),
    inputs={"n": Input(required=True)},
    body=Sequence(name="steps", body=tuple(JobActivity(name=f"s{at}", command="x") for at in range(7))),
)
USUAL = "[M::mem_process_seqs] Processed reads in batches\n"


async def test_ex_7_words_that_each_run_of_the_task_prints_tell_no_failure_apart(domain: Domain, pilot: Any) -> None:
    """Also where that task is one of many: one in seven of all jobs that ended well has printed them."""
    await domain.deploy(MANY)

    def printed(spec: JobSpec) -> Outcome:
        return Outcome(exit_code=0, log_tail=USUAL if spec.item == "s6" else "quiet\n")

    def fails(spec: JobSpec) -> Outcome:
        if spec.item != "s6":
            return printed(spec)
        log = f"{USUAL}[E::bseq] truncated file\n"
        fault = failed(7).fault
        assert fault is not None
        return Outcome(fault=msgspec.structs.replace(fault, log_tail=log), exit_code=7, log_tail=log)

    for number, play in enumerate((printed, printed, fails, fails)):
        await domain.start(MANY.name, {"n": number}, who="alice")
        await pilot.run_all(play)
    [group] = await domain.failures()
    conditions = [each.condition for each in (await domain.failure(group.id)).candidates]
    assert 'job.log_tail.contains("truncated file")' in conditions
    assert not any("mem_process_seqs" in each or "Processed" in each for each in conditions)
