"""Notifications reach a real receiver over HTTP, and only where they may go."""

import asyncio
import hashlib
import hmac
import ipaddress
import socket
from collections.abc import AsyncIterator

import pytest

from mendflow.address_guard import OWN_MACHINE, PUBLIC_ONLY, check_url, is_private
from mendflow.core.model.alerts import Notification
from mendflow.core.model.errors import InvalidRequest
from mendflow.server import webhook_posts as posting
from mendflow.server.webhook_posts import HttpPoster
from mendflow.services.base.clock import SystemClock
from mendflow.services.observe.notifications.deliveries import SendingForm, WebhookSender

TOLD = Notification(id="f-1:end", kind="failed", at=1, message="it broke", serial=7)
PLAIN = SendingForm("json", "")


class Receiver:
    """A server that does what the test says with each connection, after it has read the request."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.answer: bytes | None = b"HTTP/1.1 204 No Content\r\n\r\n"
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        self.requests.append(head + await reader.readexactly(length))
        if self.answer is None:
            await reader.read()  # until the other side has enough
        else:
            writer.write(self.answer)
        writer.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?key=hidden"


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    yield receiver
    server.close()


@pytest.fixture
async def poster() -> AsyncIterator[HttpPoster]:
    poster = HttpPoster(OWN_MACHINE)
    yield poster
    await poster.close()


def deliveries(poster: HttpPoster) -> WebhookSender:
    return WebhookSender(clock=SystemClock(), poster=poster, chance=lambda: 0.0)


async def test_what_arrives_is_signed_and_says_which_event_it_is(
    receiver: Receiver, poster: HttpPoster
) -> None:  # JS-8
    assert await deliveries(poster).try_once(receiver.url, SendingForm("json", "hush"), TOLD) == ""
    head, _, body = receiver.requests[0].partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    assert headers["Mendflow-Event"] == "f-1:end" and headers["Mendflow-Event-Kind"] == "failed"
    signed = dict(part.split("=") for part in headers["Mendflow-Signature"].split(","))
    wanted = hmac.new(b"hush", signed["t"].encode() + b"." + body, hashlib.sha256).hexdigest()
    assert signed["v1"] == wanted
    assert b'"message":"it broke"' in body and b"hush" not in receiver.requests[0]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", "status 500"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", "redirects are not"),
        (b"this is no HTTP at all\r\n\r\n", "no answer that could be read"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n", "no answer that could be read"),
        (b"", "no answer that could be read"),
    ],
)
async def test_a_receiver_that_does_not_take_it_is_told_apart(
    receiver: Receiver, poster: HttpPoster, answer: bytes, why: str
) -> None:
    receiver.answer = answer
    told = await deliveries(poster).try_once(receiver.url, PLAIN, TOLD)
    assert why in told and "hidden" not in told
    assert len(receiver.requests) == 1, "nobody else was asked"


async def test_a_receiver_that_hangs_is_let_go(
    receiver: Receiver, poster: HttpPoster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posting, "TOTAL_S", 0.2)
    receiver.answer = None
    assert "no answer within" in await deliveries(poster).try_once(receiver.url, PLAIN, TOLD)


async def test_an_answer_without_an_end_is_not_read(receiver: Receiver, poster: HttpPoster) -> None:
    receiver.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n" + b"x" * 1_000_000
    assert await deliveries(poster).try_once(receiver.url, PLAIN, TOLD) == ""


async def test_nobody_listens_is_a_reason(poster: HttpPoster) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/"
        assert "no connection" in await deliveries(poster).try_once(url, PLAIN, TOLD)


async def test_private_addresses_are_refused_by_name_too_unless_they_are_allowed(receiver: Receiver) -> None:
    poster = HttpPoster(PUBLIC_ONLY)
    try:
        for host in ("127.0.0.1", "localhost", "[::1]", "0.0.0.0"):
            assert "private" in await deliveries(poster).try_once(f"http://{host}:{receiver.port}/", PLAIN, TOLD), host
        name = socket.gethostname()
        assert (
            "private" in await deliveries(poster).try_once(f"http://{name}:{receiver.port}/", PLAIN, TOLD) or name == ""
        )
    finally:
        await poster.close()
    assert receiver.requests == []


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/",
        "file:///etc/passwd",
        "example.org",
        "http://",
        "http://[",
        "http://a:b@example.org/",
        "http://example.org:99999/",
        "http://exa mple.org/",
        "https://example.org/" + "x" * 3_000,
        "http://127.0.0.1/",
        "http://localhost:1/",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest",
        "http://[::ffff:10.0.0.1]/",
    ],
)
def test_addresses_that_no_webhook_may_have(url: str) -> None:
    with pytest.raises(InvalidRequest):
        check_url(url, guard=PUBLIC_ONLY)


def test_addresses_that_a_webhook_may_have() -> None:
    check_url("https://example.org/hook?x=1", guard=PUBLIC_ONLY)
    check_url("http://127.0.0.1:9000/", guard=OWN_MACHINE)


@pytest.mark.parametrize(
    ("address", "private"),
    [
        ("93.184.216.34", False),
        ("2606:2800:220:1::1", False),
        ("127.0.0.1", True),
        ("192.168.1.1", True),
        ("100.64.0.1", True),
        ("224.0.0.1", True),
        ("::1", True),
        ("fe80::1", True),
        ("fc00::1", True),
        ("::ffff:127.0.0.1", True),
        ("64:ff9b::10.0.0.1", True),
        ("64:ff9b::5db8:d822", False),
        ("2002:7f00:1::", True),
    ],
)
def test_what_is_private(address: str, private: bool) -> None:
    assert is_private(ipaddress.ip_address(address)) is private
