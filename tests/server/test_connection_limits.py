"""What a caller may cost a server before anybody knows who it is, over real sockets."""

import asyncio
import hashlib
import json
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from mendflow.core.model.flow import Flow, Input, Wait
from mendflow.core.model.ids import FlowName
from mendflow.core.model.principals import ADMIN, USER
from mendflow.event_loop import run
from mendflow.server import connection_limits
from mendflow.server.access import AccessControl, AccessToken, single_token, token_hash
from mendflow.server.app import create_app
from mendflow.server.connection_limits import ConnectionLimits
from mendflow.server.runner import HttpServer, serve
from tests.patience import until
from tests.server.conftest import DomainUnderTest

GET = b"GET /api/v1/health HTTP/1.1\r\nhost: localhost\r\n\r\n"
LARGE = "a" * 12_000_000
Start = Callable[[ConnectionLimits], Awaitable[HttpServer]]


@pytest.fixture
async def start(domain: DomainUnderTest) -> AsyncIterator[Start]:
    async with AsyncExitStack() as stack:

        async def begin(limits: ConnectionLimits) -> HttpServer:
            app = create_app(domain, access=AccessControl(single_token("secret")), let_go=domain.let_go)
            served = await serve(app, limits=limits)
            stack.push_async_callback(served.stop)
            return served

        yield begin


class Line:
    """A connection that says what it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def to(cls, served: HttpServer, said: bytes = b"") -> "Line":
        line = cls(*await asyncio.open_connection("127.0.0.1", served.port))
        await line.say(said)
        return line

    async def say(self, said: bytes) -> None:
        self.writer.write(said)
        await self.writer.drain()

    async def status(self) -> int:
        head = (await self.reader.read()).split(b" ", 2)
        self.writer.close()
        return int(head[1])

    async def answer(self) -> tuple[int, str]:
        """The status and the code of what comes until the server closes; 0 if nothing came."""
        try:
            head, _, body = (await self.reader.read()).partition(b"\r\n\r\n")
        except ConnectionError:
            return 0, ""
        finally:
            self.writer.close()
        return (int(head.split()[1]), json.loads(body)["code"]) if head else (0, "")


async def test_headers_without_end_are_refused(start: Start) -> None:  # SE-3
    served = await start(ConnectionLimits())
    line = await Line.to(served, b"GET / HTTP/1.1\r\nhost: localhost\r\nx: ")
    sent = 0
    try:
        while sent < 64 << 20:
            await line.say(b"a" * 65536)
            sent += 65536
    except ConnectionError:
        pass
    assert sent < 8 << 20, "the server closes long before that"
    line.writer.close()


async def test_the_answer_to_large_headers_says_what_is_allowed(start: Start) -> None:  # SE-3
    served = await start(ConnectionLimits(header_bytes_max=2000))
    line = await Line.to(served, b"GET / HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * 2000)
    assert await line.answer() == (431, "headers-too-large")
    line = await Line.to(served, b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 102)
    assert await line.answer() == (431, "headers-too-large")
    line = await Line.to(served, b"GET /" + b"a" * 2000 + b" HTTP/1.1\r\n")
    assert await line.answer() == (431, "headers-too-large")


async def test_trailers_without_end_are_refused(start: Start) -> None:  # SE-3
    served = await start(ConnectionLimits(header_bytes_max=2000))
    begun = b"POST /api/v1/cases HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer secret\r\n"
    line = await Line.to(served, begun + b"transfer-encoding: chunked\r\n\r\n1\r\n{\r\n0\r\nx: ")
    await asyncio.sleep(0.1)
    await line.say(b"a" * 3000)
    assert await line.answer() == (431, "headers-too-large")


async def test_half_sent_headers_are_closed(start: Start) -> None:  # SE-3
    served = await start(ConnectionLimits(header_s=0.2))
    lines = [await Line.to(served, b"GET / HTTP/1.1\r\nhost: ") for _ in range(50)]
    assert {await line.answer() for line in lines} == {(408, "too-slow")}
    silent = await Line.to(served)
    assert await silent.answer() == (0, "")


async def test_half_sent_bodies_are_closed(start: Start) -> None:  # SE-3
    served = await start(ConnectionLimits(body_grace_s=0.2))
    head = b"POST /api/v1/cases HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer secret\r\n"
    line = await Line.to(served, head + b'content-type: application/json\r\ncontent-length: 1000\r\n\r\n{"')
    assert await line.answer() == (408, "too-slow")


async def test_a_body_that_comes_at_a_speed_is_taken(start: Start) -> None:  # SE-3
    served = await start(ConnectionLimits(body_grace_s=1, body_bytes_per_s=10))
    head = b"PUT /api/v1/files/%s HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer secret\r\n"
    sha256 = hashlib.sha256(b"a" * 3000).hexdigest().encode()
    line = await Line.to(served, head % sha256 + b"content-length: 3000\r\n\r\n")
    for _ in range(30):
        await line.say(b"a" * 100)
        await asyncio.sleep(0.1)
    assert await line.status() in (200, 201)


async def test_who_sends_a_request_gets_in_past_a_thousand_that_do_not(start: Start) -> None:  # SE-3
    served = await start(ConnectionLimits(unadmitted_max=50, unadmitted_of_address_max=40, header_s=600))
    admitted = await Line.to(served)
    asked = GET.replace(b"\r\n\r\n", b"\r\nauthorization: Bearer secret\r\n\r\n")
    await admitted.say(asked)
    assert b" 200 " in await admitted.reader.readuntil(b"\r\n\r\n")
    held = [await Line.to(served, b"GET / HTTP/1.1\r\nhost: ") for _ in range(300)]
    newcomer = await Line.to(served, asked)
    assert b" 200 " in await newcomer.reader.readuntil(b"\r\n\r\n")
    await admitted.say(asked)
    assert b" 200 " in (await admitted.reader.readuntil(b"\r\n\r\n")).rpartition(b"HTTP/1.1")[2]
    answers = [await line.answer() for line in held[:200]]
    assert set(answers) <= {(503, "not-now"), (0, "")}
    for line in (*held, admitted, newcomer):
        line.writer.close()


async def test_who_gave_up_a_place_is_told_later_while_there_is_room(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:  # SE-3
    monkeypatch.setattr(connection_limits, "EVICTED_S", 600)
    monkeypatch.setattr(connection_limits, "EVICTED_MAX", 10)
    served = await start(ConnectionLimits(unadmitted_max=20, unadmitted_of_address_max=20, header_s=600))
    held = [await Line.to(served, b"GET / HTTP/1.1\r\nhost: ") for _ in range(60)]
    told = [asyncio.create_task(line.answer()) for line in held]
    await until(lambda: sum(each.done() for each in told) == 30, "those beyond the room are told at once")
    assert {each.result() for each in told if each.done()} <= {(503, "not-now"), (0, "")}
    assert not any(each.done() for each in told[:10]), "the first that gave up their places wait"
    newcomer = await Line.to(served, GET)
    assert b" 200 " in await newcomer.reader.readuntil(b"\r\n\r\n")
    for line in (*held, newcomer):
        line.writer.close()


def test_a_busy_loop_accepts_many_in_each_round(domain: DomainUnderTest) -> None:  # SE-3
    """On the loop that servers use."""

    async def rounds_for(connections: int) -> int:
        app = create_app(domain, access=AccessControl(single_token("secret")), let_go=domain.let_go)
        served = await serve(app, limits=ConnectionLimits())
        lines = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(connections)]
        rounds = 0
        while len(served._server.server_state.connections) < connections:
            await asyncio.sleep(0)
            rounds += 1
        for line in lines:
            line.close()
        await served.stop()
        return rounds

    assert run(rounds_for(200)) < 100


async def asked(served: HttpServer, token: str, path: str = "/api/v1/me") -> Line:
    """A connection with a request on it, whose answer nobody has read."""
    request = GET.replace(b"/api/v1/health", path.encode())
    return await Line.to(served, request.replace(b"\r\n\r\n", b"\r\nauthorization: Bearer %b\r\n\r\n" % token.encode()))


async def test_one_principal_leaves_places_to_the_others(domain: DomainUnderTest) -> None:  # SE-3
    tokens = [
        AccessToken(name, frozenset({role}), token_hash(secret))
        for name, secret, role in (("eve", "hers", USER), ("ann", "mine", USER), ("root", "all", ADMIN))
    ]
    app = create_app(domain, access=AccessControl(tokens), let_go=domain.let_go)
    served = await serve(app, limits=ConnectionLimits(connections_of_principal_max=3))
    try:
        held = [await asked(served, "hers") for _ in range(3)]
        for line in held:
            assert b" 200 " in await line.reader.readuntil(b"\r\n\r\n")
        refused = await asked(served, "hers")
        assert await refused.answer() == (429, "too-many-requests")
        for token in ("mine", "all", "all", "all", "all"):
            line = await asked(served, token)
            assert b" 200 " in await line.reader.readuntil(b"\r\n\r\n")
            held.append(line)
        held[0].writer.close()
        await until(lambda: len(served._server.server_state.connections) == 7, "it has closed one")
        again = await asked(served, "hers")
        assert b" 200 " in await again.reader.readuntil(b"\r\n\r\n")
        for line in (*held, again):
            line.writer.close()
    finally:
        await served.stop()


async def test_answers_that_nobody_reads_are_cut(start: Start, domain: DomainUnderTest) -> None:  # SE-3
    case = await large_case(domain)
    served = await start(ConnectionLimits(body_grace_s=0.5))
    line = await asked(served, "secret", f"/api/v1/cases/{case}")
    await until(lambda: served._server.server_state.connections, "it has come")
    await until(lambda: not served._server.server_state.connections, "it was cut")
    line.writer.close()
    reader = await asked(served, "secret", f"/api/v1/cases/{case}")
    assert b" 200 " in await reader.reader.readuntil(b"\r\n\r\n")
    assert len(await reader.reader.readexactly(len(LARGE))) == len(LARGE), "who reads gets all of it"
    reader.writer.close()


async def test_who_shows_no_token_sends_no_large_body(start: Start) -> None:  # SE-3
    served = await start(ConnectionLimits())
    head = b"POST /api/v1/session HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    for size in (b"content-length: 15000000", b"transfer-encoding: chunked"):
        line = await Line.to(served, head + size + b"\r\n\r\n")
        assert b" 413 " in await line.reader.readuntil(b"\r\n\r\n"), "it is refused before any of it has come"
        line.writer.close()
    small = await Line.to(served, head + b"content-length: 2\r\n\r\n{}")
    assert b" 413 " not in await small.reader.readuntil(b"\r\n\r\n")
    small.writer.close()


async def test_what_is_left_unread_takes_a_bounded_part_of_the_memory(
    start: Start, domain: DomainUnderTest
) -> None:  # SE-3
    case = await large_case(domain)
    served = await start(ConnectionLimits(unread_bytes_max=2 * len(LARGE)))
    lines = [await asked(served, "secret", f"/api/v1/cases/{case}") for _ in range(6)]
    await until(lambda: len(served._server.server_state.connections) == 6, "they have come")
    await until(lambda: len(served._server.server_state.connections) <= 2, "the oldest were cut")
    for line in lines:
        line.writer.close()


async def large_case(domain: DomainUnderTest) -> str:
    """A case whose answer is larger than what the kernel takes of it."""
    flow = Flow(name=FlowName("large"), inputs={"s": Input(type="string")}, body=Wait(name="wait", duration=3_600_000))
    await domain.deploy(flow)
    return (await domain.start("large", {"s": LARGE}, who="ann")).id


async def test_no_more_connections_than_the_server_takes(start: Start) -> None:  # SE-3
    served = await start(ConnectionLimits(connections_max=2))
    held = [await Line.to(served, GET.replace(b"\r\n\r\n", b"\r\nauthorization: Bearer secret\r\n\r\n"))]
    await held[0].reader.readuntil(b"\r\n\r\n")
    held.append(await Line.to(served, b"GET / HTTP/1.1\r\n"))
    newcomer = await Line.to(served, GET)
    assert await newcomer.answer() == (503, "not-now")
    for line in held:
        line.writer.close()


async def test_pipelined_requests_and_idle_connections_work_as_before(start: Start) -> None:  # SE-3
    served = await start(ConnectionLimits(header_s=0.1, idle_s=2))
    line = await Line.to(served, GET * 3)
    begun, found = time.monotonic(), b""
    while piece := await line.reader.read(65536):
        found += piece
    assert found.count(b"HTTP/1.1 200") == 3
    assert time.monotonic() - begun > 1, "an idle connection is kept for as long as it may be idle"


NOT_UTF_8 = b"\xff\xfe"


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /api/v1/cases/%FF%FE HTTP/1.1\r\n\r\n",
        b"GET /api/v1/cases/" + NOT_UTF_8 + b" HTTP/1.1\r\n\r\n",
        b"GET /api/v1/cases?status=%FF%FE HTTP/1.1\r\n\r\n",
        b"GET /api/v1/cases?%FF=%FE HTTP/1.1\r\n\r\n",
        b"GET /api/v1/cases?status=" + NOT_UTF_8 + b" HTTP/1.1\r\n\r\n",
        b"POST /api/v1/cases HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: 16\r\n\r\n"
        b'{"source": "\xff\xfe"}',
        b"POST /api/v1/cases HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: 16\r\n\r\n"
        b'{"\xff\xfe": "source"}',
        b"POST /api/v1/flows HTTP/1.1\r\ncontent-type: application/json; charset=\xff\r\ncontent-length: 2\r\n\r\n{}",
        b"POST /api/v1/cases HTTP/1.1\r\ncontent-type: \xff\xfe\r\ncontent-length: 2\r\n\r\n{}",
        b"POST /api/v1/cases HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: 22\r\n\r\n"
        b'{"source": "\\ud800  "}',
        b"GET /api/v1/cases HTTP/1.1\r\ncookie: \xff\xfe=\xff\r\naccept: \xff\r\n\r\n",
        b"GET /api/v1/cases/%00 HTTP/1.1\r\n\r\n",
    ],
)
async def test_bytes_that_are_no_text_are_the_callers_mistake(start: Start, request_: bytes) -> None:  # SE-3
    served = await start(ConnectionLimits())
    more = b"\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer secret\r\n"
    status = await (await Line.to(served, request_.replace(b"\r\n", more, 1))).status()
    assert (
        status == 400 or (status, b"cookie" in request_) == (200, True) or (status, b"%00" in request_) == (404, True)
    )
