"""Signing in at an OpenID Connect issuer, in a real browser. To it, the issuer (`localhost`) is another site than the
server (`127.0.0.1`)."""  # SE-1 UI-1

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.servers.issuer import CLIENT, Issuer, issuing_beside
from tests.web.watched import Complaints, watched
from tests.web.web_server import WebServer, serving

OFFER = re.compile("Sign in with localhost:")


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with issuing_beside("localhost") as made:
        yield made


@pytest.fixture(scope="module")
def closed(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """A server whose people sign in at the issuer."""
    options = ["--oidc-issuer", issuer.url, "--oidc-audience", "mendflow", "--oidc-client", CLIENT]
    options += ["--oidc-roles", "groups", "--oidc-map", "staff=user"]
    with serving(tmp_path_factory.mktemp("closed"), token="the-token-of-the-administrator", options=options) as server:
        issuer.leads_to.add(f"{server.url}/sign-in/issuer/done")
        yield server


@pytest.fixture
def stranger(browser: Browser, closed: WebServer, complaints: Complaints) -> Iterator[Page]:
    complaints.expected += ["401", "503"]  # what the browser itself says of the server's refusal
    with watched(browser, closed.url, complaints=complaints) as context:
        yield context.page()


def test_who_signs_in_at_the_issuer_goes_on_where_it_was(stranger: Page) -> None:
    stranger.goto("/cases?flow=quick")
    expect(stranger).to_have_url(re.compile("/sign-in"))
    stranger.get_by_role("link", name=OFFER).click()
    expect(stranger.get_by_role("heading", name="Who are you?")).to_be_visible()
    stranger.get_by_role("link", name="Ann").click()
    expect(stranger).to_have_url(re.compile(r"127\.0\.0\.1:\d+/cases\?flow=quick"))
    expect(stranger.locator(".top-bar")).to_contain_text("u-17")
    expect(stranger.get_by_role("button", name="live")).to_be_visible()
    stranger.reload()
    expect(stranger.locator(".top-bar")).to_contain_text("u-17")


def test_who_signs_out_may_sign_out_of_the_issuer_too(stranger: Page, issuer: Issuer) -> None:
    stranger.goto("/sign-in?next=/pilots")
    stranger.get_by_role("link", name=OFFER).click()
    stranger.get_by_role("link", name="Ann").click()
    expect(stranger.get_by_role("heading", name="Pilots")).to_be_visible()
    stranger.locator(".top-bar").get_by_role("button").last.click()
    stranger.get_by_role("menuitem", name="Sign out").click()
    expect(stranger.get_by_role("status")).to_contain_text("You are signed out")
    stranger.get_by_role("link", name="sign out there too").click()
    expect(stranger).to_have_url(re.compile(r"127\.0\.0\.1:\d+/sign-in$"))
    assert issuer.ended == [CLIENT]
    stranger.goto("/cases")
    expect(stranger).to_have_url(re.compile("/sign-in"))


def test_who_refuses_at_the_issuer_is_told_so_and_can_try_again(stranger: Page) -> None:
    stranger.goto("/sign-in?next=/pilots")
    stranger.get_by_role("link", name=OFFER).click()
    stranger.get_by_role("link", name="Refuse").click()
    expect(stranger.get_by_text("access_denied: <b>not today</b>")).to_be_visible()
    stranger.get_by_role("link", name="Sign in").click()
    stranger.get_by_role("link", name=OFFER).click()
    stranger.get_by_role("link", name="Ann").click()
    expect(stranger.get_by_role("heading", name="Pilots")).to_be_visible()


def test_a_way_back_that_was_used_signs_nobody_in(stranger: Page) -> None:
    backs: list[str] = []
    stranger.on("request", lambda request: backs.append(request.url) if "/issuer/done" in request.url else None)
    stranger.goto("/sign-in")
    stranger.get_by_role("link", name=OFFER).click()
    stranger.get_by_role("link", name="Ann").click()
    expect(stranger.locator(".top-bar")).to_contain_text("u-17")
    stranger.context.clear_cookies()
    stranger.goto(backs[0])
    expect(stranger.get_by_text("has begun no sign-in that this could be the end of")).to_be_visible()


def test_only_a_server_with_an_issuer_offers_it(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    with serving(tmp_path_factory.mktemp("alone"), token="the-token-of-the-administrator") as server:
        complaints = Complaints()
        complaints.expected.append("401")
        with watched(browser, server.url, complaints=complaints) as context:
            page = context.page()
            page.goto("/sign-in")
            expect(page.get_by_label("Token")).to_be_visible()
            page.wait_for_load_state("networkidle")
            expect(page.get_by_role("link", name="Sign in with")).to_have_count(0)
