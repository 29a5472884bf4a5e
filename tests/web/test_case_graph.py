"""The graph of a case, by mouse, by keyboard and by finger."""  # UI-1

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.watched import PHONE, watched
from tests.web.web_server import WebServer

IN_SIGHT = """(ids) => {
    const graph = document.querySelector(".case-graph")?.getBoundingClientRect();
    return graph && ids.every((id) => {
        const card = document.querySelector(`[data-node="${id}"]`)?.getBoundingClientRect();
        return card && card.left >= graph.left && card.right <= graph.right;
    });
}"""
"""Whether the cards of these nodes are wholly within the graph's width."""
DRAWN = "() => document.querySelector('.react-flow__viewport').style.transform"
SCROLLED = "() => document.querySelector('main').scrollTop"
LINE = "name: line\njobs:\n  job0: {run: exit 3, retries: 0}\n" + "".join(
    f"  job{at}: {{needs: job{at - 1}, run: echo {at}}}\n" for at in range(1, 9)
)
"""So many jobs one after the other that a phone cannot show them all; the first one fails."""
WIDE = "name: wide\njobs:\n  split: {run: echo 0}\n" + "".join(
    f"  part{at}: {{needs: split, run: echo {at}}}\n" for at in range(6)
)
WIDE += "  join: {needs: [part0, part1, part2, part3, part4, part5], run: echo 1}\n"
"""More side by side than a phone is wide."""


INNER = "name: inner\njobs:\n  one: {run: echo 1}\n  two: {needs: one, run: echo 2}\n"
OUTER = "name: outer\njobs:\n  first: {run: echo 0}\n  called: {needs: first, call: inner}\n"


@pytest.fixture
def phone(browser: Browser, server: WebServer) -> Iterator[Page]:
    with watched(browser, server.url, size=PHONE) as context:
        yield context.page()


def test_a_card_opens_its_item_wherever_it_is_clicked(server: WebServer, page: Page) -> None:
    page.goto(f"/cases/{server.ended('broken')}")
    card, pane = page.locator('[data-node="prepare"]'), page.get_by_role("complementary", name="Item prepare")
    size = card.bounding_box()
    assert size is not None
    page.mouse.click(size["x"] + size["width"] - 6, size["y"] + size["height"] - 6)
    expect(pane).to_be_visible()
    pane.get_by_role("button", name="Close details").click()
    expect(pane).not_to_be_visible()
    card.get_by_role("button", name="prepare: 1 completed").press("Enter")
    expect(pane).to_be_visible()


def test_the_wheel_over_the_graph_moves_the_page_and_zooms_with_ctrl(server: WebServer, phone: Page) -> None:
    phone.set_viewport_size({"width": 390, "height": 500})
    phone.goto(f"/cases/{server.ended('survey')}")
    phone.locator("[data-node]").last.hover()
    before = phone.evaluate(DRAWN)
    place = phone.evaluate(SCROLLED)
    assert place > 0, "the graph is below the first screen, or the page could not be moved"
    phone.mouse.wheel(0, -40)
    phone.wait_for_function(f"(before) => ({SCROLLED})() < before", arg=place)
    assert phone.evaluate(DRAWN) == before
    phone.keyboard.down("Control")
    phone.mouse.wheel(0, -90)
    phone.wait_for_function(f"(before) => ({DRAWN})() !== before", arg=before)
    phone.keyboard.up("Control")


def test_a_phone_shows_the_whole_graph_at_first(server: WebServer, phone: Page) -> None:
    phone.goto(f"/cases/{server.ended('broken')}")
    phone.wait_for_function(IN_SIGHT, arg=["prepare", "measure", "report"])
    phone.set_viewport_size({"width": 844, "height": 390})
    phone.wait_for_function("() => document.querySelector('.case-graph')?.clientWidth > 600")
    phone.wait_for_function(IN_SIGHT, arg=["prepare", "measure", "report"])


def test_a_phone_reads_a_long_graph_from_top_to_bottom(server: WebServer, phone: Page) -> None:
    server.deploy("line", LINE)
    phone.goto(f"/cases/{server.ended('line')}")
    phone.wait_for_function(IN_SIGHT, arg=[f"job{at}" for at in range(9)])
    names = phone.locator(".case-node-name")
    assert min(box["height"] for box in (each.bounding_box() for each in names.all()) if box) >= 12, "it can be read"
    last = phone.locator('[data-node="job8"]')
    last.scroll_into_view_if_needed()
    expect(last).to_be_in_viewport()
    expect(phone.locator(".react-flow__minimap")).to_have_count(0)


def test_a_graph_is_placed_anew_when_a_tablet_is_turned(server: WebServer, phone: Page) -> None:
    server.deploy("short", LINE.partition("  job4")[0].replace("line", "short"))
    phone.set_viewport_size({"width": 660, "height": 880})
    phone.goto(f"/cases/{server.ended('short')}")
    is_below = """() => {
        const [first, last] = ["job0", "job3"].map(id => document.querySelector(`[data-node="${id}"]`));
        return first && last && last.getBoundingClientRect().top > first.getBoundingClientRect().bottom;
    }"""
    phone.wait_for_function(is_below)
    phone.set_viewport_size({"width": 880, "height": 660})
    phone.wait_for_function(f"() => document.querySelector('[data-node=job3]') && !({is_below})()")
    phone.set_viewport_size({"width": 660, "height": 880})
    phone.wait_for_function(is_below)


def test_a_graph_too_long_for_a_phone_begins_with_what_failed(server: WebServer, phone: Page) -> None:
    server.deploy("line", LINE)
    phone.goto(f"/cases/{server.ended('line')}")
    phone.wait_for_function(IN_SIGHT, arg=["job0"])


@pytest.mark.parametrize("width", [360, 390, 430])
def test_what_is_side_by_side_goes_on_in_the_next_row_on_a_phone(server: WebServer, phone: Page, width: int) -> None:
    server.deploy("wide", WIDE)
    phone.set_viewport_size({"width": width, "height": 844})
    phone.goto(f"/cases/{server.ended('wide')}")
    phone.wait_for_function(IN_SIGHT, arg=["split", *(f"part{at}" for at in range(6)), "join"])
    names = phone.locator(".case-node-name")
    assert min(box["height"] for box in (each.bounding_box() for each in names.all()) if box) >= 12, "it can be read"
    assert phone.evaluate("document.documentElement.scrollWidth") == width
    main = phone.locator("main").evaluate("each => [each.scrollWidth, each.clientWidth]")
    assert main[0] == main[1], "the page is moved sideways"


def test_nothing_moves_while_a_case_comes_on_a_phone(server: WebServer, phone: Page) -> None:
    """Neither when its words come nor when its graph does, which is loaded after them."""
    phone.add_init_script(
        "window.moved = 0; new PerformanceObserver((list) => list.getEntries().forEach((each) =>"
        " { window.moved += each.value; })).observe({type: 'layout-shift', buffered: true});"
    )
    phone.goto(f"/cases/{server.ended('broken')}")
    phone.wait_for_function(IN_SIGHT, arg=["prepare", "measure", "report"])
    phone.wait_for_timeout(500)
    assert phone.evaluate("window.moved") < 0.01
    preloaded = phone.locator("link[rel=modulepreload][media]").evaluate_all(
        "(links) => links.map((each) => matchMedia(each.media).matches)"
    )
    assert preloaded and not any(preloaded)


def test_a_chain_is_a_straight_line_on_the_page_of_its_case_and_before_it_runs(server: WebServer, page: Page) -> None:
    more = "jobs:\n  a: {run: echo}\n  b: {needs: a, run: echo}\n  c: {needs: [a, b], run: echo}\n"
    server.deploy("chain", f"name: chain\n{more}  d: {{needs: [a, b, c], run: echo}}\n")
    page.goto(f"/cases/{server.ended('chain')}")
    expect(page.locator("[data-node]")).to_have_count(4)
    boxes = [each.bounding_box() for each in page.locator("[data-node]").all()]
    assert len({round(box["y"]) for box in boxes if box}) == 1
    names = page.locator(".case-node-name")
    assert min(box["height"] for box in (each.bounding_box() for each in names.all()) if box) >= 14, "it can be read"
    page.goto("/run/chain")
    expect(page.get_by_role("img", name="chain: a, b, c, d")).to_have_attribute("data-direction", "right")
    expect(page.locator(".flow-edge")).to_have_count(3)


def test_ui_1_a_graph_that_was_only_clicked_in_is_fitted_to_its_frame(server: WebServer, page: Page) -> None:
    server.deploy("inner", INNER)
    server.deploy("outer", OUTER)
    page.goto(f"/cases/{server.ended('outer')}")
    card = page.locator('[data-node="first"]')
    size = card.bounding_box()
    assert size is not None
    fitted = page.evaluate(DRAWN)
    page.mouse.move(size["x"] + 100, size["y"] + 40)
    page.mouse.down()
    page.mouse.move(size["x"] + 102, size["y"] + 41)
    page.wait_for_function(f"(before) => ({DRAWN})() !== before", arg=fitted)
    page.mouse.up()
    page.get_by_role("button", name="Fold called").click()
    page.get_by_role("button", name="Unfold called").click()
    page.wait_for_function(f"(before) => ({DRAWN})() === before", arg=fitted)  # a hand that trembles has not moved it
    page.get_by_role("button", name="Zoom In").click()
    page.wait_for_function(f"(before) => ({DRAWN})() !== before", arg=fitted)
