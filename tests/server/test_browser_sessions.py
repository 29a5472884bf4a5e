"""Browsers sign in by a token or a one-time code, and only pages of the server use what they have."""  # UI-1

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from mendflow.client import Client
from mendflow.core.model.access_tokens import TokenRequest
from mendflow.core.model.audit import AuditQuery
from mendflow.server.access import AccessControl, AccessToken, token_hash
from mendflow.server.app import create_app
from mendflow.server.failed_attempts import FAILURES_MAX, AttemptThrottle
from mendflow.server.runner import HttpServer, serve
from mendflow.services.audit.audit_log import AuditLog
from mendflow.services.cluster.browser_sessions import SESSION_KIND, StoredSession
from tests.patience import PATIENCE_S
from tests.server.browser import Browser
from tests.server.conftest import DomainUnderTest, opened
from tests.server.town import town

BOSS, ANN = "the-token-of-the-boss", "the-token-of-ann-herself"
TOKENS = [
    AccessToken("boss", frozenset({"admin"}), token_hash(BOSS)),
    AccessToken("ann", frozenset({"user"}), token_hash(ANN)),
]
NOBODY = 65534
ASK = """
import encodings.idna, http.client, json, os, sys  # all before the account changes: it may not read them
port, path, account, cookie = sys.argv[1:]
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(int(account)); os.setuid(int(account))
connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
connection.request("GET", path, headers={"Cookie": cookie})
print(json.dumps(connection.getresponse().status))
"""


@pytest.fixture
async def domain(tmp_path: Path) -> AsyncIterator[DomainUnderTest]:
    async with opened(tmp_path) as made:
        yield made


class Place:
    """A server with tokens, also those of its store, and its audit log."""

    def __init__(self, domain: DomainUnderTest, served: HttpServer, access: AccessControl) -> None:
        self.domain, self.served, self.access = domain, served, access
        self.url = served.url

    async def told(self) -> list[tuple[str, str, str, str]]:
        entries = (await self.domain.find_audit(AuditQuery(limit=1000))).rows[::-1]
        return [(each.who, each.operation, each.outcome, each.code) for each in entries]


@pytest.fixture
async def place(domain: DomainUnderTest) -> AsyncIterator[Place]:
    async with AsyncExitStack() as stack:
        server = domain._server
        log = AuditLog(server.store, lambda: "alone", server.clock.now)
        access = AccessControl(TOKENS, stored=server.access_tokens)
        served = await serve(create_app(domain, access=access, let_go=domain.let_go, audit=log))
        stack.push_async_callback(log.stop)
        stack.push_async_callback(served.stop)
        log.start()
        yield Place(domain, served, access)


@pytest.fixture
async def browser(place: Place) -> AsyncIterator[Browser]:
    async with Browser(place.url) as made:
        yield made


async def test_a_browser_signs_in_by_a_token_and_is_who_has_the_token(browser: Browser) -> None:
    assert (await browser.api("GET", "/me")).status == 401
    assert (await browser.api("GET", "/session")).json == {"signed_in": False, "issuer": ""}
    assert (await browser.sign_in(ANN)).status == 204
    me = (await browser.api("GET", "/me")).json
    assert (me["name"], me["roles"], me["projects"]) == ("ann", ["user"], {"default": "author"})
    assert (me["installation"], me["signed_in_by"], me["version"]) == (False, "session", "0")
    assert "start" in me["may"] and "create_token" not in me["may"] and "me" in me["may"]
    assert (await browser.api("GET", "/session")).json["signed_in"] is True
    assert (await browser.api("GET", "/cases")).status == 200
    assert (await browser.api("GET", "/tokens")).status == 403
    assert (await browser.api("PUT", "/limits/licence", {"count": 1})).status == 200


async def test_the_cookie_is_for_no_script_and_no_other_site(browser: Browser) -> None:
    answer = await browser.sign_in(ANN)
    assert "HttpOnly; SameSite=Strict" in browser.set_cookie and "Path=/" in browser.set_cookie
    assert "Secure" not in browser.set_cookie, "there is no TLS here"
    assert ANN not in browser.set_cookie and token_hash(ANN) not in browser.set_cookie
    assert answer.headers["cache-control"] == "no-store"


async def test_behind_tls_the_cookie_is_sent_over_tls_only(domain: DomainUnderTest) -> None:
    app = create_app(domain, access=AccessControl(TOKENS), let_go=domain.let_go, url="https://flows.example.org")
    served = await serve(app)
    try:
        async with Browser(served.url) as browser:
            browser.page["Origin"] = "https://flows.example.org"
            assert (await browser.sign_in(ANN)).status == 204
            assert browser.set_cookie.endswith("; Secure")
            assert (await browser.api("PUT", "/limits/licence", {"count": 1})).status == 200
    finally:
        await served.stop()


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": ""},
        {"Mendflow_Request": ""},
        {"Mendflow_Request": "other"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
async def test_a_page_of_another_site_changes_nothing(browser: Browser, headers: dict[str, str]) -> None:
    await browser.sign_in(ANN)
    refused = await browser.api("PUT", "/limits/licence", {"count": 1}, **headers)
    assert (refused.status, refused.json["code"]) == (403, "forbidden")
    assert (await browser.api("DELETE", "/session", **headers)).status == 403
    assert (await browser.api("GET", "/me")).status == 200, "the session is still there"
    assert (await browser.api("GET", "/limits")).json == []


@pytest.mark.parametrize("headers", [{"Origin": "http://evil.example"}, {"Sec_Fetch_Site": "cross-site"}])
async def test_a_page_of_another_site_signs_nobody_in(browser: Browser, headers: dict[str, str]) -> None:
    assert (await browser.api("POST", "/session", {"token": ANN}, **headers)).status == 403
    assert browser.cookie == ""


async def test_another_site_reads_nothing_but_may_link_to_here(browser: Browser) -> None:
    await browser.sign_in(ANN)
    assert (await browser.api("GET", "/cases", Sec_Fetch_Site="same-site")).status == 403
    linked = await browser.api("GET", "/cases", Sec_Fetch_Site="same-site", Sec_Fetch_Mode="navigate")
    assert linked.status == 200


async def test_a_session_ends_when_its_browser_signs_out(browser: Browser, place: Place) -> None:
    await browser.sign_in(ANN)
    stolen = browser.cookie
    assert (await browser.api("DELETE", "/session")).status == 204
    assert browser.cookie == "" and "Max-Age=0" in browser.set_cookie
    browser.cookie = stolen
    over = await browser.api("GET", "/me")
    assert (over.status, over.json["message"]) == (401, "your session is over: sign in again")
    assert (await browser.api("DELETE", "/session")).status == 204, "there is nothing left to end"
    assert [each async for each in place.domain._server.store.scan(SESSION_KIND)] == []


async def test_a_session_ends_with_its_token(browser: Browser, place: Place) -> None:
    async with Client(place.url, BOSS) as boss:
        made = await boss.create_token(TokenRequest(name="bob", projects={"lab": "operator"}))
        await browser.sign_in(made.token)
        me = (await browser.api("GET", "/me")).json
        assert (me["name"], me["projects"]) == ("bob", {"lab": "operator"})
        await boss.revoke_token(made.view.id)
    assert (await browser.api("GET", "/me")).status == 401
    assert (await browser.sign_in(made.token)).status == 401


async def test_a_session_ends_when_its_token_leaves_the_token_file(browser: Browser, place: Place) -> None:
    await browser.sign_in(ANN)
    place.access.replace_tokens(TOKENS[:1])
    assert (await browser.api("GET", "/me")).status == 401


async def test_a_session_holds_no_longer_than_its_token(browser: Browser, place: Place) -> None:
    async with Client(place.url, BOSS) as boss:
        made = await boss.create_token(TokenRequest(name="bob", expires_ms=1_500))
    await browser.sign_in(made.token)
    assert int(browser.set_cookie.partition("Max-Age=")[2].partition(";")[0]) <= 1
    assert (await browser.api("GET", "/me")).status == 200
    await asyncio.sleep(1.6)
    assert (await browser.api("GET", "/me")).status == 401


async def test_a_code_signs_one_browser_in_once(browser: Browser, place: Place) -> None:
    async with Client(place.url, ANN) as ann, Browser(place.url) as other:
        made = await ann.create_sign_in_code()
        assert made.code not in repr(made)
        answers = await asyncio.gather(browser.sign_in(code=made.code), other.sign_in(code=made.code))
        assert sorted(each.status for each in answers) == [204, 401]
        winner = browser if browser.cookie else other
        assert (await winner.api("GET", "/me")).json["name"] == "ann"
        late = next(each for each in answers if each.status == 401)
        assert "mendflow ui makes another" in late.json["message"]
        again = await winner.api("POST", "/session/codes")
        assert again.status == 201 or again.status == 200, "a browser may let another in"


async def test_a_code_of_a_revoked_token_signs_nobody_in(browser: Browser, place: Place) -> None:
    async with Client(place.url, BOSS) as boss:
        made = await boss.create_token(TokenRequest(name="bob"))
        async with Client(place.url, made.token) as bob:
            code = (await bob.create_sign_in_code()).code
        await boss.revoke_token(made.view.id)
    assert (await browser.sign_in(code=code)).status == 401


@pytest.mark.parametrize("body", [{}, {"token": ""}, {"token": ANN, "code": "x"}, {"tokn": ANN}, {"token": 1}, []])
async def test_what_says_neither_token_nor_code_is_refused(browser: Browser, body: object) -> None:
    assert (await browser.api("POST", "/session", body)).status == 400


async def test_failed_sign_ins_are_slowed_down_and_known_tokens_are_not(domain: DomainUnderTest) -> None:
    access = AccessControl(TOKENS, failures=AttemptThrottle(clock=lambda: 1.0))
    served = await serve(create_app(domain, access=access, let_go=domain.let_go))
    try:
        async with Browser(served.url) as browser:
            tries = [(await browser.sign_in(f"guessed-token-number-{n}")).status for n in range(FAILURES_MAX // 3)]
            tries += [(await browser.sign_in(code=f"guessed.{n}.code")).status for n in range(FAILURES_MAX // 3)]
            for number in range(FAILURES_MAX // 3):
                browser.cookie = f"made.up.{number}"
                tries.append((await browser.api("GET", "/me")).status)
            assert set(tries) == {401} and len(tries) == FAILURES_MAX
            browser.cookie = ""
            slowed = await browser.sign_in("one-guess-too-many-now")
            assert slowed.status == 429 and int(slowed.headers["retry-after"]) > 0
            assert (await browser.sign_in(code="one.too.many")).status == 429
            assert (await browser.sign_in(ANN)).status == 204
            assert (await browser.api("GET", "/me")).status == 200
    finally:
        await served.stop()


async def test_signing_in_and_out_is_on_record(browser: Browser, place: Place) -> None:  # SE-4
    await browser.sign_in("a-token-that-nobody-has")
    await browser.sign_in(ANN)
    await browser.api("DELETE", "/session")
    assert await place.told() == [
        ("", "sign_in", "refused", "unauthorized"),
        ("ann", "sign_in", "done", ""),
        ("ann", "sign_out", "done", ""),
    ]
    stored = b"".join([line async for line in place.domain.export_audit()])
    assert ANN.encode() not in stored


async def test_a_session_opens_no_path_between_servers_or_domains(browser: Browser) -> None:
    await browser.sign_in(BOSS)
    for path in ("/peers/jobs", "/domain/work"):
        assert (await browser.api("POST", path, {})).status in (401, 404)


async def test_two_cookies_of_one_name_are_none(browser: Browser) -> None:
    await browser.sign_in(ANN)
    browser.cookie = f"{browser.cookie}; mendflow_session=made.up.one"
    assert (await browser.api("GET", "/me")).status == 401


async def test_a_token_that_is_sent_counts_more_than_a_session(browser: Browser) -> None:
    await browser.sign_in(ANN)
    me = (await browser.api("GET", "/me", Authorization=f"Bearer {BOSS}")).json
    assert (me["name"], me["signed_in_by"], me["installation"]) == ("boss", "token", True)


async def test_a_session_of_this_machine_is_for_the_account_that_began_it(browser: Browser, place: Place) -> None:
    """To a browser all ports of a machine are one site: a server of another account can be sent the cookie."""
    sessions, asker = place.domain.browser_sessions, NOBODY if os.geteuid() == 0 else os.geteuid()
    own, _ = await sessions.create(StoredSession(token=token_hash(ANN), account=asker))
    foreign, _ = await sessions.create(StoredSession(token=token_hash(ANN), account=asker + 4321))

    async def asked(ticket: str) -> int:
        """What another process is answered, of an account that is not root."""
        words = [sys.executable, "-I", "-c", ASK, str(place.served.port), "/api/v1/me", str(asker)]
        done = await asyncio.to_thread(
            subprocess.run,
            [*words, f"mendflow_session={ticket}"],
            capture_output=True,
            timeout=PATIENCE_S,
            check=True,
            cwd="/",
        )
        return int(json.loads(done.stdout))

    assert await asked(own) == 200
    assert await asked(foreign) == 401
    await browser.sign_in(ANN)
    assert await asked(browser.cookie) == (401 if os.geteuid() == 0 else 200)


async def test_a_server_without_tokens_needs_no_session_and_ignores_foreign_cookies(domain: DomainUnderTest) -> None:
    served = await serve(create_app(domain, access=AccessControl(), let_go=domain.let_go))
    try:
        async with Browser(served.url) as browser:
            browser.cookie = "of.another.server"
            me = (await browser.api("GET", "/me")).json
            assert (me["installation"], me["signed_in_by"]) == (True, "socket")
            code = (await browser.api("POST", "/session/codes")).json["code"]
            browser.cookie = ""
            assert (await browser.sign_in(code=code)).status == 204
            assert browser.cookie == ""
            assert (await browser.api("PUT", "/limits/licence", {"count": 1})).status == 200
            assert (await browser.api("PUT", "/limits/x", {"count": 1}, Origin="http://evil.example")).status == 403
    finally:
        await served.stop()


async def test_a_session_is_known_to_every_server_on_the_store_until_it_is_ended_at_one(tmp_path: Path) -> None:
    async with (
        town(tmp_path, "east", "west", tokens=TOKENS) as (east, west),
        Browser(east.url) as one,
        Browser(west.url) as two,
        east.client(ANN) as client,
    ):
        await one.sign_in(code=(await client.create_sign_in_code()).code)
        two.cookie = one.cookie
        assert (await two.api("GET", "/me")).json["name"] == "ann"
        assert (await two.api("GET", "/cases")).status == 200, "both servers are asked"
        await two.api("DELETE", "/session")
        async with asyncio.timeout(PATIENCE_S):
            while (await one.api("GET", "/me")).status != 401:
                await asyncio.sleep(0.05)


async def test_a_code_of_one_server_is_redeemed_at_another(tmp_path: Path) -> None:
    async with (
        town(tmp_path, "east", "west", tokens=TOKENS) as (east, west),
        Browser(west.url) as browser,
        east.client(ANN) as client,
    ):
        code = (await client.create_sign_in_code()).code
        assert (await browser.sign_in(code=code)).status == 204
        assert (await browser.sign_in(code=code)).status == 401
