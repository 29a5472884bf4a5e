"""What waits for a person is seen as that wherever its case is shown, and leads to its task. The filters of the list of
cases do what they say, and what is selected is what is seen."""  # UI-1

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from mendflow.core.model.ids import CaseId
from tests.web.dialogs import noted
from tests.web.test_worklist_page import LETTER
from tests.web.watched import PHONE, Complaints, watched
from tests.web.web_server import WebServer, serving

TITLE = "May the letter go out?"
OUTER = """
name: outer
jobs:
  inside: {call: quick}
"""
TALKATIVE = """
name: talkative
steps: [echo hello]
outputs: {a: 1, b: 2, c: 3, d: 4, e: 5}
"""
CHAIN = """
name: chain
jobs:
  one: {run: echo 1}
  two: {needs: one, run: echo 2}
  three: {needs: two, run: echo 3}
  four: {needs: three, run: echo 4}
"""


@pytest.fixture(scope="module")
def letter(server: WebServer) -> Iterator[CaseId]:
    """A case that waits for an editor."""
    server.deploy("letter", LETTER)
    case = server.begin("letter")
    server.wait_for(f"/worklist?case={case}", bool)
    yield case
    server.client.cancel(case)


@pytest.fixture
def phone(browser: Browser, server: WebServer) -> Iterator[Page]:
    with watched(browser, server.url, size=PHONE) as context:
        yield context.page()


def row(case: str) -> str:
    return f'[data-row="{case}"]'


def test_a_case_that_waits_for_a_person_leads_to_its_task(server: WebServer, page: Page, letter: CaseId) -> None:
    other = server.ended("quick")
    page.goto("/cases")
    expect(page.locator(row(other))).to_be_visible()
    expect(page.locator(row(letter))).to_contain_text(f"waits for a person: {TITLE}")
    status = page.get_by_role("navigation", name="Status")
    status.get_by_role("link", name=re.compile("^for a person")).click()
    expect(page.locator(row(other))).to_have_count(0)
    expect(page.locator(row(letter))).to_contain_text("for a person")
    page.locator(row(letter)).get_by_role("link", name=letter).click()
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_contain_text("for a person")
    expect(heading.get_by_role("link", name=TITLE)).to_be_visible()
    expect(page.get_by_role("region", name="Why").first).to_contain_text("waits for a person")
    page.get_by_role("button", name="approve: 1 for a person").click()
    pane = page.get_by_role("complementary", name="Item approve")
    expect(pane).to_contain_text("for a person")
    page.get_by_role("link", name=re.compile("^Items")).click()
    page.locator(row("approve")).get_by_role("link", name="the task in the worklist").click()
    expect(page).to_have_url(re.compile(f"/worklist/{letter}/"))
    expect(page.get_by_role("heading", name=TITLE)).to_be_visible()
    expect(page.get_by_text("Its step fails, and without a handler or a rule")).to_be_visible()
    expect(page.get_by_text("what it does with a No for approved is up to the flow")).to_be_visible()


def test_a_note_covers_nothing(server: WebServer, page: Page, letter: CaseId) -> None:
    page.goto(f"/worklist/{server.client.worklist(case=letter)[0].id}")
    page.get_by_role("button", name="Claim").click()
    noted(page, "It is yours now")
    content, notes = page.locator("main").bounding_box(), page.get_by_role("log", name="Notes").bounding_box()
    assert content and notes and notes["height"] > 20
    assert content["y"] + content["height"] <= notes["y"] + 1
    page.get_by_role("button", name="Release").click()
    expect(page.get_by_role("button", name="Claim")).to_be_visible()


def test_cases_are_found_by_when_they_began_and_ended(server: WebServer, page: Page) -> None:
    case = server.ended("quick")
    page.goto("/cases?flow=quick")
    for label in ("Started", "Ended"):
        page.get_by_label(label, exact=True).select_option("today")
        expect(page.locator(row(case))).to_be_visible()
        page.get_by_label(label, exact=True).select_option("yesterday")
        expect(page.get_by_text("No case matches")).to_be_visible()
        page.get_by_label(label, exact=True).select_option("between")
        expect(page.locator(row(case))).to_be_visible()
        page.get_by_label(f"{label} before").fill("2020-01-01T00:00")
        page.get_by_label(f"{label} from").fill("2019-12-01T00:00")
        expect(page.get_by_text("No case matches")).to_be_visible()
        page.get_by_label(f"{label} before").fill("")
        expect(page.locator(row(case))).to_be_visible()
        page.reload()
        expect(page.get_by_label(f"{label} from")).to_have_value("2019-12-01T00:00")
        page.get_by_label(label, exact=True).select_option("")


def test_ui_1_a_filter_that_a_number_of_home_sets_is_seen_and_taken_away(server: WebServer, page: Page) -> None:
    case = server.ended("quick")
    page.goto("/")
    page.get_by_role("link", name=re.compile("Cases completed")).click()
    narrowed = page.get_by_role("group", name="Only cases that").get_by_role("button")
    expect(narrowed).to_contain_text(re.compile(r"^ended since \d{4}-\d\d-\d\d \d\d:\d\d: without what is not over"))
    narrowed.click()
    expect(narrowed).to_have_count(0)
    expect(page).not_to_have_url(re.compile("ended"))
    expect(page.locator(row(case))).to_be_visible()


def test_a_place_in_a_condition_is_one_in_what_was_typed(page: Page, complaints: Complaints) -> None:
    complaints.expected.append("400")
    page.goto("/cases?status=failed&flow=quick&where=done%20%3E%201%20%26%26%20strated%20!%3D%20null")
    expect(page.get_by_role("alert")).to_contain_text("character 13")
    page.goto("/jobs?state=waiting&where=nam%20%3D%3D%20%27a%27")
    expect(page.get_by_role("alert")).to_contain_text("character 1:")


def test_another_filter_leaves_nothing_selected_that_is_not_seen(server: WebServer, page: Page) -> None:
    good, bad = server.ended("quick"), server.ended("broken")
    page.goto("/cases")
    for case in (good, bad):
        page.get_by_role("checkbox", name=f"Select {case}").check()
    expect(page.get_by_role("toolbar")).to_contain_text("2 cases selected")
    page.get_by_label("Flow").select_option("quick")
    expect(page.locator(row(bad))).to_have_count(0)
    expect(page.get_by_role("toolbar")).to_have_count(0)
    page.get_by_label("Flow").select_option("")
    expect(page.locator(row(bad))).to_be_visible()
    expect(page.get_by_role("toolbar")).to_have_count(0)


def test_a_click_on_a_filter_takes_no_other_change_back_that_is_under_way(server: WebServer, page: Page) -> None:
    bad = server.ended("broken")
    page.goto("/cases")
    expect(page.locator(row(bad))).to_be_visible()
    page.evaluate(
        """() => {
            const flow = document.querySelector('select[aria-label="Flow"]');
            Object.getOwnPropertyDescriptor(HTMLSelectElement.prototype, "value").set.call(flow, "broken");
            flow.dispatchEvent(new Event("change", { bubbles: true }));
            const links = [...document.querySelectorAll('nav[aria-label="Status"] a')];
            links.find((each) => /failed/.test(each.textContent)).click();
        }"""
    )
    expect(page).to_have_url(re.compile("status=failed"))
    expect(page).to_have_url(re.compile("flow=broken"))
    expect(page.get_by_label("Flow")).to_have_value("broken")


def test_a_tab_takes_no_choice_back_that_is_under_way(page: Page, letter: CaseId) -> None:
    page.goto("/worklist")
    expect(page.get_by_label("Role")).to_contain_text("editor")
    page.evaluate(
        """() => {
            const role = document.querySelector('select[aria-label="Role"]');
            Object.getOwnPropertyDescriptor(HTMLSelectElement.prototype, "value").set.call(role, "editor");
            role.dispatchEvent(new Event("change", { bubbles: true }));
            const tabs = [...document.querySelectorAll('nav[aria-label="Which tasks"] a')];
            tabs.find((each) => /Ended/.test(each.textContent)).click();
        }"""
    )
    expect(page).to_have_url(re.compile("show=ended"))
    expect(page).to_have_url(re.compile("role=editor"))


def test_a_filter_stays_where_it_is_clicked_whatever_it_counts(server: WebServer, page: Page) -> None:
    over = server.begin("watching")
    server.client.cancel(over)
    server.came_to(over, "cancelled")
    page.goto("/cases")
    links = page.get_by_role("navigation", name="Status").get_by_role("link")
    expect(links.filter(has_text="cancelled")).to_have_text(re.compile("cancelled *[1-9]"))
    words = [text.rstrip("0123456789, \n") for text in links.all_inner_texts()]
    page.get_by_label("Flow").select_option("quick")
    expect(links.filter(has_text="cancelled")).to_have_text(re.compile("cancelled *0"))
    assert [text.rstrip("0123456789, \n") for text in links.all_inner_texts()] == words


def test_all_facts_of_a_reason_can_be_read(server: WebServer, page: Page) -> None:
    server.deploy("talkative", TALKATIVE)
    page.goto(f"/cases/{server.ended('talkative')}")
    why = page.get_by_role("region", name="Why").first
    expect(why).not_to_contain_text("output e")
    why.get_by_role("button", name=re.compile("^and . more$")).click()
    expect(why).to_contain_text("output e: 5")
    why.get_by_role("button", name="show less").click()
    expect(why).not_to_contain_text("output e")


def test_the_graph_stays_in_sight_beside_an_item(server: WebServer, page: Page) -> None:
    server.deploy("chain", CHAIN)
    page.goto(f"/cases/{server.ended('chain')}")
    page.get_by_role("button", name="one: 1 completed").click()
    expect(page.get_by_role("complementary", name="Item one")).to_be_visible()
    page.wait_for_function(
        """() => {
            const graph = document.querySelector(".case-graph").getBoundingClientRect();
            const pane = document.querySelector(".details-pane").getBoundingClientRect();
            const nodes = [...document.querySelectorAll(".case-node")].map((each) => each.getBoundingClientRect());
            return nodes.length === 4 && graph.right <= pane.left + 1
                && nodes.every((each) => each.left >= graph.left && each.right <= graph.right);
        }"""
    )


def test_cases_are_read_on_a_phone_without_moving_them_sideways(server: WebServer, phone: Page, letter: CaseId) -> None:
    phone.goto("/cases")
    grid = phone.get_by_role("grid", name="Cases")
    expect(grid.locator(row(letter))).to_contain_text(TITLE)
    for box in (grid, phone.locator("main"), phone.locator(".where-field")):
        assert box.evaluate("each => each.scrollWidth <= each.clientWidth + 1"), box
    link = grid.locator(row(letter)).get_by_role("link", name=letter)
    assert link.evaluate("each => each.parentElement.scrollWidth <= each.parentElement.clientWidth + 1")


def test_what_home_counts_is_what_its_links_show(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path) as own, watched(browser, own.url) as context:
        own.deploy("quick", "name: quick\nsteps: [echo quick]\n")
        own.deploy("outer", OUTER)
        own.deploy("letter", LETTER)
        for flow in ("quick", "outer", "outer"):
            own.ended(flow)
        letter = own.begin("letter")
        own.wait_for(f"/worklist?case={letter}", bool)
        page = context.page()
        page.goto("/")
        running = page.get_by_role("link", name=re.compile("^Cases running"))
        expect(running).to_contain_text("and 1 that waits for a person")
        expect(running.locator(".tile-count")).to_have_text("0")
        expect(page.get_by_text("user task that nobody has claimed", exact=True)).to_be_visible()
        slots = page.get_by_role("img", name=re.compile("^Slots: 0 of"))
        expect(slots.locator(".state-fill")).to_have_count(0)
        completed = page.get_by_role("link", name=re.compile("^Cases completed"))
        expect(completed.locator(".tile-count")).to_have_text("3")
        completed.click()
        status = page.get_by_role("navigation", name="Status")
        expect(status.get_by_role("link", name=re.compile("^completed"))).to_have_text("completed 3")
        expect(page.locator("[data-row]")).to_have_count(3)
        page.goto("/cases")
        expect(status.get_by_role("link", name=re.compile("^completed"))).to_have_text("completed 3")
        expect(status.get_by_role("link", name=re.compile("^for a person"))).to_have_text("for a person 1")
        expect(status.get_by_role("link", name=re.compile("^running"))).to_have_text("running 0")
        all_cases = [int(each.split()[-1]) for each in status.get_by_role("link").all_inner_texts()]
        assert all_cases[0] == 4 == sum(all_cases[1:]), all_cases
        page.goto("/data")
        page.get_by_role("link", name="See the cases and their files").click()
        expect(page).to_have_url(re.compile("/cases$"))
        own.client.cancel(letter)
