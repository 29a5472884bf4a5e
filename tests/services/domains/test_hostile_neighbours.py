"""What a modified neighbour says harms nobody but itself: no result, no file and no time of the other side is its."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from mendflow.core.model.domains import (
    LEASE_MS_MAX,
    DomainAnswer,
    DomainRequest,
    DomainRights,
    SentWork,
    WorkClaim,
    WorkStatus,
)
from mendflow.core.model.errors import InvalidRequest, RequestError
from mendflow.core.model.flow import Call, JobActivity, Sequence
from mendflow.core.model.jobs import FunctionRef, Outcome
from mendflow.core.model.values import FileRef
from tests.services.domains.by_hand import HandOrigin, sent_flow, sent_job
from tests.services.domains.kit import DirectLine, Domains, soon
from tests.services.recovery.kit import World, flow

COUNT = JobActivity(name="count", command="wc", cache=True)


async def test_results_of_hosted_work_are_neither_put_into_the_cache_nor_taken_from_it(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        away = domains.away
        hosted = away.runtime.domains.hosted
        leaf = flow(COUNT, "leaf")
        sent = flow(Sequence(name="s", body=(COUNT, Call(name="c", flow="leaf"))), "sent", calls=(leaf,))
        origin = HandOrigin()
        await origin.say(hosted, sent_flow(sent))
        for _ in range(2):  # its own job, and that of the flow which it calls
            assert await away.take() == ["count"]
            await away.report(count=Outcome(outputs={"n": 666}))
        await away.domain.deploy(leaf)
        own = (await away.domain.start("leaf", {}, who="me", cache="all")).id
        assert await away.take() == ["count"]
        await away.report(count=Outcome(outputs={"n": 1}))
        await away.until_status(own, "completed")

        again = (await away.domain.start("leaf", {}, who="me", cache="all")).id
        await away.until_status(again, "completed")  # the cache works for our own
        await origin.say(hosted, sent_flow(leaf, "k-2"))
        assert await away.take() == ["count"]


async def one(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def kept(world: World, content: bytes) -> FileRef:
    return await world.server.file_store.keep("f", one(content))


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("place", ["inputs", "args", "code", "bundle", "flow"])
async def test_a_file_of_the_host_is_missing_until_the_origin_has_brought_it(
    tmp_path: Path, listed: bool, place: str
) -> None:
    async with Domains(tmp_path) as domains:
        hosted = domains.away.runtime.domains.hosted
        ref = await kept(domains.away, b"secret")
        files = [ref] if listed else []
        match place:
            case "inputs":
                work = sent_job(files=files, inputs={"f": ref})
            case "args":
                work = sent_job(files=files, args=[ref.as_value()])
            case "flow":
                job = JobActivity(name="j", command="true", inputs={"f": ref.as_value()})
                work = replace(sent_flow(flow(job, "sent")), files=tuple(files))
            case _:
                function = replace(FunctionRef(module="m", name="f"), **{place: ref})
                work = sent_job(files=files, function=function)
        origin, other = HandOrigin(), HandOrigin(origin="other")
        for each in (origin, other):
            said = await each.say(hosted, work)
            assert (said["k-1"].state, said["k-1"].missing) == ("missing-files", (ref.sha256,))
            assert hosted.wants_file(each.origin, ref.sha256) and not hosted.may_read(each.origin, ref.sha256)
        assert not domains.away.runtime.manager.live
        hosted.file_delivered("home", ref.sha256)
        await origin.say(hosted, work)
        assert (await other.say(hosted, work))["k-1"].state == "missing-files"
        assert len(domains.away.runtime.manager.live) == 1


async def test_a_wanted_file_cannot_be_read_and_counts_only_if_its_content_came(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        ref = await kept(domains.away, b"secret")
        work = sent_job(files=[ref], inputs={"f": ref})
        origin, hosted = HandOrigin(), domains.away.runtime.domains.hosted
        await origin.say(hosted, work)
        with pytest.raises(RequestError):
            await domains.line.put_file(ref.sha256, one(b"a guess"))
        assert await domains.line.missing_from(ref.sha256) == 0
        assert (await origin.say(hosted, work))["k-1"].state == "missing-files"
        await domains.line.put_file(ref.sha256, one(b"secret"))
        await origin.say(hosted, work)
        assert len(domains.away.runtime.manager.live) == 1


async def test_a_host_gets_no_file_that_the_work_does_not_refer_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Domains(tmp_path) as domains:
        secret = await kept(domains.home, b"secret")

        async def exchange(self: DirectLine, request: DomainRequest) -> DomainAnswer:
            works = [
                WorkStatus(key=each.key, fence=each.fence, state="missing-files", missing=(secret.sha256,))
                for each in request.sent
            ]
            return DomainAnswer(stamp=7, meter="m", serial=request.serial, works=tuple(works))

        asked = []

        async def put_file(self: DirectLine, sha256: str, chunks: AsyncIterator[bytes], offset: int = 0) -> None:
            asked.append(sha256)

        monkeypatch.setattr(DirectLine, "exchange", exchange)
        monkeypatch.setattr(DirectLine, "put_file", put_file)
        case = await domains.home.start(flow(JobActivity(name="j", command="true", domain="away")))

        async def told() -> bool:
            decided = await domains.home.decisions(case)
            return bool(decided) and "does not refer to the file" in str(decided[0])

        await domains.home.until(told, "the job is lost with that reason")
        assert not asked


async def test_neither_side_believes_in_a_lease_without_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Domains(tmp_path) as domains:
        hosted = domains.away.runtime.domains.hosted
        origin = HandOrigin()
        await origin.say(hosted, sent_job(), lease_ms=10**30)
        await origin.say(hosted, lease_ms=10**30)
        assert hosted.leases.until("home", origin.sender) <= hosted.leases.now() + LEASE_MS_MAX

        async def exchange(self: DirectLine, request: DomainRequest) -> DomainAnswer:
            return DomainAnswer(stamp=7, meter="m", serial=request.serial, lease_min_ms=10**15)

        monkeypatch.setattr(DirectLine, "exchange", exchange)
        await domains.home.start(flow(JobActivity(name="j", command="true", domain="away")))
        sent = domains.home.runtime.domains.sent
        await soon(lambda: any(each.lease_ms == LEASE_MS_MAX for each in sent._works.values()), "a longer lease")


async def test_a_refusal_does_not_name_the_flows_of_the_host(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        await domains.away.domain.deploy(flow(JobActivity(name="j", command="true"), "secret"))
        work = SentWork(key="k-1", fence=1, name="nothing")
        said = await HandOrigin(DomainRights(flows=("*",))).say(domains.away.runtime.domains.hosted, work)
        assert said["k-1"].state == "refused" and "secret" not in said["k-1"].reason


async def test_a_request_is_bounded_in_what_it_names(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        hosted = domains.away.runtime.domains.hosted
        works = tuple(sent_job(f"k-{number}") for number in range(1_001))
        for request, field in (
            (DomainRequest(sender="s" * 201, serial=1), "sender"),
            (DomainRequest(sender="s", serial=1, sent=works), "sent"),
            (DomainRequest(sender="s", serial=1, sent=(sent_job("k" * 256),)), "key"),
            (DomainRequest(sender="s", serial=1, claims=(WorkClaim("a\nb", 1),)), "key"),
            (DomainRequest(sender="s", serial=1, claims=(WorkClaim("a", 1, "run", "r" * 10_001),)), "reason"),
            (DomainRequest(sender="s", serial=1, sent=(sent_job(fence=-5),)), "fence"),
            (DomainRequest(sender="s", serial=1, sent=(sent_job(fence=1 << 62),)), "fence"),
            (DomainRequest(sender="s", serial=-1), "serial"),
            (DomainRequest(sender="s", serial=1, heard=1 << 62), "heard"),
            (DomainRequest(sender="s", serial=1, lease_ms=-1), "lease_ms"),
            (DomainRequest(sender="s", serial=1, granted_meter="m" * 201), "granted_meter"),
        ):
            with pytest.raises(InvalidRequest, match=field):
                await hosted.exchange("home", DomainRights(), request)
        many = [FileRef(sha256=f"{number:064x}", bytes=1, name="f") for number in range(10_001)]
        said = await HandOrigin().say(hosted, sent_job(files=many))
        assert said["k-1"].state == "refused" and "10001 files" in said["k-1"].reason


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("owner", "o" * 100_000),
        ("owner", "a\nb"),
        ("owner", "a\x1b[31m"),
        ("name", "n" * 1_001),
        ("way", ("home",) * 10_000),
        ("way", ("a\nb",)),
    ],
)
async def test_work_with_names_that_are_none_is_refused(tmp_path: Path, field: str, value: object) -> None:
    async with Domains(tmp_path) as domains:
        work = replace(sent_job(), **{field: value})
        said = await HandOrigin().say(domains.away.runtime.domains.hosted, work)
        assert said["k-1"].state == "refused" and said["k-1"].reason.startswith(f"{field}: ")
        assert not domains.away.runtime.manager.live
