"""Whoever asks one server about a case of another gets there what the first would give it, no more."""  # SE-1

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.core.model.access_tokens import TokenRequest
from mendflow.core.model.errors import Unauthorized
from mendflow.core.model.principals import ADMIN
from mendflow.server.access import AccessControl, token_hash
from mendflow.server.access_headers import ADMITTED_HEADER, FORWARDED_HEADER
from mendflow.server.sign_in import COOKIE
from mendflow.services.cluster.browser_sessions import StoredSession
from tests.server.conversation import task_flow
from tests.server.other_account import ask
from tests.server.town import SERVERS_TOKEN, Citizen, town

Two = tuple[Citizen, Citizen]


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[Two]:
    async with town(tmp_path, "east", "west") as (east, west):
        yield east, west


@pytest.fixture
async def case(two: Two) -> str:
    """A case of the first server."""
    async with two[0].client() as owner:
        await owner.deploy(task_flow())
        return str((await owner.start("ask")).id)


@pytest.fixture
async def token(two: Two) -> str:
    """Of somebody who may steer cases, but none of the project of this one; both servers know it."""
    wish = TokenRequest(name="rita", projects={"elsewhere": "operator"})
    made = await two[0].domain.create_token(wish, who="root")
    await two[1].server.access_tokens.read()
    return made.token


@pytest.mark.parametrize("named", ["authorization", "Authorization, cookie", "close, AUTHORIZATION"])
async def test_no_header_leaves_out_who_asks(two: Two, case: str, token: str, foreign: int, named: str) -> None:
    for path, method in ((f"/cases/{case}/suspend", "POST"), (f"/cases/{case}", "GET")):
        sent = {"Connection": named, "Content-Length": "0"}
        assert (await ask(two[1].served, path, account=foreign, token=token, method=method, headers=sent))[0] == 404
    async with two[0].client() as owner:
        assert (await owner.case(case)).status == "running"


async def test_nor_does_one_leave_out_whose_session_it_is(two: Two, case: str, token: str, foreign: int) -> None:
    ticket, _ = await two[1].domain.browser_sessions.create(StoredSession(token=token_hash(token), account=foreign))
    sent = {"Connection": "cookie", "Cookie": f"{COOKIE}={ticket}", "Content-Length": "0"}
    sent |= {"Mendflow-Request": "web", "Origin": two[1].url, "Host": two[1].url.removeprefix("http://")}
    path = f"/cases/{case}/suspend"
    assert (await ask(two[1].served, path, account=foreign, method="POST", headers=sent))[0] == 404


async def test_a_token_that_the_other_server_does_not_know_is_no_administrator_there(
    two: Two, case: str, token: str, foreign: int
) -> None:
    """Each server learns a moment later that a token was revoked."""
    await two[0].domain.revoke_token("rita", who="root")
    assert await two[1].access.holder(token_hash(token)) is not None
    status, text = await ask(two[1].served, f"/cases/{case}", account=foreign, token=token)
    assert status == 401 and "does not know that token" in text


async def test_who_has_no_token_is_refused_by_the_server_that_it_asks(two: Two, case: str, foreign: int) -> None:
    for headers in ({}, {"Authorization": "Bearer unknown"}, {"Connection": "authorization"}):
        status, text = await ask(two[1].served, f"/cases/{case}", account=foreign, headers=headers)
        assert status == 403 and "answers only the account that runs it" in text


async def test_only_a_server_says_how_somebody_was_admitted(two: Two, case: str, token: str, foreign: int) -> None:
    said = {ADMITTED_HEADER.decode(): "account", "Content-Length": "0"}
    for served in (two[0].served, two[1].served):
        status, _ = await ask(served, f"/cases/{case}/suspend", account=foreign, method="POST", headers=said)
        assert status == 403
        status, _ = await ask(
            served, f"/cases/{case}/suspend", account=foreign, token=token, method="POST", headers=said
        )
        assert status == 404


async def test_the_account_that_runs_the_servers_is_known_at_the_second_too(two: Two, case: str) -> None:
    async with two[1].client() as owner:
        assert (await owner.suspend(case)).status == "suspended"


def test_what_a_server_forwards_is_of_its_own_account_only_if_it_says_so() -> None:
    control = AccessControl(servers_token=SERVERS_TOKEN)
    forwarded = [(b"host", b"localhost"), (FORWARDED_HEADER, f"Bearer {SERVERS_TOKEN}".encode())]
    assert control.admit("GET", "/api/v1/cases", [*forwarded, (ADMITTED_HEADER, b"account")]).roles == {ADMIN}
    assert control.admit("GET", "/api/v1/health", forwarded).roles == frozenset()
    with pytest.raises(Unauthorized, match="wants a token"):
        control.admit("GET", "/api/v1/cases", forwarded)


async def test_the_path_goes_on_as_it_was_sent(two: Two, case: str) -> None:
    """Where dots are read as a way up, another path is asked for than the one that was decided about."""
    path = f"/api/v1/cases/{case}/nothing/%2E%2E/suspend"
    reader, writer = await asyncio.open_connection("127.0.0.1", two[1].served.port)
    request = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    writer.write(request.encode())
    answer = await reader.read()
    writer.close()
    assert b" 404 " in answer.splitlines()[0]
    async with two[0].client() as owner:
        assert (await owner.case(case)).status == "running"
