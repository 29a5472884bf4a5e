"""Pages load and ask for what they show, and nothing more: so they stay quick where there is very much."""  # UI-1

import re
import threading

import pytest
from playwright.sync_api import Page, Request, Route, expect

from tests.web.watched import Complaints
from tests.web.web_server import WebServer


class Asked:
    """The addresses that a page has asked for."""

    def __init__(self, page: Page) -> None:
        self.addresses: list[str] = []
        page.on("request", self._hear)

    def _hear(self, request: Request) -> None:
        self.addresses.append(request.url)

    def count(self, part: str) -> int:
        return sum(part in each for each in self.addresses)


def test_a_plain_graph_is_placed_without_the_large_layout(server: WebServer, page: Page) -> None:
    case, asked = server.ended("survey"), Asked(page)
    page.goto(f"/cases/{case}")
    for name in ("prepare", "measure", "report"):
        expect(page.locator(".case-node", has_text=name)).to_be_visible()
    places = [page.locator(".case-node", has_text=name).bounding_box() for name in ("prepare", "measure", "report")]
    lefts = [place["x"] for place in places if place is not None]
    assert len(lefts) == 3 and lefts == sorted(set(lefts)), "from left to right"
    assert not asked.count("elk-worker") and asked.count("graph-view")


@pytest.mark.parametrize("address", ["/", "/cases", "/cases/CASE"])
def test_what_is_asked_for_before_the_app_is_there_is_what_the_page_shows(
    server: WebServer, page: Page, address: str
) -> None:
    case, asked = server.ended("survey"), Asked(page)
    page.goto(address.replace("CASE", case))
    expect(page.locator(f'.tile, [data-row="{case}"], .case-node').first).to_be_visible()
    assert not page.evaluate("() => [...(window.mendflowPrefetched?.keys() ?? [])]"), "asked for in vain"
    assert asked.count("/api/v1/me") == 1


def test_what_happens_comes_on_one_stream_that_stays_open(server: WebServer, page: Page) -> None:
    asked = Asked(page)
    page.goto("/cases?flow=quick")
    expect(page.get_by_text("No case matches").or_(page.get_by_role("grid", name="Cases"))).to_be_visible()
    for _ in range(3):
        case = server.ended("quick")
        expect(page.locator(f'[data-row="{case}"]')).to_contain_text("completed", timeout=30_000)
        page.wait_for_timeout(1200)  # after a second it is looked again whether the stream may be read
    assert asked.count("/api/v1/events") == 1, "the stream was cut"


def test_a_condition_is_begun_in_a_plain_field_and_goes_on_in_the_editor(server: WebServer, page: Page) -> None:
    case = server.ended("survey")
    may_load = threading.Event()
    held: list[Route] = []

    def hold(route: Route) -> None:
        if may_load.is_set():
            route.continue_()
        else:
            held.append(route)

    page.route(re.compile("code-mirror"), hold)
    page.goto("/cases")
    expect(page.locator(f'[data-row="{case}"]')).to_be_visible()
    assert not held, "nobody has written anything yet"
    field = page.get_by_role("textbox", name="Condition")
    field.click()
    page.keyboard.type("flow == 'sur")
    expect(field).to_have_value("flow == 'sur")
    may_load.set()
    for route in held:
        route.continue_()
    expect(page.locator(".where-line .code-host")).to_be_visible()
    page.keyboard.type("vey'")
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"where=.*survey"))
    expect(page.locator(f'[data-row="{case}"]')).to_be_visible()


def test_enter_in_the_plain_field_searches_too(server: WebServer, page: Page, complaints: Complaints) -> None:
    case = server.ended("survey")
    complaints.expected.append("code-mirror")
    page.route(re.compile("code-mirror"), lambda route: route.abort())
    page.goto("/cases")
    expect(page.locator(f'[data-row="{case}"]')).to_be_visible()
    field = page.get_by_role("textbox", name="Condition")
    field.fill(f"id == '{case}'")
    field.press("Enter")
    expect(page).to_have_url(re.compile(f"where=.*{case}"))
    expect(page.locator("[data-row]")).to_have_count(1)


def test_a_history_begins_with_its_last_events(server: WebServer, page: Page) -> None:
    case = server.ended("survey")
    with page.expect_request(re.compile(r"/history\?last=\d+&brief=true$")):
        page.goto(f"/cases/{case}?view=history")
    expect(page.get_by_role("grid", name="History")).to_contain_text("report")
    expect(page.get_by_role("link", name="read all events")).not_to_be_visible()
    asked = Asked(page)
    page.goto(f"/cases/{case}?view=history&entries=all")
    expect(page.get_by_role("grid", name="History")).to_contain_text("report")
    assert any(each.endswith("/history?brief=true") for each in asked.addresses)


def test_a_full_history_shows_what_is_known_until_the_rest_is_worked_out(server: WebServer, page: Page) -> None:
    case, held = server.ended("survey"), list[Route]()
    page.route(re.compile(r"/history\?last=\d+$"), lambda route: held.append(route))
    page.goto(f"/cases/{case}?view=history&full=yes")
    grid, note = page.get_by_role("grid", name="History"), page.get_by_text("is being worked out")
    expect(grid).to_contain_text("completed")
    expect(note).to_be_visible()
    expect(grid).not_to_contain_text("submitted")
    held[0].continue_()
    expect(grid).to_contain_text("submitted")
    expect(note).not_to_be_visible()
