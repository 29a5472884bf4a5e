"""On a small laptop, tables show what they have: nothing is cut off, and nothing has to be moved sideways."""  # UI-1

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect

from tests.web.recovery_case import fail, passing_trouble
from tests.web.watched import watched
from tests.web.web_server import WebServer

LAPTOP: ViewportSize = {"width": 1280, "height": 800}
THIRSTY = """
name: thirsty
jobs:
  drink: {run: echo drinking, cpus: 4000}
"""


@pytest.fixture
def laptop(browser: Browser, recovery: WebServer) -> Iterator[Page]:
    with watched(browser, recovery.url, size=LAPTOP) as context:
        yield context.page()


def fits(box: Locator) -> bool:
    return bool(box.evaluate("each => each.scrollWidth <= each.clientWidth + 1"))


def test_tables_fit(recovery: WebServer, laptop: Page) -> None:
    passing_trouble(recovery, "gull", "the gull has flown off with the catch", code=23)
    group, cases = fail(recovery, "gull", "AB")
    laptop.goto("/cases")
    grid = laptop.get_by_role("grid", name="Cases")
    expect(grid.locator(f'[data-row="{cases[0]}"]')).to_be_visible()
    assert fits(grid)
    laptop.goto("/failures")
    grid = laptop.get_by_role("grid", name="Failures by cause")
    expect(grid.locator(f'[data-row="{group}"]')).to_be_visible()
    assert fits(grid)
    laptop.goto(f"/cases/{cases[0]}?view=items")
    grid = laptop.get_by_role("grid", name="Items")
    row = grid.locator("[data-row]").first
    row.click()
    expect(laptop.get_by_role("complementary")).to_be_visible()
    expect(row).to_be_visible()
    assert fits(grid)
    for head in grid.get_by_role("columnheader").all():
        assert fits(head), head.inner_text()
    laptop.goto(f"/failures/{group}/teach")
    placeholder = laptop.locator(".cm-placeholder")
    expect(placeholder).to_have_text("such as fault.exit_code == 7")
    assert placeholder.evaluate("each => getComputedStyle(each).fontStyle") == "italic"


def test_panels_of_home_fill_two_columns_in_the_order_in_which_they_are_read(recovery: WebServer, laptop: Page) -> None:
    passing_trouble(recovery, "skua", "the skua rests on the mast", code=24)
    _, cases = fail(recovery, "skua", "ABCDEF")
    recovery.wait_for("/alerts", lambda alerts: set(cases) <= {each["case"] for each in alerts})
    laptop.goto("/")
    panels = laptop.locator(".home-columns > .panel")
    expect(panels.last.locator(".home-alert")).to_have_count(6)
    boxes = [box for each in panels.all() if (box := each.bounding_box()) is not None]
    first = [each for each in boxes if each["x"] == boxes[0]["x"]]
    second = boxes[len(first) :]
    assert [each["y"] for each in first] == sorted(each["y"] for each in first)
    assert {each["x"] for each in second} == {boxes[-1]["x"]}, "the first column, then the other"
    ends = [column[-1]["y"] + column[-1]["height"] for column in (first, second)]
    assert abs(ends[0] - ends[1]) < boxes[-1]["height"] / 2


def test_cut_text_is_whole_beside_the_link_that_has_the_focus(recovery: WebServer, laptop: Page) -> None:
    passing_trouble(recovery, "auk", "the auk sits on the cable", code=26)
    case = recovery.begin("auk", sample="plate-" + "0" * 80 + "-north")
    laptop.goto("/")
    link = laptop.get_by_role("list", name="Cases that run").get_by_role("link").filter(has_text=case)
    link.focus()
    whole = laptop.locator(".cut-text")
    expect(whole).to_contain_text("-north")
    laptop.keyboard.press("Tab")
    expect(whole.filter(has_text="-north")).to_have_count(0)
    laptop.keyboard.press("Shift+Tab")
    expect(whole).to_contain_text("-north")
    laptop.keyboard.press("Escape")
    expect(whole).to_have_count(0)


def test_a_case_in_which_nothing_runs_says_why_and_what_can_be_done(recovery: WebServer, laptop: Page) -> None:
    recovery.deploy("thirsty", THIRSTY)
    case = recovery.begin("thirsty")
    try:
        laptop.goto("/cases?flow=thirsty")
        expect(laptop.locator(f'[data-row="{case}"]')).to_contain_text("no pilot can take it")
        laptop.goto(f"/cases/{case}")
        offered = laptop.get_by_role("group", name="What can be done")
        expect(offered.get_by_role("link", name="Add a pilot")).to_be_visible()
        expect(offered.get_by_role("button", name="Cancel")).to_be_visible()
    finally:
        recovery.client.cancel(case)
