"""What goes wrong while work is sent, or its outcome is fetched, hurts that piece of work alone, and only as long as it
lasts."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from mendflow.core.model.errors import Unreachable
from mendflow.core.model.ids import CaseId, ItemId, JobId
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.services.base.contracts import NewJob
from mendflow.services.domains import peer_link
from mendflow.services.domains.peer_scheduler import PeerScheduler
from mendflow.services.domains.work_documents import HOSTED_KIND
from mendflow.stores.contract import Put, Write, WriteConflict, WriteDone
from tests.services.domains.by_hand import HandOrigin, sent_job
from tests.services.domains.kit import AWAY, DirectLine, Domains, soon


def job(number: int = 1, **more: object) -> NewJob:
    spec = JobSpec(item=ItemId(f"align[{number}]"), command="true", owner="ann", **more)  # type: ignore[arg-type]  # own fields
    return NewJob(JobId(f"c-1/{number}"), CaseId("c-1"), spec)


def peer(domains: Domains) -> PeerScheduler:
    return domains.home.runtime.domains.peer(AWAY)


async def _bytes() -> AsyncIterator[bytes]:
    yield b"2\n"


async def test_an_outcome_whose_files_could_not_be_fetched_is_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # FM-4, DM-1
    asked: list[int] = []
    real = DirectLine.get_file

    async def get_file(self: DirectLine, sha256: str, offset: int = 0) -> AsyncIterator[bytes]:
        asked.append(offset)
        if len(asked) == 1:  # the next request waits at the host when the fetch fails
            seen = self.requests[-1].serial
            await soon(lambda: self.requests[-1].serial > seen and self.requests[-1].hold_ms > 0, "a held request")
        if len(asked) <= 5:  # more often than one try of a fetch asks
            raise Unreachable("the line is cut")
        async for chunk in real(self, sha256, offset):
            yield chunk

    monkeypatch.setattr(DirectLine, "get_file", get_file)
    async with Domains(tmp_path) as domains:
        await peer(domains).submit([job()])
        assert await domains.away.take() == ["align"]
        kept = await domains.away.server.file_store.keep("made.txt", _bytes())
        await domains.away.report(align=Outcome(files={"made": kept}))
        await soon(lambda: job().id not in domains.home.runtime.domains.far.jobs, "the outcome")
        status = await peer(domains).status(job().id)
        assert status.outcome == Outcome(files={"made": kept})
        assert await domains.home.server.file_store.size(kept.sha256) == 2
        await soon(lambda: domains.away.runtime.domains.hosted.held("home") == 0, "the acknowledgement")


async def test_work_whose_owner_fails_over_its_end_is_claimed_no_longer(tmp_path: Path) -> None:
    # FM-4
    async def broken(_: JobId, __: Outcome) -> None:
        raise ValueError("an internal error")

    async with Domains(tmp_path) as domains:
        await peer(domains).submit([job()])
        await peer(domains).subscribe(job().id, broken)
        await domains.away.take()
        await domains.away.report(align=Outcome())
        await soon(lambda: domains.away.runtime.domains.hosted.held("home") == 0, "the acknowledgement")
        await soon(lambda: not domains.line.requests[-1].claims, "nothing is claimed")


async def test_requests_are_bounded_by_all_that_is_in_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # FM-4
    monkeypatch.setattr(peer_link, "SENT_BYTES_MAX", 10_000)
    async with Domains(tmp_path) as domains:
        await peer(domains).submit([job(number, env={"X": "x" * 4_000}) for number in range(1, 7)])
        await soon(lambda: domains.away.runtime.domains.hosted.held("home") == 6, "all of it is taken")
        sizes = [sum(len(msgspec.json.encode(each)) for each in request.sent) for request in domains.line.requests]
        assert max(sizes) <= 10_000


async def test_a_piece_that_is_too_large_fails_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # FM-4
    monkeypatch.setattr(peer_link, "PIECE_BYTES_MAX", 50_000)
    async with Domains(tmp_path) as domains:
        await peer(domains).submit([job(1), job(2, env={"X": "x" * 60_000}), job(3)])
        await soon(lambda: job(2).id not in domains.home.runtime.domains.far.jobs, "the large one has failed")
        outcome = (await peer(domains).status(job(2).id)).outcome
        assert outcome is not None and outcome.fault is not None
        assert outcome.fault.name == "tooLargeToSend" and "give large values as files" in outcome.fault.message
        await soon(lambda: domains.away.runtime.domains.hosted.held("home") == 2, "the others are there")
        assert {work.key for request in domains.line.requests for work in request.sent} == {job(1).id, job(3).id}


async def test_the_latency_is_measured_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # FM-8
    monkeypatch.setattr(peer_link, "LATENCY_MS", 50)
    monkeypatch.setattr(peer_link, "HOLD_MS", 20)
    async with Domains(tmp_path) as domains:
        requests = domains.line.requests
        await soon(lambda: sum(not each.hold_ms for each in requests) >= 4, "requests that are answered at once")
        assert sum(each.hold_ms > 0 for each in requests) >= 3


async def test_work_that_is_sent_while_the_host_is_silent_has_its_own_lease_to_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # FM-4, FM-8
    async with Domains(tmp_path) as domains:
        sent, later_ms = domains.home.runtime.domains.sent, 0
        real = sent.meter
        monkeypatch.setattr(sent, "meter", lambda: real() + later_ms)
        domains.line.cut_there = domains.line.cut_back = True
        await peer(domains).submit([job(1)])
        await soon(lambda: sent.silence(AWAY) is not None, "the silence")
        later_ms += 600_000
        await soon(lambda: sent.open_work(job(1).id) is None, "the first is lost")
        await peer(domains).submit([job(2)])
        seen = len(domains.line.requests)
        await soon(lambda: len(domains.line.requests) > seen + 2, "the host was asked in vain")
        assert sent.open_work(job(2).id) is not None
        later_ms += 600_000
        await soon(lambda: sent.open_work(job(2).id) is None, "the second is lost")


async def test_all_that_an_origin_claims_in_a_new_life_is_written_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # FM-4: a host that writes one after the other answers too late, and its leases end
    async with Domains(tmp_path) as domains:
        hosted, before, after = domains.away.runtime.domains.hosted, HandOrigin(), HandOrigin()
        await before.say(hosted, *(sent_job(f"k-{number}") for number in range(40)))
        after.claims = before.claims
        written: list[int] = []
        store = domains.away.server.store
        write = store.write

        async def counted(writes: Sequence[Write]) -> list[WriteDone | WriteConflict]:
            written.append(sum(isinstance(each, Put) and each.kind == HOSTED_KIND for each in writes))
            return await write(writes)

        monkeypatch.setattr(store, "write", counted)
        await after.say(hosted)
        works = domains.away.runtime.domains.runs.register.works.values()
        assert {work.document.sender for work in works} == {after.sender}
        assert [each for each in written if each] == [40]


async def test_a_write_whose_answer_comes_after_that_of_a_later_one_takes_nothing_back(tmp_path: Path) -> None:
    # FM-4: what was stopped stays stopped, whoever else has claimed it at the same time
    async with Domains(tmp_path) as domains:
        origin, register = HandOrigin(), domains.away.runtime.domains.runs.register
        await origin.say(domains.away.runtime.domains.hosted, sent_job())
        [work] = register.works.values()
        older, version = replace(work.document, sender="another"), work.version
        await register.change(work, sender="another", stopped="it was silent")
        register.know(older, version)
        assert work.document.stopped == "it was silent"
