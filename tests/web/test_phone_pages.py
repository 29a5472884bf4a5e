"""Lists and tabs on a phone: everything is within the edges, and what is shown is in sight."""  # UI-1

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.watched import PHONE, watched
from tests.web.web_server import WebServer

LISTS = {
    "/cases/CASE?view=history": "History",
    "/data?view=results": "Earlier results",
    "/administration?view=audit": "Who did what",
    "/administration?view=versions": "Servers",
}


@pytest.fixture
def phone(browser: Browser, server: WebServer) -> Iterator[Page]:
    with watched(browser, server.url, size=PHONE) as context:
        yield context.page()


@pytest.mark.parametrize("address", LISTS)
def test_lists_have_two_lines_a_row_on_a_phone(server: WebServer, phone: Page, address: str) -> None:
    phone.goto(address.replace("CASE", server.ended("survey")))
    grid = phone.get_by_role("grid", name=LISTS[address])
    expect(grid.locator("[data-row] .lines").first).to_be_visible()
    sizes = grid.evaluate("each => [each.scrollWidth, each.clientWidth]")
    assert sizes[0] == sizes[1], "it is moved sideways"


def test_columns_that_have_no_room_on_a_tablet_are_lines_of_a_row(server: WebServer, phone: Page) -> None:
    phone.goto(f"/cases/{server.ended('survey')}?view=items")
    for width, lines in ((820, 1), (1280, 0), (900, 1)):
        phone.set_viewport_size({"width": width, "height": 900})
        expect(phone.locator("[data-row]").first.locator(".lines")).to_have_count(lines)
    grid = phone.get_by_role("grid", name="Items").evaluate("each => [each.scrollWidth, each.clientWidth]")
    assert grid[0] == grid[1], "it is moved sideways"


@pytest.mark.parametrize("address", ["/cases/CASE?view=compare", "/administration?view=versions"])
def test_the_tab_that_is_shown_is_in_sight_on_a_phone(server: WebServer, phone: Page, address: str) -> None:
    phone.goto(address.replace("CASE", server.ended("survey")))
    tab = phone.locator(".tab[aria-current]")
    expect(tab).to_be_in_viewport(ratio=0.9)


def test_what_can_be_done_stands_beside_a_short_title_on_a_phone(phone: Page) -> None:
    phone.goto("/")
    title, act = phone.get_by_role("heading", name="Home"), phone.locator(".page-actions a", has_text="New run")
    expect(act).to_be_visible()
    places = [each.bounding_box() for each in (title, act)]
    assert places[0] and places[1] and abs(places[0]["y"] - places[1]["y"]) < 20


def test_the_pages_open_above_an_open_item_on_a_phone(server: WebServer, phone: Page) -> None:
    phone.goto(f"/cases/{server.ended('survey')}?view=items")
    phone.locator("[data-row]").first.click()
    expect(phone.locator(".details-pane")).to_be_visible()
    phone.locator(".nav-button").click()
    phone.get_by_role("navigation", name="Pages").get_by_role("link", name="Failures").click(timeout=5_000)
    expect(phone).to_have_url(re.compile("/failures"))


def test_each_attempt_is_told_whole_on_a_phone(server: WebServer, phone: Page) -> None:
    phone.goto(f"/cases/{server.ended('broken')}?view=items")
    phone.locator("[data-row]").first.click()
    attempts = phone.locator(".attempts")
    expect(attempts).to_be_visible()
    sizes = attempts.evaluate("each => [each.scrollWidth, each.parentElement.clientWidth]")
    assert sizes[0] <= sizes[1], "it is cut off"


WORDY = """
name: wordy
jobs:
  talk:
    retries: 0
    run: for i in $(seq 40); do echo "line $i says what a line of this kind has to say of it"; done; exit 3
"""


def test_no_line_of_what_was_printed_last_is_cut_on_a_phone(server: WebServer, phone: Page) -> None:
    server.deploy("wordy", WORDY)
    phone.goto(f"/cases/{server.ended('wordy')}?view=items&item=talk")
    shown = phone.get_by_role("region", name="End of the log of")
    expect(shown.first).to_be_visible()
    cut, scrolled = shown.first.evaluate(
        """pre => {
            const line = parseFloat(getComputedStyle(pre).lineHeight);
            const top = pre.scrollTop / line;
            const padding = parseFloat(getComputedStyle(pre).paddingTop);
            return [Math.abs(top - Math.round(top)) + padding, pre.scrollTop];
        }"""
    )
    assert scrolled > 0 and cut < 0.1
