"""The items of a case as a list: of a loop over samples some fail, and the flow goes on."""  # UI-1

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect

from mendflow.core.model.ids import CaseId
from tests.web.watched import watched
from tests.web.web_server import WebServer

TABLET: ViewportSize = {"width": 800, "height": 800}
JOBS = "/jobs?where=state%20%3D%3D%20%27completed%27"
SAMPLES = """
name: samples
jobs:
  align:
    for-each: {sample: "${{ range(20).map(i, 'S' + string(i)) }}", tolerate: 5}
    retries: 0
    run: |
      for block in $(seq 200); do echo "reading block $block of ${{ sample }}"; done
      case ${{ sample }} in S2|S4|S17)
        echo "ERROR: the reference genome of ${{ sample }} has no index, so that nothing of it can be placed; \
      whoever prepared the genome is to run the indexer once more and to put its files beside the genome" >&2
        exit 4;;
      esac
  report: {needs: align, run: echo reporting}
"""

BRIGHTNESS = """
name: brightness
jobs:
  measure-brightness: {for-each: {star: "${{ range(12).map(i, 'NGC-' + string(7000 + i)) }}"}, run: echo measured}
"""


@pytest.fixture(scope="module")
def case(server: WebServer) -> CaseId:
    """Completed, although some of its items failed."""
    server.deploy("samples", SAMPLES)
    return server.ended("samples")


@pytest.fixture
def tablet(browser: Browser, server: WebServer) -> Iterator[Page]:
    with watched(browser, server.url, size=TABLET) as context:
        yield context.page()


def items_of(page: Page) -> Locator:
    return page.get_by_role("grid", name="Items")


APART = """() => {
    const rows = [...document.querySelectorAll('[role="grid"][aria-label="Items"] [data-row]')];
    rows.sort((one, other) => one.dataset.index - other.dataset.index);
    const places = rows.map((row) => row.getBoundingClientRect());
    return places.every((place, at) => at + 1 === places.length || place.bottom <= places[at + 1].top + 1);
}"""


def test_rows_stay_apart_when_other_rows_are_asked_for(tablet: Page, case: CaseId) -> None:
    tablet.goto(f"/cases/{case}?view=items")
    expect(items_of(tablet).locator('[data-row="align[2]"]')).to_be_visible()
    for state, count in (("failed", 3), ("completed", 18), ("all", 21)):
        tablet.get_by_role("navigation", name="State of items").get_by_role("link", name=state, exact=True).click()
        expect(items_of(tablet)).to_have_attribute("aria-rowcount", str(count + 1))
        tablet.wait_for_function(APART)


def test_an_item_is_found_by_what_it_is_for_and_by_why_it_failed(page: Page, case: CaseId) -> None:
    page.goto(f"/cases/{case}?view=items")
    rows = items_of(page).locator("[data-row]")
    page.get_by_role("searchbox", name="Find an item").fill("s17")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("align[17] S17")
    expect(page).to_have_url(re.compile("find=s17"))
    rows.click()
    expect(page.get_by_role("complementary", name="Item align[17]")).to_be_visible()
    page.reload()
    expect(page.get_by_role("searchbox", name="Find an item")).to_have_value("s17")
    expect(rows).to_have_count(1)
    page.get_by_role("searchbox", name="Find an item").fill("INDEX align")
    expect(rows).to_have_count(3)
    page.get_by_role("searchbox", name="Find an item").fill("nobody")
    expect(page.get_by_text("No item matches")).to_be_visible()
    page.get_by_role("link", name="Show all items").click()
    expect(page.get_by_role("searchbox", name="Find an item")).to_have_value("")
    expect(items_of(page)).to_have_attribute("aria-rowcount", "22")


def test_that_items_failed_is_said_wherever_a_case_is_said_to_have_completed(page: Page, case: CaseId) -> None:
    def leads_to_them(link: Locator) -> None:
        link.click()
        expect(items_of(page)).to_have_attribute("aria-rowcount", "4")

    page.goto("/")
    told = page.get_by_role("list", name="Cases that completed, though items failed")
    leads_to_them(told.get_by_role("link", name=re.compile(f"{case}.*completed, 3 of 21 items failed")))
    page.goto("/cases")
    leads_to_them(page.locator(f'[data-row="{case}"]').get_by_role("link", name="3 of 21 items failed"))
    page.goto(f"/cases/{case}")
    expect(page.get_by_text("3 of 21 items failed, and the flow went on")).to_be_visible()
    leads_to_them(page.get_by_role("heading", name=str(case)).get_by_role("link", name="3 of 21 items failed"))


def test_what_a_loop_let_fail_has_acts_that_do_something(page: Page, case: CaseId) -> None:
    page.goto(f"/cases/{case}?view=items&item=align%5B17%5D")
    pane = page.get_by_role("complementary", name="Item align[17]")
    acts = pane.get_by_role("group", name="What can be done about align[17]")
    expect(acts.get_by_role("link", name="Teach for the next time")).to_have_attribute("href", re.compile("/teach"))
    acts.get_by_role("link", name="Its cause in Failures").click()
    expect(page.get_by_role("link", name="Teach", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Mend once")).to_have_count(0)
    page.go_back()
    acts.get_by_role("button", name="Run again what failed (3 items)").click()
    page.get_by_role("dialog").get_by_role("button", name="Run again what failed (3 items)").click()
    expect(page).not_to_have_url(re.compile(case))
    expect(page.get_by_role("link", name=case).first).to_be_visible()
    page.get_by_role("navigation", name="Views of the case").get_by_role("link", name="Items").click()
    expect(items_of(page).locator("[data-row]").filter(has_text="cached")).to_have_count(18)
    expect(items_of(page).locator('[data-row="align[17]"]')).to_contain_text("failed")


def test_the_log_of_what_failed_opens_at_the_line_that_says_so(page: Page, case: CaseId) -> None:
    page.goto(f"/cases/{case}?view=items&item=align%5B17%5D")
    pane = page.get_by_role("complementary", name="Item align[17]")
    log = pane.get_by_role("region", name="Log of")
    line = log.locator("[data-tells]")
    expect(line).to_contain_text("The line that matters: ERROR: the reference genome of S17")
    expect(log.get_by_role("button", name="Link to line 201")).to_be_attached()
    pane.get_by_role("button", name="Beginning").click()
    expect(log.get_by_text("reading block 1 of S17", exact=True)).to_be_visible()
    expect(line).to_have_count(0)
    pane.get_by_role("button", name="The line that matters").click()
    expect(line).to_be_in_viewport()
    page.goto(f"/cases/{case}?view=items&item=align%5B1%5D")
    expect(page.get_by_role("region", name="Log of").get_by_text("reading block 1 of S1", exact=True)).to_be_visible()


@pytest.mark.parametrize("width", [720, 900, 1100])
def test_tables_show_what_they_have_on_screens_between_a_phone_and_a_laptop(
    browser: Browser, server: WebServer, case: CaseId, width: int
) -> None:
    server.ended("broken")
    with watched(browser, server.url, size={"width": width, "height": 700}) as context:
        page = context.page()
        for path in ("/cases", f"/cases/{case}?view=items", "/pilots", JOBS, "/failures", "/rules"):
            page.goto(path)
            grid = page.get_by_role("grid")
            expect(grid.locator("[data-row]").first).to_be_visible()
            page.wait_for_function("() => document.fonts.status === 'loaded'")
            over = grid.evaluate("grid => grid.scrollWidth - grid.clientWidth")
            assert over <= 1, f"{path} is {over} pixels too wide"
        page.goto(f"/cases/{case}?view=items")
        expect(items_of(page).locator("[data-row]").first).to_be_visible()
        page.wait_for_function(APART)


def test_times_are_relative_everywhere_and_are_copied_whole(page: Page, case: CaseId) -> None:
    page.goto(f"/cases/{case}?view=history")
    shown = page.get_by_role("grid", name="History").locator("time").first
    expect(shown).to_have_text(re.compile("ago|just now"))
    whole = shown.get_attribute("datetime") or ""
    expect(shown).to_have_attribute("title", re.compile(re.escape(whole)))
    page.evaluate("addEventListener('copy', (event) => (window.copied = event.clipboardData.getData('text/plain')))")
    shown.evaluate("time => getSelection().selectAllChildren(time)")
    page.keyboard.press("Control+c")
    page.wait_for_function("whole => window.copied === whole", arg=whole)


def test_names_of_items_have_the_room_that_nothing_else_needs(page: Page, server: WebServer) -> None:
    server.deploy("brightness", BRIGHTNESS)
    measured = server.ended("brightness")
    page.goto(f"/cases/{measured}?view=items")
    grid = items_of(page)
    row = grid.locator('[data-row="measure-brightness[7]"]')
    expect(row).to_contain_text("NGC-7007")
    lines = (
        row.get_by_role("gridcell")
        .nth(1)
        .evaluate(
            "cell => { const all = document.createRange(); all.selectNodeContents(cell);"
            " return new Set([...all.getClientRects()].map((each) => Math.round(each.bottom))).size }"
        )
    )
    assert lines == 1
