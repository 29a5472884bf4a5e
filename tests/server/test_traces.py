"""The story of a case as a trace, sent to a real collector."""

import asyncio
import socket
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from mendflow.client import Client
from mendflow.core.model import flow as model
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId, FlowName, JobId
from mendflow.core.model.sync import Assignment, AttemptReport
from mendflow.server.otlp import OtlpExporter, headers_of, traces_url
from mendflow.services.observe.tracing.ids import traceparent
from mendflow.services.observe.tracing.spans import Span as PlainSpan
from mendflow.wiring import ServerOptions, running_server
from tests.patience import PATIENCE_S
from tests.server.by_hand import ByHand
from tests.server.collector import Collector, collecting, said

PASSING = Fault(name="notThere", category=Category.DATA, message="503 from the archive", exit_code=7)


def one_job() -> Flow:
    return Flow(name=FlowName("one"), body=model.JobActivity(name="work", command="true"))


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.02)


async def given(pilot: ByHand) -> Assignment:
    [job] = await pilot.jobs(1)
    return job


async def ended(pilot: ByHand, job: Assignment, fault: Fault | None = None) -> None:
    answer = await pilot.sync(reports=(AttemptReport(job.job, job.fence, pilot.outcome(fault)),))
    assert [ref.job for ref in answer.accepted] == [job.job]


async def test_a_trace_goes_from_the_case_to_the_parts_of_an_attempt(tmp_path: Path) -> None:  # JS-8
    async with collecting() as collector:
        async with (
            running_server(ServerOptions(data=tmp_path, otlp=collector.url)) as server,
            Client(server.url) as client,
        ):
            await client.deploy(one_job())
            case = await client.start("one")
            pilot = ByHand(client, server.server.clock.now())
            job = await given(pilot)
            await ended(pilot, job)
            await until(lambda: collector.named("case one"))
            spans = server.server.counts.spans  # counted when the collector has answered
            await until(lambda: spans["sent"] == len(collector.spans) == 7)
        [top], [item], [attempt] = (collector.named(name) for name in ("case one", "job work", "attempt 1 of work"))
        assert len(collector.spans) == 7
    assert not top.parent_span_id
    assert (item.parent_span_id, attempt.parent_span_id) == (top.span_id, item.span_id)
    assert len({span.trace_id for span in collector.spans}) == 1
    parts = sorted(_below(collector, attempt), key=lambda span: span.start_time_unix_nano)
    assert [part.name for part in parts] == ["queue", "stage-in", "run", "stage-out"]
    for before, after in pairwise(parts):
        assert before.end_time_unix_nano == after.start_time_unix_nano
    assert parts[0].start_time_unix_nano == attempt.start_time_unix_nano
    assert parts[-1].end_time_unix_nano == attempt.end_time_unix_nano
    told = said(attempt)
    assert told["mendflow.case"] == case.id
    assert (told["mendflow.flow"], told["mendflow.item"], told["mendflow.site"]) == ("one", "work", "north")
    assert (told["mendflow.pilot"], told["mendflow.host"], told["mendflow.attempt"]) == ("p-1", "here", 1)
    assert job.spec.env["TRACEPARENT"] == f"00-{attempt.trace_id.hex()}-{attempt.span_id.hex()}-01"
    assert collector.runtime == {"mendflow"}


def _below(collector: Collector, parent: Span) -> list[Span]:
    return [span for span in collector.spans if span.parent_span_id == parent.span_id]


async def test_a_repair_is_linked_to_the_attempt_that_failed(tmp_path: Path) -> None:
    async with collecting() as collector:
        options = ServerOptions(data=tmp_path, otlp=collector.url, levels_ms=(1,))
        async with running_server(options) as server, Client(server.url) as client:
            await client.deploy(one_job())
            await client.start("one")
            pilot = ByHand(client, server.server.clock.now())
            await ended(pilot, await given(pilot), PASSING)
            await ended(pilot, await given(pilot))
            await until(lambda: collector.named("case one") and collector.named("repair"))
    failed, good = sorted(collector.named("attempt"), key=lambda span: span.start_time_unix_nano)
    [repair], [item] = collector.named("repair"), collector.named("job work")
    assert [link.span_id for link in repair.links] == [failed.span_id]
    assert failed.status.code == Status.STATUS_CODE_ERROR
    assert (said(failed)["mendflow.exit_code"], said(failed)["mendflow.fault.category"]) == (7, PASSING.category.value)
    assert good.status.code == Status.STATUS_CODE_UNSET
    assert {failed.parent_span_id, good.parent_span_id, repair.parent_span_id} == {item.span_id}
    assert said(repair)["mendflow.outcome"] == "recovered"
    known = {span.span_id for span in collector.spans}
    assert all(not span.parent_span_id or span.parent_span_id in known for span in collector.spans)


async def test_a_trace_goes_on_after_a_restart(tmp_path: Path) -> None:
    async with collecting() as collector:
        options = ServerOptions(data=tmp_path, otlp=collector.url)
        two = model.Sequence(
            name="both",
            body=(model.JobActivity(name="first", command="true"), model.JobActivity(name="second", command="true")),
        )
        async with running_server(options) as server, Client(server.url) as client:
            await client.deploy(Flow(name=FlowName("two"), body=two))
            await client.start("two")
            pilot = ByHand(client, server.server.clock.now())
            await ended(pilot, await given(pilot))
            second = await given(pilot)
        assert [span.name for span in collector.named("job")] == ["job first"]
        async with running_server(options) as server, Client(server.url) as client:
            pilot.client = client
            await ended(pilot, second)
            await until(lambda: collector.named("case two"))
    [top] = collector.named("case two")
    assert len({span.trace_id for span in collector.spans}) == 1
    assert {span.parent_span_id for span in collector.named("job")} == {top.span_id}
    [item], [attempt] = collector.named("job second"), collector.named("attempt 1 of second")
    assert attempt.parent_span_id == item.span_id
    assert item.start_time_unix_nano <= attempt.start_time_unix_nano
    assert second.spec.env["TRACEPARENT"].split("-")[2] == attempt.span_id.hex()


async def test_without_a_collector_jobs_are_told_of_no_trace(tmp_path: Path) -> None:
    async with running_server(ServerOptions(data=tmp_path)) as server, Client(server.url) as client:
        await client.deploy(one_job())
        await client.start("one")
        assert "TRACEPARENT" not in (await given(ByHand(client, server.server.clock.now()))).spec.env


def plain(number: int) -> PlainSpan:
    return PlainSpan(trace=b"t" * 16, id=number.to_bytes(8), name=f"span {number}", start=1, end=2)


async def test_a_collector_that_is_away_costs_nobody_more_than_spans() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # where nobody listens
        counts = {"sent": 0, "dropped": 0}
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        exporter = OtlpExporter(url, attributes={}, counts=counts, queue_max=10)
        exporter.start()
        for number in range(25):
            exporter.offer(plain(number))
        assert counts == {"sent": 0, "dropped": 15}
        await exporter.stop()
        assert counts == {"sent": 0, "dropped": 25}


async def test_a_collector_that_is_busy_is_asked_again_and_one_that_refuses_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=a%20b")
    async with collecting() as collector:
        counts = {"sent": 0, "dropped": 0}
        exporter = OtlpExporter(collector.url, attributes={"service.name": "test"}, counts=counts)
        exporter.start()
        collector.statuses = [503, 429]
        exporter.offer(plain(1))
        await until(lambda: counts["sent"] == 1)
        assert [span.name for span in collector.spans] == ["span 1"]
        assert collector.headers[0]["x-team"] == "a b"
        collector.statuses = [400]
        exporter.offer(plain(2))
        await until(lambda: counts["dropped"] == 1)
        await exporter.stop()
        assert (counts["sent"], len(collector.spans)) == (1, 1)


def test_the_address_is_that_of_the_collector_or_of_its_traces() -> None:
    assert traces_url("http://c:4318") == traces_url("http://c:4318/") == "http://c:4318/v1/traces"
    assert traces_url("https://c/in/v1/traces") == "https://c/in/v1/traces"
    assert headers_of("") == {}
    with pytest.raises(InvalidRequest, match="no address"):
        traces_url("c:4318")


def test_the_same_names_give_the_same_ids_wherever_they_are_made() -> None:
    told = traceparent(CaseId("night-1.2"), JobId("night-1.2/3"), 4)
    assert told == traceparent(CaseId("night-1.2"), JobId("night-1.2/3"), 4)
    assert told.split("-")[1] == traceparent(CaseId("night-1"), JobId("night-1/9"), 1).split("-")[1]  # one tree
    assert told != traceparent(CaseId("night-1.2"), JobId("night-1.2/3"), 5)
