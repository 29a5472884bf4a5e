"""A pilot among several servers: what an answer means for its lease, and where it goes when its server is away."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import cast

import msgspec
import pytest

from mendflow.core.model.ids import ItemId, JobId
from mendflow.core.model.jobs import JobSpec
from mendflow.core.model.sync import Assignment, AttemptRef, Capacity, SyncAnswer, SyncRequest, servers_mark
from mendflow.pilot.agent.agent import Agent
from mendflow.pilot.agent.attempts import Attempts
from mendflow.pilot.agent.http import ExchangeClient, ServerAway
from mendflow.pilot.agent.live_logs import LiveLogs
from mendflow.pilot.agent.server_link import ServerLink
from mendflow.pilot.agent.servers import ServerAddresses
from mendflow.pilot.files.work_folder import WorkFolder
from mendflow.pilot.slot.lease import LeaseClock, margin_ms
from tests.pilot.conftest import Pilot, Server
from tests.pilot.test_limits import pids_in
from tests.pilot.test_survival import waiting_command

CAPACITY = Capacity(slots=1, cpus=1.0, memory_bytes=1 << 30, disk_bytes=1 << 30)
LEASE_MS = 6_000
JOB = Assignment(JobId("c/1"), 1, JobSpec(item=ItemId("a"), command="true"))


class Idle:
    """What a link sees of an agent that has nothing to do."""

    def __init__(self, folder: Path) -> None:
        self.attempts = Attempts(CAPACITY)
        self.lease = LeaseClock(folder / "lease")
        self.changed = asyncio.Event()
        self.has_new_state = self.has_live_news = False
        self.live_logs = LiveLogs(WorkFolder(folder), self.attempts, self.changed.set)
        self.obeyed: list[SyncAnswer] = []
        self.paused_by = ""

    def jobs_wanted(self, exchange_ms: float) -> int:
        return 1

    def apply_answer(self, answer: SyncAnswer) -> None:
        self.obeyed.append(answer)

    def apply_late_answer(self, answer: SyncAnswer) -> None: ...


class Wire:
    """Requests that wait until the test answers them."""

    def __init__(self) -> None:
        self.sent: list[tuple[SyncRequest, asyncio.Future[bytes]]] = []

    async def post(self, body: bytes, timeout_s: float) -> bytes:
        answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.sent.append((msgspec.msgpack.decode(body, type=SyncRequest), answered))
        return await answered

    def close(self) -> None: ...


class Talk:
    """A link, its clock and its server in the test's hands."""

    def __init__(self, folder: Path, others: ServerAddresses | None = None) -> None:
        self.now = 100_000
        self.agent, self.wire = Idle(folder), Wire()
        self.others = others
        self.link = ServerLink(
            cast(Agent, self.agent),
            cast(ExchangeClient, self.wire),
            pilot="p",
            site="",
            capacity=CAPACITY,
            first_serial=0,
            life_left_ms=lambda: 0,
            others=others,
            boot_ms=lambda: self.now,
        )

    async def speak(self) -> int:
        """Send a request; its place among those sent."""
        self.link._send_request(leaving=False)
        await asyncio.sleep(0)
        return len(self.wire.sent) - 1

    async def answer(self, place: int, **said: object) -> None:
        request, answered = self.wire.sent[place]
        answer = SyncAnswer(serial=request.serial, lease_ms=LEASE_MS, **said)  # type: ignore[arg-type]  # as given
        answered.set_result(msgspec.msgpack.encode(answer))
        for _ in range(3):
            await asyncio.sleep(0)

    async def fail(self, place: int) -> None:
        self.wire.sent[place][1].set_exception(ServerAway("the line was cut"))
        for _ in range(3):
            await asyncio.sleep(0)

    @property
    def promised_from(self) -> int:
        return self.agent.lease.stop_at - LEASE_MS + margin_ms(LEASE_MS)


async def test_an_answer_with_unclaimed_attempts_is_obeyed_and_renews_nothing(tmp_path: Path) -> None:  # JS-7
    talk = Talk(tmp_path)
    await talk.answer(await talk.speak())
    talk.now += 1_000
    await talk.answer(await talk.speak(), unclaimed=[AttemptRef(JobId("c/1"), 1)], jobs=[JOB])
    assert talk.promised_from == 100_000
    assert [answer.jobs for answer in talk.agent.obeyed] == [[], [JOB]]
    talk.now += 1_000
    await talk.answer(await talk.speak())
    assert talk.promised_from == 102_000


async def test_a_request_that_was_sent_before_jobs_came_does_not_renew_them(tmp_path: Path) -> None:  # JS-7
    talk = Talk(tmp_path)
    first = await talk.speak()
    talk.now += 900
    second = await talk.speak()
    talk.now += 10
    await talk.answer(first, jobs=[JOB])
    await talk.answer(second)
    assert talk.promised_from == 100_000, "the second does not name the job, so nobody has promised it for longer"
    third = await talk.speak()
    await talk.answer(third)
    assert talk.promised_from == 100_910


async def test_a_pilot_tries_the_next_server_when_its_own_is_away_for_a_sixth_of_the_lease(tmp_path: Path) -> None:
    others = ServerAddresses("http://a:1", "token", tmp_path / "servers.json")
    went: list[str] = []
    others.on_move = lambda address: went.append(address.url)
    talk = Talk(tmp_path, others)
    await talk.answer(await talk.speak(), servers=["http://a:1", "http://b:1", "http://c:1"])
    await talk.fail(await talk.speak())
    assert went == [], "a connection may well break"
    talk.now += LEASE_MS // 6
    await talk.fail(await talk.speak())
    await talk.fail(await talk.speak())
    assert went == ["http://b:1", "http://c:1"]
    await talk.answer(await talk.speak())
    await talk.fail(await talk.speak())
    assert went == ["http://b:1", "http://c:1"], "it stays where it is answered"


async def test_what_it_was_told_of_servers_is_known_to_the_next_agent(tmp_path: Path) -> None:
    servers = ServerAddresses("http://a:1,http://d:1", "token", tmp_path / "servers.json")
    assert (servers.address.url, servers.mark) == ("http://a:1", 0)
    servers.set_urls(["http://b:1", "http://c:1"])
    again = ServerAddresses("http://a:1", "token", tmp_path / "servers.json")
    assert again.mark == servers_mark(["http://b:1", "http://c:1"])
    catalogue = []
    for _ in range(4):
        assert again.move_on()
        catalogue.append(again.address.url)
    assert catalogue == ["http://b:1", "http://c:1", "http://a:1", "http://b:1"]
    assert again.address.token == "token"


async def test_a_server_that_was_away_when_the_others_were_told_of_is_tried_when_these_are_away(tmp_path: Path) -> None:
    # JS-6: it may be the only one that is there again
    servers = ServerAddresses("http://a:1", "", tmp_path / "servers.json")
    servers.set_urls(["http://a:1", "http://b:1", "http://c:1"])
    servers.set_urls(["http://a:1", "http://b:1"])
    for known in (servers, ServerAddresses("http://a:1", "", tmp_path / "servers.json")):
        assert known.mark == servers_mark(["http://a:1", "http://b:1"])
        gone_to = []
        for _ in range(3):
            assert known.move_on()
            gone_to.append(known.address.url)
        assert gone_to == ["http://b:1", "http://c:1", "http://a:1"]


async def test_a_lone_server_is_asked_again_and_again(tmp_path: Path) -> None:
    assert not ServerAddresses("http://a:1", "", tmp_path / "servers.json").move_on()


@pytest.mark.parametrize("given", ["", " , ", "ftp://a"])
def test_what_is_no_address_of_a_server_is_refused(given: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="server"):
        ServerAddresses(given, "", tmp_path / "servers.json")


@pytest.fixture
async def twin(server: Server) -> AsyncIterator[Server]:
    """Another server that knows the same."""
    twin = Server()
    twin.ledger, twin.newest = server.ledger, server.newest
    await twin.up()
    yield twin
    await twin.down()


async def test_a_pilot_comes_over_to_another_server_with_the_job_that_it_runs(
    server: Server, twin: Server, hire: Callable[..., Pilot], tmp_path: Path
) -> None:  # JS-6
    hire("--server", twin.url)
    job = await server.shell(waiting_command(tmp_path))
    await pids_in(server, tmp_path / "a")
    await server.down()
    seen = len(server.ledger.requests)
    await twin.until(
        lambda: any(beat.job == job for request in twin.ledger.requests[seen:] for beat in request.running),
        "the pilot to name the job elsewhere",
    )
    (tmp_path / "go").touch()
    assert (await twin.outcome(job)).ok
    assert (tmp_path / "a.starts").read_text() == "start\n"
