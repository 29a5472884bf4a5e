"""The laws of work between two domains, one by one: whose claim counts, and under which fence; and what happens where
one side speaks another version."""

import asyncio
import logging
from pathlib import Path

import pytest
from msgspec.structs import replace

from mendflow.core.model.domains import PROTOCOL, DomainAnswer, DomainRequest, WorkStatus
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId, ItemId, JobId
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.services.base.contracts import NewJob
from mendflow.services.domains.hosted_cases import STOPPED_THERE
from tests.services.domains.by_hand import HandOrigin, sent_job
from tests.services.domains.kit import AWAY, DirectLine, Domains, soon

JOB = NewJob(JobId("c-1/1"), CaseId("c-1"), JobSpec(item=ItemId("align"), command="true"))


async def test_the_host_stops_what_its_origin_no_longer_claims(tmp_path: Path) -> None:  # FM-4
    async with Domains(tmp_path) as domains:
        away, origin = domains.away, HandOrigin()
        hosted = away.runtime.domains.hosted
        await origin.say(hosted, sent_job("kept"), sent_job("dropped"))
        works = list(away.runtime.domains.runs.register.by_case.values())
        dropped = next(work.case for work in works if work.document.key == "dropped")
        del origin.claims["dropped"]
        await origin.say(hosted)
        await soon(lambda: dropped not in away.runtime.manager.live, "it is stopped")
        assert (await away.domain.case(dropped)).status == "cancelled"
        assert [live.document.status for live in away.runtime.manager.live.values()] == ["running"]
        assert hosted.held("home") == 1


async def test_an_older_request_that_comes_late_takes_no_claim_back(tmp_path: Path) -> None:  # FM-4
    async with Domains(tmp_path) as domains:
        origin, hosted = HandOrigin(), domains.away.runtime.domains.hosted
        await origin.say(hosted, sent_job())
        stamp, meter = origin.stamps[id(hosted)]
        late = DomainRequest(sender=origin.sender, serial=1, granted_stamp=stamp, granted_meter=meter, lease_ms=120_000)
        await hosted.exchange(origin.origin, origin.rights, late)  # it claims nothing: it was made before
        assert len(domains.away.runtime.manager.live) == 1 and hosted.held("home") == 1


async def test_a_late_result_under_an_old_fence_is_refused_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:  # FM-4
    stopped = Fault(name=STOPPED_THERE, category=Category.SCHEDULER_DOWN, message="it was stopped there")
    late = asyncio.Event()

    async def exchange(line: DirectLine, request: DomainRequest) -> DomainAnswer:
        """A host that has stopped the first one, and tells of its result all the same when the second has come."""
        line.requests.append(request)
        works = []
        for each in request.claims:
            first = WorkStatus(key=each.key, fence=1, state="ended", outcome=Outcome(fault=stopped))
            if each.fence == 1:
                works.append(first)
            elif not late.is_set():
                works.append(replace(first, outcome=Outcome(outputs="of the first")))
            else:
                works.append(replace(first, fence=each.fence, outcome=Outcome(outputs="of the second")))
        await asyncio.sleep(0.001)
        return DomainAnswer(stamp=len(line.requests), meter="m", serial=request.serial, works=tuple(works))

    monkeypatch.setattr(DirectLine, "exchange", exchange)
    async with Domains(tmp_path) as domains:
        far = domains.home.runtime.domains.far
        with caplog.at_level(logging.WARNING, "mendflow.domains"):
            await domains.home.runtime.domains.peer(AWAY).submit([JOB])
            await soon(lambda: "under fence 1, which is over (the latest is 2)" in caplog.text, "the refusal is told")
        assert JOB.id in far.jobs
        late.set()
        await soon(lambda: JOB.id not in far.jobs, "the second ends")
        found = await far.read(JOB.id)
        assert found is not None and found.outcome == Outcome(outputs="of the second")
        acknowledged = [ref for each in domains.line.requests for ref in each.acknowledged]
        assert {(ref.key, ref.fence) for ref in acknowledged} <= {(JOB.id, 2)}


async def test_what_is_sent_under_an_old_fence_is_refused_and_told(tmp_path: Path) -> None:  # FM-4
    async with Domains(tmp_path) as domains:
        origin, hosted = HandOrigin(), domains.away.runtime.domains.hosted
        await origin.say(hosted, sent_job(fence=3))
        other = HandOrigin(sender="an earlier life")
        said = await other.say(hosted, sent_job(fence=2))
        assert (said["k-1"].state, said["k-1"].reason) == ("refused", "it was sent anew since, under fence 3")
        assert len(domains.away.runtime.manager.live) == 1


async def test_work_waits_while_its_host_speaks_an_older_version_and_is_done_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # FM-4
    real, is_old = DirectLine.exchange, True

    async def exchange(line: DirectLine, request: DomainRequest) -> DomainAnswer:
        return await real(line, replace(request, protocol=PROTOCOL + 1) if is_old else request)

    monkeypatch.setattr(DirectLine, "exchange", exchange)
    async with Domains(tmp_path) as domains:
        far, sent = domains.home.runtime.domains.far, domains.home.runtime.domains.sent
        hosted = domains.away.runtime.domains.hosted
        with pytest.raises(InvalidRequest, match="the newer side has to speak the older one's"):
            await domains.line.exchange(DomainRequest(sender="s", serial=1))
        await domains.home.runtime.domains.peer(AWAY).submit([JOB])
        await soon(lambda: sent.silence(AWAY) is not None, "it is not answered")
        assert JOB.id in far.jobs and hosted.held("home") == 0
        is_old = False
        assert await domains.away.take() == ["align"]
        await domains.away.report(align=Outcome(outputs=1))
        await soon(lambda: JOB.id not in far.jobs, "the outcome")
