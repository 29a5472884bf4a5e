"""Whatever a pilot reports of a job's end concerns that job, and neither another job nor the server."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from mendflow.core.model.faults import Fault
from mendflow.core.model.flow import Flow, Input, JobActivity, Parallel, Sequence
from mendflow.core.model.ids import FlowName, JobId, PilotId
from mendflow.core.model.jobs import FunctionRef, Job, JobSpec, Measurements, Outcome
from mendflow.core.model.sync import NUMBER_MAX, AttemptStatus
from mendflow.core.model.values import FileRef, Value
from mendflow.core.scheduling.report_bounds import LOG_CHARS_MAX
from mendflow.services.api.domain import Domain
from mendflow.services.cases.live_case import LiveCase
from mendflow.services.cases.result_cache import Lookup, ResultCache
from mendflow.services.cases.result_index import ResultIndex
from mendflow.services.runtime.server import Server
from mendflow.services.scheduling.pilot_records import GrantedAttempt, PilotRecord
from mendflow.services.scheduling.unprocessed_reports import ERRORS_MAX
from tests.patience import PATIENCE_S
from tests.services.conftest import HandPilot

DIGEST = "ab" * 32
ELSEWHERE = FileRef(sha256="cd" * 32, bytes=5, name="secret.txt")

BAD: list[Outcome] = [
    Outcome(outputs={"f": {"$file": "a", "bytes": "abc"}}),
    Outcome(outputs={"f": {"$file": DIGEST, "bytes": "abc"}}),
    Outcome(outputs={"f": {"$file": DIGEST, "bytes": -1, "name": "a"}}),
    Outcome(outputs={"f": {"$file": DIGEST, "bytes": True, "name": "a"}}),
    Outcome(outputs={"f": {"$file": DIGEST, "bytes": 1, "name": ["a"]}}),
    Outcome(outputs={"f": {"$file": DIGEST, "bytes": 1, "name": "../a"}}),
    Outcome(outputs={"f": {"$file": 5}}),
    Outcome(outputs={"f": [{"$file": "../../../../etc/hostname", "bytes": 12, "name": "a"}]}),
    Outcome(outputs={"f": {"$spilled": "x", "bytes": 3}}),
    Outcome(outputs={"f": {"$spilled": DIGEST, "bytes": "many"}}),
    Outcome(outputs={"f": {"$spilled": 5}}),
    Outcome(outputs={"f": {"$too-large": {"a": 1}}}),
    Outcome(files={"out": FileRef(sha256="no digest", bytes=1, name="a")}),
    Outcome(files={"out": FileRef(sha256=DIGEST, bytes=-1, name="a")}),
    Outcome(files={"out": FileRef(sha256=DIGEST, bytes=1, name="/etc/hostname")}),
    Outcome(file_lists={"out": [FileRef(sha256=DIGEST, bytes=1, name="a/../../b")]}),
    Outcome(outputs={"f": ELSEWHERE.as_value()}),
]


GIVEN = FileRef(sha256="ef" * 32, bytes=7, name="given.txt")
INPUTS = {"file": Input(type="file", required=True)}


def two_jobs(**options: Any) -> Flow:
    """Two jobs side by side that have the same input."""
    inputs: dict[str, Any] = {"in": "${{ inputs.file }}"}
    jobs = [JobActivity(name=name, command="true", inputs=inputs, **options) for name in ("one", "other")]
    return Flow(
        name=FlowName("two"), body=Parallel(name="both", branches=tuple(jobs), on_fault="finish"), inputs=INPUTS
    )


async def start(domain: Domain, flow: Flow) -> str:
    await domain.deploy(flow)
    return (await domain.start(flow.name, {"file": GIVEN.as_value()}, who="me", cache="all")).id


async def ends(domain: Domain, case: str) -> dict[str, str]:
    return {item.item: item.state for item in await domain.items(case)}


async def fault_of(domain: Domain, case: str, item: str) -> Fault:
    fault = (await domain.item(case, item)).fault
    assert fault is not None
    return fault


@pytest.mark.parametrize("outcome", BAD, ids=lambda outcome: str(outcome.outputs or outcome.files or "list"))
async def test_an_outcome_with_a_reference_that_is_none_fails_its_own_job_only(
    server: Server, domain: Domain, pilot: HandPilot, outcome: Outcome
) -> None:
    first, case = server.runtime, await start(domain, two_jobs())
    await pilot.sync(want=2)
    answer = await pilot.sync(one=outcome, other=Outcome(outputs=1))
    assert len(answer.accepted) == 2, "each report has its verdict, or it would be repeated"
    assert server.present is first, "the services went on"
    assert await ends(domain, case) == {"one": "failed", "other": "completed"}
    fault = await fault_of(domain, case, "one")
    assert fault.name == "notData" and "cannot be kept" in fault.message


MADE = FileRef(sha256="12" * 32, bytes=3, name="out.txt")


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(outputs={"f": [GIVEN.as_value()]}),
        Outcome(outputs={"f": {**GIVEN.as_value(), "name": "another.txt"}}),
        Outcome(outputs={"f": MADE.as_value()}, files={"out": MADE}),
        Outcome(outputs={"f": MADE.as_value()}, file_lists={"out": [MADE]}),
        Outcome(outputs={"f": {"$spilled": DIGEST, "bytes": 100_000}}),
        Outcome(outputs={"f": {"$xml": "<a"}}),
    ],
    ids=lambda outcome: str(outcome.outputs),
)
async def test_a_job_may_hand_on_what_it_was_given_and_what_it_made(
    domain: Domain, pilot: HandPilot, outcome: Outcome
) -> None:
    case = await start(domain, two_jobs(files={"out": "out.txt"}))
    await pilot.sync(want=2)
    await pilot.sync(one=outcome, other=Outcome(outputs=1))
    assert await ends(domain, case) == {"one": "completed", "other": "completed"}
    assert (await domain.item(case, "one")).outputs == outcome.outputs


@pytest.mark.parametrize("change", [{"bytes": 8}, {"logical": "/store/other"}], ids=str)
async def test_a_given_file_cannot_be_passed_off_as_another(
    domain: Domain, pilot: HandPilot, change: dict[str, Value]
) -> None:
    case = await start(domain, two_jobs())
    await pilot.sync(want=2)
    await pilot.sync(one=Outcome(outputs={**GIVEN.as_value(), **change}), other=Outcome())
    assert "neither was given nor made" in (await fault_of(domain, case, "one")).message


async def test_a_file_among_its_arguments_was_given_to_a_function(domain: Domain, pilot: HandPilot) -> None:
    call = JobActivity(name="one", function=FunctionRef(module="m", name="f"), args=("${{ {'deep': [inputs.file]} }}",))
    case = await start(domain, Flow(name=FlowName("call"), body=call, inputs=INPUTS))
    await pilot.sync(want=1)
    await pilot.sync(one=Outcome(outputs=GIVEN.as_value()))
    assert await ends(domain, case) == {"one": "completed"}


async def test_what_a_spilled_argument_refers_to_was_checked_by_the_pilot(domain: Domain, pilot: HandPilot) -> None:
    function = FunctionRef(module="m", name="f")
    steps = (
        JobActivity(name="one", function=function),
        JobActivity(name="two", function=function, args=("${{ jobs.one.outputs }}",)),
    )
    case = await start(domain, Flow(name=FlowName("calls"), body=Sequence(name="s", body=steps), inputs=INPUTS))
    await pilot.sync(want=1)
    await pilot.sync(want=1, wait_ms=1000, one=Outcome(outputs={"$spilled": DIGEST, "bytes": 100_000}))
    await pilot.sync(two=Outcome(outputs=MADE.as_value()))
    assert await ends(domain, case) == {"one": "completed", "two": "completed"}


async def served_again(server: Server, before: object) -> None:
    while server.present is None or server.present is before:
        await asyncio.sleep(0.02)


async def test_an_outcome_that_raises_an_error_of_ours_fails_its_job_and_is_told(
    server: Server, domain: Domain, pilot: HandPilot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_index: ResultIndex, job: Job, _flow: str) -> None:
        if job.spec.item == "one":
            raise ZeroDivisionError("a bug")

    monkeypatch.setattr(ResultIndex, "record", broken)
    case = await start(domain, two_jobs())
    await pilot.sync(want=2)
    said = Outcome(outputs=1, exit_code=1 << 60, log_tail="x" * 5_000_000)
    for _ in range(ERRORS_MAX):
        before = server.runtime
        with pytest.raises(ZeroDivisionError):
            await pilot.sync(one=said, other=Outcome(outputs=1))
        await served_again(server, before)
    before = server.runtime
    await pilot.sync(one=said, other=Outcome(outputs=1))
    assert server.present is before and not pilot.held, "the repeated report has its verdict"
    assert await ends(domain, case) == {"one": "failed", "other": "completed"}
    fault = await fault_of(domain, case, "one")
    assert fault.name == "internalError" and "ZeroDivisionError('a bug')" in fault.message
    assert len(fault.log_tail) == LOG_CHARS_MAX
    assert any("internal error" in notice.message for notice in await domain.notices())


def test_what_is_told_of_a_running_job_is_bounded() -> None:
    attempt, pilot = GrantedAttempt(1), PilotRecord(PilotId("p"))
    usual = Measurements(ran_ms=5, peak_bytes=7)
    attempt.hear(AttemptStatus(JobId("j"), 1, "running", usual, "", {"done": 0.5}))
    assert (attempt.measures, attempt.values) == (usual, {"done": 0.5})
    much = Measurements(ran_ms=-1, peak_bytes=1 << 60, damaged=("x" * 5_000_000,) * 200)
    attempt.hear(AttemptStatus(JobId("j"), 1, "running", much, "", {"said": "x" * 5_000_000}))
    assert attempt.measures is not None and attempt.values == {}
    assert (attempt.measures.ran_ms, attempt.measures.peak_bytes) == (0, NUMBER_MAX)
    assert len(msgspec.json.encode(attempt.measures)) < 500_000
    pilot.hear_log(JobId("j"), "x" * 5_000_000)
    assert len(pilot.log_tails[JobId("j")]) == LOG_CHARS_MAX


async def test_a_case_whose_orders_raise_an_error_of_ours_fails_and_the_server_starts(
    server: Server,
    domain: Domain,
    pilot: HandPilot,
    monkeypatch: pytest.MonkeyPatch,
    restart: Callable[[Server], Awaitable[None]],
) -> None:
    bad, well = [
        await start(domain, Flow(name=FlowName(name), body=JobActivity(name=name, command="true"), inputs=INPUTS))
        for name in ("bad", "well")
    ]
    sound = ResultCache.look_up

    async def broken(cache: ResultCache, live: LiveCase, serial: int, spec: JobSpec, *, reissued: bool) -> Lookup:
        if spec.item == "bad":
            raise ZeroDivisionError("a bug")
        return await sound(cache, live, serial, spec, reissued=reissued)

    monkeypatch.setattr(ResultCache, "look_up", broken)
    async with asyncio.timeout(PATIENCE_S):
        await restart(server)
    await pilot.sync(want=2)
    await pilot.sync(well=Outcome(outputs=1))
    assert (await domain.case(well)).status == "completed"
    fault = (await domain.case(bad)).fault
    assert fault is not None and "ZeroDivisionError('a bug')" in fault.message
