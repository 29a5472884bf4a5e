"""Safe by default: no token, no strangers. With tokens, each may do what its roles say, and no more."""

import os
import pwd
import stat
from collections.abc import Mapping
from contextlib import nullcontext

import aiohttp
import msgspec
import pytest

from mendflow.client import Client
from mendflow.core.model.errors import Forbidden, InvalidRequest, NotFound, RequestError, Unauthorized
from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.core.model.principals import Principal
from mendflow.server import access
from mendflow.server.access import (
    AccessControl,
    AccessToken,
    check_binding,
    is_allowed,
    load_tokens,
    new_token,
    read_tokens,
    single_token,
    token_hash,
)
from mendflow.server.app import create_app
from mendflow.server.pilot_api import SYNC_PATH
from mendflow.server.private_files import require_private
from mendflow.server.runner import HttpServer, serve
from mendflow.services.api.domain import Domain
from mendflow.services.base import hidden_texts
from mendflow.services.base.hidden_texts import HiddenTexts
from tests.server.conftest import Serving
from tests.server.conversation import job_flow, sync_request, task_flow

ACCOUNT = pwd.getpwuid(os.geteuid()).pw_name
PEOPLE = read_tokens(
    "\n".join(
        [
            "# who may do what",
            f"boss   admin        {token_hash('t-boss')}",
            f"ann    user,editor  {token_hash('t-ann')}",
            f"bob    user         {token_hash('t-bob')}   # no editor",
            f"eve    editor       {token_hash('t-eve')}",
            f"rita   reader       {token_hash('t-rita')}",
            "",
            f"node7  pilot        {token_hash('t-node7')}",
        ]
    )
)


@pytest.fixture
async def guarded(serving: Serving) -> HttpServer:
    return await serving(AccessControl(PEOPLE))


def test_whoever_may_not_do_something_is_told_which_roles_may() -> None:
    shown = [(b"authorization", b"Bearer t-rita")]
    with pytest.raises(Forbidden, match=r"'rita' .* the roles reader, and this is for operator in the project, admin$"):
        AccessControl(PEOPLE).admit("POST", "/api/v1/cases/a/cancel", shown)
    with pytest.raises(Forbidden, match=r"this is for admin$"):
        AccessControl(PEOPLE).admit("GET", "/api/v1/webhooks", shown)


# Where the server listens


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "[::1]", "localhost"])
def test_loopback_needs_no_token(host: str) -> None:
    check_binding(host, [])


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.1.4", "example.org", "localhost.example.org"])
def test_any_other_address_is_refused_without_a_token_and_says_what_to_do(host: str) -> None:
    with pytest.raises(Forbidden, match="MENDFLOW_TOKEN"):
        check_binding(host, [])
    check_binding(host, single_token("t"))


async def test_the_server_itself_refuses_to_start_open_to_all(domain: Domain) -> None:
    with pytest.raises(Forbidden, match="without a token"):
        await serve(create_app(domain, access=AccessControl()), host="0.0.0.0")


# Tokens


def test_a_new_token_is_known_by_its_line_alone() -> None:
    token, line = new_token("node7", ["pilot"])
    assert token not in line
    assert read_tokens(line) == [AccessToken("node7", frozenset({"pilot"}), token_hash(token))]


@pytest.mark.parametrize(("name", "role", "wrong"), [("x y", "user", "x y"), ("", "user", ""), ("ann", "A b", "A b")])
def test_a_new_token_of_a_wrong_name_or_role_is_refused_by_what_was_given(name: str, role: str, wrong: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        new_token(name, [role])
    assert refused.value.message.startswith(repr(wrong))
    assert "line" not in refused.value.message


def test_a_token_that_is_not_known_is_another_matter_than_none() -> None:
    access = AccessControl(PEOPLE)
    with pytest.raises(Unauthorized, match="wants a token"):
        access.admit("GET", "/api/v1/cases", [])
    with pytest.raises(Unauthorized, match="does not know that token"):
        access.admit("GET", "/api/v1/cases", [(b"authorization", b"Bearer nope")])


@pytest.mark.parametrize(
    "line",
    [
        "ann user",
        "ann user secret-itself",
        f"ann USER {token_hash('x')}",
        f"a/b user {token_hash('x')}",
        f"ann , {token_hash('x')}",
    ],
)
def test_a_wrong_line_is_told_by_its_number_and_not_shown(line: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_tokens(f"# first\n{line}\n", "tokens.txt")
    assert "tokens.txt, line 2" in refused.value.message
    assert "secret-itself" not in refused.value.message


def test_a_token_given_twice_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="given again"):
        read_tokens(f"a user {token_hash('x')}\nb admin {token_hash('x')}")


def test_a_token_file_that_is_not_there_is_told(tmp_path: object) -> None:
    with pytest.raises(NotFound, match="token file"):
        load_tokens(f"{tmp_path}/none")


@pytest.mark.parametrize(
    ("mode", "owner", "own", "fits"),
    [
        (0o600, 7, 7, True),
        (0o400, 7, 7, True),
        (0o640, 7, 7, False),
        (0o604, 7, 7, False),
        (0o440, 0, 7, True),  # how systemd and Kubernetes mount secrets
        (0o460, 0, 7, False),
        (0o444, 0, 7, False),
        (0o440, 0, 0, False),
        (0o600, 8, 7, False),
        (0o600, 8, 0, False),
    ],
)
def test_a_token_file_is_for_the_server_alone(  # SE-1
    mode: int, owner: int, own: int, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: own)
    status = os.stat_result((stat.S_IFREG | mode, 1, 1, 1, owner, 5, 0, 0, 0, 0))
    with nullcontext() if fits else pytest.raises(Forbidden, match="tokens"):
        require_private(status, "tokens", "token file", "whoever writes there lets itself in")


# Browsers, where there is no token


def _headers(**given: str) -> list[tuple[bytes, bytes]]:
    return [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()]


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8642", "127.0.0.1.evil.example", "10.0.0.1", "", "[", "::1:1"),
        *(
            "evil.example@127.0.0.1",
            "evil.example:x@localhost:8642",
            "127.0.0.1/evil.example",
            "127.0.0.1#evil.example",
        ),
    ],
)
def test_a_foreign_name_for_this_machine_is_refused(host: str) -> None:  # SE-1
    with pytest.raises(Forbidden):
        AccessControl().admit("GET", "/api/v1/cases", _headers(host=host))


@pytest.mark.parametrize("host", ["127.0.0.1:8642", "localhost", "LOCALHOST:1", "[::1]:8642"])
def test_a_name_of_this_machine_is_taken(host: str) -> None:
    assert AccessControl().admit("POST", "/api/v1/cases", _headers(host=host)).name == ACCOUNT


@pytest.mark.parametrize(
    "sent",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:3000"},
        {"sec_fetch_site": "cross-site"},
    ],
)
def test_a_page_of_another_site_changes_nothing(sent: Mapping[str, str]) -> None:
    with pytest.raises(Forbidden):
        AccessControl().admit("POST", "/api/v1/cases", _headers(host="localhost:8642", **sent))
    assert AccessControl().admit(
        "POST", "/api/v1/cases", _headers(host="localhost:8642", origin="http://localhost:8642")
    )


@pytest.mark.parametrize(("said", "name"), [("ann", "ann"), ("", ACCOUNT), ("a b\r\nc", ACCOUNT), ("x" * 65, ACCOUNT)])
def test_without_tokens_a_user_says_who_it_is(said: str, name: str) -> None:
    assert AccessControl().admit("GET", "/", _headers(host="localhost", x_mendflow_user=said)).name == name


def test_with_tokens_nobody_says_who_it_is() -> None:
    headers = _headers(host="any.example", authorization="Bearer t-ann", x_mendflow_user="boss")
    assert AccessControl(PEOPLE).admit("GET", "/api/v1/cases", headers).name == "ann"


# Roles


@pytest.mark.parametrize(
    ("role", "method", "path", "allowed"),
    [
        ("pilot", "POST", "/pilots/sync", True),
        ("pilot", "PUT", "/files/0", True),
        ("pilot", "GET", "/files/0", True),
        ("pilot", "GET", "/cases", False),
        ("pilot", "POST", "/cases", False),
        ("pilot", "GET", "/health", True),
        ("reader", "GET", "/cases", True),
        ("reader", "HEAD", "/files/0", True),
        ("reader", "PUT", "/files/0", False),
        ("reader", "POST", "/worklist/c/1/claim", False),
        ("reader", "POST", "/pilots/sync", False),
        ("user", "POST", "/cases", True),
        ("user", "PUT", "/files/0", True),
        ("user", "POST", "/pilots/sync", False),
        ("editor", "GET", "/worklist", True),
        ("editor", "POST", "/worklist/c/1/claim", True),
        ("editor", "POST", "/cases", False),
        ("admin", "POST", "/pilots/sync", True),
        ("admin", "POST", "/cases/c/cancel", True),
    ],
)
def test_a_role_may_do_this_and_not_that(role: str, method: str, path: str, allowed: bool) -> None:
    assert is_allowed(Principal(role, frozenset({role})), method, f"/api/v1{path}") is allowed


async def test_no_token_or_a_wrong_one_is_turned_away_everywhere(
    guarded: HttpServer, http: aiohttp.ClientSession
) -> None:
    for authorization in ("", "Bearer wrong", "Bearer ", "Basic dXNlcjp0LWJvc3M=", "t-boss"):
        for method, path in (("GET", "/cases"), ("POST", "/cases"), ("POST", "/pilots/sync"), ("GET", "/nothing")):
            headers = {"Authorization": authorization} if authorization else {}
            async with http.request(method, f"{guarded.url}/api/v1{path}", headers=headers) as response:
                assert response.status == 401
                assert response.headers["WWW-Authenticate"] == "Bearer"
                assert (await response.json())["code"] == "unauthorized"


async def test_health_is_open_to_probes(guarded: HttpServer, http: aiohttp.ClientSession) -> None:
    async with http.get(f"{guarded.url}/api/v1/health") as response:
        assert response.status == 200


async def test_a_pilot_only_exchanges_and_moves_files(guarded: HttpServer) -> None:
    async with Client(guarded.url, "t-node7") as pilot:
        assert (await pilot.sync(sync_request(1))).serial == 1
        assert not await pilot.has("0" * 64)
        with pytest.raises(Forbidden):
            await pilot.cases()


async def test_a_reader_reads_and_a_user_starts_under_its_own_name(guarded: HttpServer) -> None:
    async with Client(guarded.url, "t-bob") as bob, Client(guarded.url, "t-rita") as rita:
        await bob.deploy(job_flow())
        case = await bob.start("one")
        assert case.owner == "bob"
        assert (await rita.case(case.id)).id == case.id
        with pytest.raises(Forbidden):
            await rita.cancel(case.id)
        with pytest.raises(Forbidden):
            await bob.sync(sync_request(1))


async def test_a_task_is_for_those_who_have_its_role(guarded: HttpServer) -> None:  # AD-6
    async with (
        Client(guarded.url, "t-ann") as ann,
        Client(guarded.url, "t-bob") as bob,
        Client(guarded.url, "t-eve") as eve,
        Client(guarded.url, "t-boss") as boss,
    ):
        await bob.deploy(task_flow(role="editor"))
        case = await bob.start("ask")
        item = await bob.item(case.id, "approve")
        task = f"{case.id}/{item.serial}"
        for refused in (bob.claim(task), bob.complete(task, {}), bob.reject(task), bob.release(task)):
            with pytest.raises(Forbidden, match="editor"):
                await refused
        assert (await eve.claim(task)).claimed_by == "eve"
        assert (await eve.release(task)).claimed_by == ""
        await boss.claim(task)
        await boss.release(task)
        await ann.claim(task)
        assert (await ann.complete(task, {})).ended_by == "ann"


async def test_a_server_with_one_token_lets_its_holder_do_all(serving: Serving) -> None:
    served = await serving(AccessControl(single_token("only")))
    async with Client(served.url, "only") as client:
        await client.deploy(job_flow())
        await client.start("one")
        assert len((await client.sync(sync_request(1, want=1, wait_ms=5000))).jobs) == 1
    async with Client(served.url) as stranger:
        with pytest.raises(Unauthorized):
            await stranger.cases()


def test_a_refusal_shows_no_token() -> None:
    with pytest.raises(RequestError) as refused:
        AccessControl(PEOPLE).admit("GET", "/api/v1/cases", _headers(host="h", authorization="Bearer t-wrong"))
    assert "t-wrong" not in msgspec.json.encode([refused.value.message, str(refused.value.fields)]).decode()


async def test_who_may_only_read_sees_the_names_in_the_environment_of_jobs_and_no_values(guarded: HttpServer) -> None:
    body = JobActivity(name="work", command="true", env={"ARCHIVE_KEY": "hush"})
    async with Client(guarded.url, "t-bob") as bob, Client(guarded.url, "t-rita") as rita:
        await bob.deploy(Flow(name=FlowName("shy"), body=body))
        case = (await bob.start("shy")).id
        for client, value in ((bob, "hush"), (rita, "(hidden)")):
            assert [job.spec.env for job in await client.jobs()] == [{"ARCHIVE_KEY": value}]
            assert (await client.job(f"{case}/1")).spec.env == {"ARCHIVE_KEY": value}
            for flow in (await client.flow_of(case), (await client.flow("shy")).flow):
                assert flow is not None and isinstance(flow.body, JobActivity)
                assert flow.body.env == {"ARCHIVE_KEY": value}


def test_tokens_that_are_renewed_again_and_again_are_hidden_in_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "TOLD_MAX", 3)
    monkeypatch.setattr(hidden_texts, "TOKENS_MAX", 3)
    tokens = [f"token-{number}-of-a-pilot" for number in range(6)]
    hidden = HiddenTexts()
    hidden.add("own-token-of-the-server")
    control = AccessControl([AccessToken("p", frozenset({"pilot"}), token_hash(each)) for each in tokens])
    control._hide = hidden.add_used
    for each in (*tokens, tokens[0]):
        control.admit("POST", SYNC_PATH, [(b"authorization", f"Bearer {each}".encode())])
    shown = hidden.of("default").mask(" ".join([*tokens, "own-token-of-the-server"]))
    assert [each for each in tokens if each in shown] == tokens[1:4], "a token that comes again is hidden again"
    assert "own-token" not in shown
    assert len(control._told) == 3


def test_the_tokens_of_pilots_and_administrators_are_told_once_to_be_hidden() -> None:
    hidden: list[str] = []
    tokens = {role: new_token(role, [role]) for role in ("pilot", "admin", "user")}
    access = AccessControl(read_tokens("\n".join(line for _, line in tokens.values())), hide=hidden.append)
    for role in ("pilot", "pilot", "admin", "user"):
        path = "/api/v1/pilots/sync" if role == "pilot" else "/api/v1/cases"
        shown = [(b"authorization", f"Bearer {tokens[role][0]}".encode())]
        access.admit("POST" if role == "pilot" else "GET", path, shown)
    assert hidden == [tokens["pilot"][0], tokens["admin"][0]]
