"""An address that signs a browser in by being opened, as `mendflow ui` opens it."""  # UI-1

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import aiohttp
import pytest

from mendflow.client import Client
from mendflow.core.model.audit import AuditQuery
from mendflow.server.access import AccessControl, read_tokens, single_token, token_hash
from mendflow.server.app import create_app
from mendflow.server.runner import serve
from mendflow.server.sign_in import COOKIE
from mendflow.server.sign_in_page import own_path
from mendflow.services.audit.audit_log import AuditLog
from tests.server.browser import Browser
from tests.server.conftest import DomainUnderTest

BOSS = "the-token-of-the-boss"
EDITOR = "the-token-of-an-editor"
HTML = "text/html"


@pytest.fixture
async def browser(domain: DomainUnderTest) -> AsyncIterator[Browser]:
    async with AsyncExitStack() as stack:
        log = AuditLog(domain._server.store, lambda: "alone", domain._server.clock.now)
        access = AccessControl([*single_token(BOSS), *read_tokens(f"ed user {token_hash(EDITOR)}")])
        served = await serve(create_app(domain, access=access, let_go=domain.let_go, audit=log))
        stack.push_async_callback(log.stop)
        stack.push_async_callback(served.stop)
        log.start()
        yield await stack.enter_async_context(Browser(served.url))


async def new_code(browser: Browser) -> str:
    async with Client(browser.url, BOSS) as boss:
        return (await boss.create_sign_in_code()).code


async def opened(browser: Browser, code: str, next: str = "", site: str = "none", referer: str = "") -> tuple[int, str]:
    path = f"/sign-in?code={code}&next={next}"
    answer = await browser.ask("GET", path, Accept=HTML, Sec_Fetch_Site=site, Referer=referer)
    assert answer.headers["cache-control"] == "no-store"
    assert "content-security-policy" in answer.headers
    return answer.status, answer.headers.get("location", answer.text)


async def test_a_code_that_is_opened_signs_in_and_leads_on(browser: Browser) -> None:
    assert await opened(browser, await new_code(browser), "/cases/greet-1?view=graph%26item=x") == (
        303,
        "/cases/greet-1?view=graph&item=x",
    )
    assert "HttpOnly; SameSite=Strict" in browser.set_cookie
    assert (await browser.api("GET", "/me")).json["name"] == "admin"


@pytest.mark.parametrize("site", ["cross-site", "same-site", "same-origin"])
async def test_a_page_that_leads_to_a_code_signs_nobody_in(browser: Browser, site: str) -> None:
    code = await new_code(browser)
    status, text = await opened(browser, code, site=site)
    assert status == 401 and "open it yourself" in text
    assert browser.cookie == ""
    assert (await opened(browser, code))[0] == 303, "the code was not used up"


async def sent(browser: Browser, page: str, **headers: str) -> tuple[int, str]:
    """Send the form of a page of the server, as its browser does: from there, and with what it knows."""
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', page))
    given = {"Origin": browser.url, **headers}
    cookie = {"Cookie": f"{COOKIE}={browser.cookie}"} if browser.cookie else {}
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http:
        url, sent = f"{browser.url}/sign-in", {name: value for name, value in {**given, **cookie}.items() if value}
        async with http.post(url, data=fields, headers=sent, allow_redirects=False) as answer:
            if "Set-Cookie" in answer.headers:
                browser.cookie = answer.headers["Set-Cookie"].partition(";")[0].removeprefix(f"{COOKIE}=")
            return answer.status, answer.headers.get("location", await answer.text())


async def test_where_a_browser_does_not_say_who_leads_it_a_page_of_the_server_does(browser: Browser) -> None:  # SE-1
    status, page = await opened(browser, await new_code(browser), "/cases", site="")
    assert (status, browser.cookie) == (200, "")
    assert "<script>document.forms[0].submit()</script>" in page
    assert await sent(browser, page) == (303, "/cases"), "nobody has to click"
    assert (await browser.api("GET", "/me")).json["name"] == "admin"
    assert (await sent(browser, page))[0] == 401, "once"


@pytest.mark.parametrize("site", ["none", ""])
async def test_a_code_takes_the_place_of_nobody_else_unasked(browser: Browser, site: str) -> None:  # SE-1
    await browser.sign_in(EDITOR)
    signed_in, code = browser.cookie, await new_code(browser)
    without = Browser(browser.url)  # what another site leads to comes without the session
    async with without:
        page = (await opened(without, code, "/cases", site=site))[1] if not site else ""
    if not site:
        status, page = await sent(browser, page)
    else:
        status, page = await opened(browser, code, "/cases", site=site)
    assert (status, browser.cookie) == (200, signed_in)
    assert "Sign in as admin?" in page and "signed in as ed" in page and "<script>" not in page
    assert (await browser.api("GET", "/me")).json["name"] == "ed", "nothing has happened yet"
    assert await sent(browser, page) == (303, "/cases")
    assert (await browser.api("GET", "/me")).json["name"] == "admin"
    assert await opened(browser, await new_code(browser), "/cases") == (303, "/cases"), "the same account is not asked"


async def test_who_comes_from_another_site_is_asked(browser: Browser) -> None:  # SE-1
    status, page = await opened(browser, await new_code(browser), site="", referer="http://evil.example/")
    assert (status, browser.cookie) == (200, "")
    assert "Sign in as admin?" in page and "<script>" not in page
    assert await sent(browser, page) == (303, "/")


@pytest.mark.parametrize("origin", ["http://evil.example", "null", ""])
async def test_no_other_site_sends_the_form(browser: Browser, origin: str) -> None:  # SE-1
    _, page = await opened(browser, await new_code(browser), site="", referer="http://evil.example/")
    assert (await sent(browser, page, Origin=origin))[0] == 403
    assert (await sent(browser, page, **{"Sec-Fetch-Site": "same-site"}))[0] == 403
    assert browser.cookie == ""
    assert (await sent(browser, page))[0] == 303, "the code was not used up"


async def test_a_code_that_is_no_good_is_said_to_be_so_and_is_on_record(
    browser: Browser, domain: DomainUnderTest
) -> None:
    code = await new_code(browser)
    await opened(browser, code)
    status, text = await opened(browser, code)
    assert status == 401 and "mendflow ui makes another" in text and code not in text
    assert (await opened(browser, "<script>alert(1)</script>"))[0] == 401
    entries = (await domain.find_audit(AuditQuery(limit=10))).rows[::-1]
    assert [(each.who, each.operation, each.outcome) for each in entries] == [
        ("admin", "create_sign_in_code", "done"),
        ("admin", "sign_in", "done"),
        ("", "sign_in", "refused"),
        ("", "sign_in", "refused"),
    ]


@pytest.mark.parametrize(
    "wanted",
    ["//evil.example", "/\\evil.example", "https://evil.example", "cases", "", "/a\r\nSet-Cookie: x=y", "/\tx"],
)
def test_nobody_is_led_to_another_site(wanted: str) -> None:
    assert own_path(wanted) == "/"


async def test_a_server_without_tokens_leads_on_without_a_session(domain: DomainUnderTest) -> None:
    served = await serve(create_app(domain, access=AccessControl(), let_go=domain.let_go))
    try:
        async with Client(served.url) as owner, Browser(served.url) as browser:
            code = (await owner.create_sign_in_code()).code
            assert await opened(browser, code, "/cases") == (303, "/cases")
            assert browser.cookie == ""
    finally:
        await served.stop()
