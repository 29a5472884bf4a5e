"""Signing in to a server that answers nobody it does not know, and out again."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.watched import Complaints, WatchedContext, watched
from tests.web.web_server import BOSS, WebServer


@pytest.fixture
def profile(browser: Browser, closed: WebServer, complaints: Complaints) -> Iterator[WatchedContext]:
    complaints.expected.append("401")  # what the browser itself says of the server's refusal
    with watched(browser, closed.url, complaints=complaints) as context:
        yield context


@pytest.fixture
def stranger(profile: WatchedContext) -> Page:
    return profile.page()


def sign_in(page: Page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()


def test_a_wrong_token_is_refused_and_a_right_one_leads_on(stranger: Page) -> None:
    stranger.goto("/cases?flow=quick")
    expect(stranger).to_have_url(re.compile("/sign-in"))
    sign_in(stranger, "not-a-token-of-this-server")
    expect(stranger.get_by_role("alert")).to_contain_text("does not know that token. Copy it again, whole")
    sign_in(stranger, BOSS)
    expect(stranger).to_have_url(re.compile(r"/cases\?flow=quick"))
    expect(stranger.get_by_role("grid", name="Cases")).to_contain_text("quick")
    assert BOSS not in stranger.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")


def test_se_1_the_field_for_the_token_has_the_focus_and_no_key_leads_elsewhere(stranger: Page) -> None:
    stranger.goto("/cases?flow=quick")
    expect(stranger.get_by_label("Token")).to_be_focused()
    stranger.keyboard.type("g w ?")
    expect(stranger.get_by_label("Token")).to_have_value("g w ?")
    stranger.get_by_role("heading", name="mendflow").click()  # no field has the focus
    stranger.keyboard.type("gw?/")
    expect(stranger).to_have_url(re.compile(r"/sign-in\?next=%2Fcases"))
    expect(stranger.get_by_role("dialog")).to_have_count(0)


@pytest.mark.parametrize("address", ["/", "/cases", "/cases/quick-000000", "/failures", "/worklist"])
def test_se_1_nothing_but_who_asks_is_asked_while_nobody_is_signed_in(stranger: Page, address: str) -> None:
    asked: list[str] = []
    stranger.on("request", lambda request: asked.append(urlsplit(request.url).path) if "/api/" in request.url else None)
    with stranger.expect_response("**/api/v1/session"):  # how one may sign in
        stranger.goto(address)
    expect(stranger.get_by_label("Token")).to_be_focused()
    stranger.wait_for_load_state("networkidle")
    assert sorted(set(asked)) == ["/api/v1/me", "/api/v1/session"]
    assert asked.count("/api/v1/me") == 1


def test_se_1_who_has_signed_out_is_asked_for_nothing_but_the_name_either(
    profile: WatchedContext, stranger: Page
) -> None:
    profile.sign_in(BOSS)
    stranger.goto("/cases")
    expect(stranger.get_by_role("grid", name="Cases")).to_be_visible()
    stranger.locator(".top-bar").get_by_role("button").last.click()
    stranger.get_by_role("menuitem", name="Sign out").click()
    expect(stranger.get_by_label("Token")).to_be_focused()
    asked: list[str] = []
    stranger.on("request", lambda request: asked.append(urlsplit(request.url).path) if "/api/" in request.url else None)
    stranger.goto("/cases")
    expect(stranger).to_have_url(re.compile("/sign-in"))
    stranger.wait_for_load_state("networkidle")
    assert sorted(set(asked)) == ["/api/v1/me", "/api/v1/session"]


def test_whoever_signs_out_sees_nothing_any_more(profile: WatchedContext, stranger: Page) -> None:
    profile.sign_in(BOSS)
    stranger.goto("/cases")
    expect(stranger.get_by_role("grid", name="Cases")).to_be_visible()
    stranger.locator(".top-bar").get_by_role("button").last.click()
    stranger.get_by_role("menuitem", name="Sign out").click()
    expect(stranger).to_have_url(re.compile("/sign-in"))
    stranger.go_back()
    expect(stranger).to_have_url(re.compile("/sign-in"))
    expect(stranger.get_by_role("grid", name="Cases")).not_to_be_visible()


def test_a_code_in_the_address_signs_in_once(closed: WebServer, stranger: Page) -> None:
    code = closed.ask("POST", "/session/codes")["code"]
    stranger.goto(f"/sign-in?code={code}&next=/pilots")
    expect(stranger.get_by_role("heading", name="Pilots")).to_be_visible()
    assert code not in stranger.url
    stranger.context.clear_cookies()
    stranger.goto(f"/sign-in?code={code}&next=/pilots")
    expect(stranger.get_by_text(re.compile("signs nobody in"))).to_be_visible()


def test_a_revoked_token_ends_the_session_of_an_open_page(
    closed: WebServer, profile: WatchedContext, stranger: Page
) -> None:
    made = closed.reader("rita")
    profile.sign_in(made["token"])
    stranger.goto("/cases?flow=quick")
    expect(stranger.get_by_role("button", name="live")).to_be_visible()
    closed.ask("DELETE", f"/tokens/{made['id']}")
    expect(stranger.get_by_role("status")).to_contain_text("You are signed out", timeout=30_000)
    sign_in(stranger, closed.reader("rita")["token"])
    expect(stranger).to_have_url(re.compile(r"/cases\?flow=quick"))


def test_ui_1_whoever_is_here_for_user_tasks_lands_on_the_worklist(closed: WebServer, stranger: Page) -> None:
    made = closed.ask("POST", "/tokens", {"name": "pia", "roles": ["investigator"]})
    stranger.goto("/")
    sign_in(stranger, made["token"])
    expect(stranger.get_by_role("heading", name="Worklist")).to_be_visible()
    expect(stranger.get_by_role("navigation", name="Pages").get_by_role("link")).to_have_text(
        ["Home", "Cases", "Worklist", "Help"]
    )
