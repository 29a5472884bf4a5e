"""Every refusal has one shape, whoever refused: {code, message, fields}. Nothing of our inside is told."""

import asyncio
import logging
import socket
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from mendflow.client import Client
from mendflow.core.model.errors import Conflict
from mendflow.core.model.views import CaseView
from mendflow.server.access import AccessControl, single_token
from mendflow.server.app import JSON_BYTES_MAX, create_app
from mendflow.server.error_bodies import body_of
from mendflow.server.runner import HttpServer, serve
from tests.server.conftest import DomainUnderTest, Serving
from tests.server.conversation import job_flow


async def _told(response: aiohttp.ClientResponse) -> dict[str, Any]:
    told = await response.json()
    assert set(told) == {"code", "message", "fields"}
    assert told["message"]
    assert isinstance(told["fields"], dict)
    return dict(told)


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/api/v1/nothing", 404, "not-found"),
        ("GET", "/nothing", 404, "not-found"),
        ("GET", "/api/v1/cases/none", 404, "not-found"),
        ("GET", "/api/v1/jobs/none/not-a-number", 404, "not-found"),
        ("DELETE", "/api/v1/cases", 405, "method-not-allowed"),
        ("GET", "/api/v1/cases?limit=0", 400, "invalid"),
        ("GET", "/api/v1/cases?limit=many", 400, "invalid"),
        ("GET", "/api/v1/cases?status=asleep", 400, "invalid"),
        ("GET", "/api/v1/cases?offset=-1", 400, "invalid"),
        ("GET", "/api/v1/why", 400, "invalid"),
        ("GET", "/api/v1/files/ABC", 400, "invalid"),
    ],
)
async def test_a_refusal_has_one_shape(
    served: HttpServer, http: aiohttp.ClientSession, method: str, path: str, status: int, code: str
) -> None:
    async with http.request(method, served.url + path) as response:
        assert response.status == status
        assert (await _told(response))["code"] == code


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/cases", {"flow": 3}, "flow"),
        ("/cases", {"flow": "a", "inputs": []}, "inputs"),
        ("/cases", {"flow": "a", "imputs": {}}, "imputs"),
        ("/cases", {}, "flow"),
        ("/cases", [], "body"),
        ("/flows", {"name": "x", "body": {"kind": "sequence", "name": "s", "body": [{"kind": "jab"}]}}, "body[0].kind"),
        ("/flows", {"name": "x", "body": {"kind": "job", "name": "s", "retries": "two"}}, "body.retries"),
    ],
)
async def test_a_body_that_does_not_fit_is_told_where(
    served: HttpServer, http: aiohttp.ClientSession, path: str, body: object, field: str
) -> None:
    async with http.post(f"{served.url}/api/v1{path}", json=body) as response:
        assert response.status == 400
        told = await _told(response)
    assert told["code"] == "invalid"
    assert field in told["message"]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/cases", {"flow": "a", "origin": [None]}, "origin"),
        ("/cases", {"flow": "a", "resume": 0}, "resume"),
        ("/cases/last/rerun", {"from_failed": "true"}, "from_failed"),
        ("/cases/last/cancel", None, "body"),
        ("/rules/one/restore", {"version": "3"}, "version"),
        ("/rules/one/restore", {"version": 3.5}, "version"),
    ],
)
async def test_a_body_is_what_it_says_and_nothing_that_could_be_made_of_it(
    served: HttpServer, http: aiohttp.ClientSession, path: str, body: object, field: str
) -> None:
    sent, headers = msgspec.json.encode(body), {"Content-Type": "application/json"}
    async with http.post(f"{served.url}/api/v1{path}", data=sent, headers=headers) as response:
        assert response.status == 400
        assert (await _told(response))["fields"]["field"] == field


async def test_a_number_without_a_fraction_is_an_integer(served: HttpServer, http: aiohttp.ClientSession) -> None:
    async with http.post(f"{served.url}/api/v1/rules/one/restore", json={"version": 3.0}) as response:
        assert response.status == 404, "it was read, and there are no such rules"


@pytest.mark.parametrize("query", ["cases?status=null", "rules/*?version=Null", "events?kind=null"])
async def test_the_word_null_is_no_value_of_a_query(
    served: HttpServer, http: aiohttp.ClientSession, query: str
) -> None:
    async with http.get(f"{served.url}/api/v1/{query}") as response:
        assert response.status == 400
        assert "leave it out" in (await _told(response))["message"]


@pytest.mark.parametrize(
    ("method", "path", "told"),
    [
        ("POST", "cases/last/cancel?item=x", "`item` in the query; it knows: none; in the body: item"),
        ("GET", "cases?flows=one", "`flows` in the query; it knows: after, "),
        ("GET", "files/0?whose=last", "`whose` in the query; it knows: of"),
        ("GET", "alerts?limit=1&a=1&b=2", "`a`, `b` in the query; it knows: all, limit, severity"),
    ],
)
async def test_what_an_operation_would_not_look_at_is_refused(
    served: HttpServer, http: aiohttp.ClientSession, method: str, path: str, told: str
) -> None:  # SE-4
    async with http.request(method, f"{served.url}/api/v1/{path}") as response:
        assert response.status == 400
        refusal = await _told(response)
        assert told in refusal["message"] and refusal["fields"]["field"] in told


async def test_a_case_is_not_cancelled_by_whoever_means_an_item_of_it(
    served: HttpServer, http: aiohttp.ClientSession, client: Client
) -> None:  # SE-4
    await client.deploy(job_flow("one"))
    case = (await client.start("one")).id
    async with http.post(f"{served.url}/api/v1/cases/{case}/cancel?item=work", json={}) as response:
        assert response.status == 400
    assert (await client.case(case)).status == "running"


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/cases", "GET, OPTIONS, POST"), ("/pilots/locate", "OPTIONS, POST"), ("/rules/x", "GET, OPTIONS, PUT")],
)
async def test_an_address_says_which_methods_it_knows(
    served: HttpServer, http: aiohttp.ClientSession, path: str, allowed: str
) -> None:
    for method, status in (("OPTIONS", 204), ("PATCH", 405)):
        async with http.request(method, f"{served.url}/api/v1{path}") as response:
            assert (response.status, response.headers["Allow"]) == (status, allowed)


@pytest.mark.parametrize(
    "body",
    [b"{", b"\xff\xfe", b"", b'{"flow": "a", "inputs": {"n": 1e999999}}x', b"[" * 1_000_000, b'{"a":' * 200_000],
    ids=["cut", "no-text", "empty", "more", "nested-lists", "nested-maps"],
)
async def test_a_body_that_is_no_json_is_refused_and_the_server_lives(
    served: HttpServer, http: aiohttp.ClientSession, body: bytes
) -> None:
    headers = {"Content-Type": "application/json"}
    async with http.post(f"{served.url}/api/v1/cases", data=body, headers=headers) as response:
        assert response.status == 400
        assert (await _told(response))["code"] == "invalid"
    async with http.get(f"{served.url}/api/v1/health") as response:
        assert response.status == 200


async def test_a_flow_nested_too_deeply_is_refused(served: HttpServer, http: aiohttp.ClientSession) -> None:
    opening = b'{"kind":"sequence","name":"s","body":['
    body = b'{"name":"deep","body":' + opening * 20_000 + b"]}" * 20_000 + b"}"
    headers = {"Content-Type": "application/json"}
    async with http.post(f"{served.url}/api/v1/flows", data=body, headers=headers) as response:
        assert response.status == 400
        assert "64 levels" in (await _told(response))["message"]


async def test_a_body_beyond_the_bound_is_refused(served: HttpServer, http: aiohttp.ClientSession) -> None:
    body = b'"' + b"x" * JSON_BYTES_MAX + b'"'
    headers = {"Content-Type": "application/json"}
    async with http.post(f"{served.url}/api/v1/cases", data=body, headers=headers) as response:
        assert response.status == 413
        assert (await _told(response))["code"] == "too-large"


def _said_at_once(port: int, size: int) -> bytes:
    """What a plain caller hears who says all of a large body before it listens."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line:
        head = "POST /api/v1/cases HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        line.sendall(f"{head}Content-Length: {size}\r\n\r\n".encode())
        for _ in range(size // 1_000_000):
            line.sendall(b"x" * 1_000_000)
        return line.recv(65_536)


async def test_a_caller_who_sends_too_much_hears_why_and_not_a_broken_line(served: HttpServer) -> None:
    heard = await asyncio.to_thread(_said_at_once, served.port, 40_000_000)
    assert heard.startswith(b"HTTP/1.1 413 ")
    assert b"put large values into files" in heard


async def test_a_header_that_decides_is_not_taken_twice(served: HttpServer) -> None:
    def ask() -> bytes:
        with socket.create_connection(("127.0.0.1", served.port), timeout=60) as line:
            line.sendall(b"GET /api/v1/cases HTTP/1.1\r\nHost: evil.example\r\nHost: 127.0.0.1\r\n\r\n")
            return line.recv(65_536)

    heard = await asyncio.to_thread(ask)
    assert heard.startswith(b"HTTP/1.1 400 ")
    assert b"evil" not in heard


async def test_a_recursion_of_our_own_is_a_bug_and_no_error_of_the_caller(
    domain: DomainUnderTest, monkeypatch: pytest.MonkeyPatch, http: aiohttp.ClientSession
) -> None:
    async def deep(case: str) -> CaseView:
        raise RecursionError("in our own code")

    monkeypatch.setattr(domain, "case", deep)
    served = await serve(create_app(domain, access=AccessControl()))
    try:
        async with http.get(f"{served.url}/api/v1/cases/one") as response:
            assert response.status == 500
    finally:
        await served.stop()


async def test_our_own_bug_is_told_by_an_id_that_the_log_knows(
    domain: DomainUnderTest,
    monkeypatch: pytest.MonkeyPatch,
    http: aiohttp.ClientSession,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken(case: str) -> CaseView:
        raise ZeroDivisionError("the secret is 4711")

    monkeypatch.setattr(domain, "case", broken)
    served = await serve(create_app(domain, access=AccessControl()))
    try:
        async with http.get(f"{served.url}/api/v1/cases/one") as response:
            assert response.status == 500
            told = await _told(response)
    finally:
        await served.stop()
    assert told["code"] == "internal"
    assert "4711" not in str(told)
    assert "Traceback" not in str(told)
    assert told["fields"]["id"] in caplog.text
    assert "4711" in caplog.text


async def test_a_token_is_never_in_the_log(
    serving: Serving, http: aiohttp.ClientSession, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    served = await serving(AccessControl(single_token("s3cret-token")))
    for token in ("s3cret-token", "wr0ng-token"):
        headers = {"Authorization": f"Bearer {token}"}
        async with http.get(f"{served.url}/api/v1/cases?flow=s3cret-token", headers=headers) as response:
            await response.read()
        async with http.post(f"{served.url}/api/v1/cases", data=b"{", headers=headers) as response:
            await response.read()
    assert "s3cret-token" not in caplog.text
    assert "wr0ng-token" not in caplog.text


def test_what_json_cannot_say_is_told_in_words() -> None:
    told = msgspec.json.decode(body_of(Conflict("not so", near={"name": "x"}, path=Path("a/b"))))
    assert told == {"code": "conflict", "message": "not so", "fields": {"near": {"name": "x"}, "path": "a/b"}}
