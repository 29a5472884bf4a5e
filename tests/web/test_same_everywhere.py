"""What several pages say of one thing, they say alike: how far a case is, how long it took, and why something waits."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from mendflow.core.scheduling.amounts import duration
from tests.web.recovery_case import fail, passing_trouble
from tests.web.watched import watched
from tests.web.web_server import WebServer

MIXED = """
name: mixed
jobs:
  prepare: {run: echo preparing}
  measure:
    needs: prepare
    for-each: "${{ range(3) }}"
    run: echo measuring
  never: {needs: measure, if: "1 > 2", run: echo never}
  approve:
    needs: measure
    user-task: Approve the measurements
    role: operator
  publish: {needs: approve, run: echo publishing}
"""
GREEDY = """
name: greedy
jobs:
  wide: {run: echo wide, resources: {cpus: 640}}
  after: {needs: wide, run: echo after}
"""


@pytest.fixture(scope="module")
def mixed(server: WebServer) -> Iterator[str]:
    """A case of which four items are done, one is skipped, one waits for a person, and one has not begun."""
    server.deploy("mixed", MIXED)
    case = server.begin("mixed")
    server.wait_for(f"/cases/{case}", lambda view: view["tasks_open"] == 1)
    yield case
    server.client.cancel(case)


@pytest.fixture(scope="module")
def greedy(server: WebServer) -> Iterator[str]:
    """A case whose job no pilot can take."""
    server.deploy("greedy", GREEDY)
    case = server.begin("greedy")
    server.wait_for(f"/jobs?case={case}", bool)
    yield case
    server.client.cancel(case)


def test_ui_1_how_far_a_case_is_reads_the_same_on_every_page(server: WebServer, page: Page, mixed: str) -> None:
    counted = re.compile(
        r"^4 of 7 items completed: 1 waiting, 1 skipped, 1 not begun\. Counted are jobs, user tasks and called flows,"
    )
    page.goto("/")
    running = page.get_by_role("list", name="Cases that run").get_by_role("listitem").filter(has_text=mixed)
    expect(running.locator(".case-progress")).to_have_text("4/7, 1 skipped")
    expect(running.locator(".case-progress")).to_have_attribute("title", counted)
    page.goto(f"/cases?at={mixed}")
    for place in (
        page.locator(f'[data-row="{mixed}"] .case-progress'),
        page.get_by_role("complementary", name=f"Case {mixed}").locator(".case-progress"),
    ):
        expect(place).to_have_text("4/7, 1 skipped")
        expect(place).to_have_attribute("title", counted)
    page.goto(f"/cases/{mixed}?view=items")
    expect(page.locator(".case-lead-bar .case-progress")).to_have_text("4/7, 1 skipped")
    expect(page.get_by_role("link", name="Items")).to_have_text("Items6 of 7")
    expect(page.get_by_role("grid", name="Items")).to_have_attribute("aria-rowcount", "7")  # with the head
    expect(page.locator('[data-row="never"]')).to_contain_text("skipped")
    expect(page.locator('[data-row="approve"]')).to_contain_text("waits for a person")


def test_ui_1_a_row_says_why_it_waits_without_asking_for_each(server: WebServer, page: Page, greedy: str) -> None:
    asked: list[str] = []

    def note(request: Request) -> None:
        if "/api/v1/why" in request.url:
            asked.append(request.url)

    page.on("request", note)
    page.goto(f"/jobs?where=case%20%3D%3D%20%27{greedy}%27")
    row = page.get_by_role("grid", name="Jobs").get_by_role("row").filter(has_text="wide")
    expect(row).to_contain_text("no pilot can take it")
    assert not asked
    page.goto(f"/cases/{greedy}?view=items")
    item = page.locator('[data-row="wide"]')
    expect(item).to_contain_text("no pilot can take it")
    expect(item.get_by_title(re.compile("640"))).to_be_visible()
    assert [each.rpartition("=")[2] for each in asked] == [greedy], "only the case itself is asked about"


def test_ui_1_how_long_a_case_took_reads_the_same_on_every_page(server: WebServer, page: Page) -> None:
    case = server.ended("quick")
    view = server.client.case(case)
    took = duration(view.ended_at - view.started_at)
    page.goto("/cases")
    expect(page.locator(f'[data-row="{case}"] .duration')).to_have_text(took)
    page.locator(f'[data-row="{case}"]').click()
    expect(page.get_by_role("complementary", name=f"Case {case}").locator(".duration").first).to_have_text(took)
    page.goto(f"/cases/{case}")
    expect(page.locator(".case-lead .duration")).to_have_text(took)
    expect(page.get_by_role("region", name=f"Why {case}")).to_contain_text(f"completed after {took}")


def test_ui_1_who_started_a_case_stands_in_the_list(server: WebServer, page: Page) -> None:
    case = server.ended("quick")
    owner = server.client.case(case).owner
    assert owner
    page.goto("/cases?flow=quick")
    expect(page.get_by_role("columnheader", name="Started by")).to_be_visible()
    expect(page.locator(f'[data-row="{case}"]')).to_contain_text(owner)


def test_ui_1_teaching_begins_with_what_tells_the_cases_apart(recovery: WebServer, browser: Browser) -> None:
    passing_trouble(recovery, "apart", "the shutter is stuck", code=61)
    group, _ = fail(recovery, "apart", "AB")
    with watched(browser, recovery.url) as context:
        page = context.page()
        page.goto(f"/failures/{group}")
        table = page.get_by_role("table", name="What tells these cases apart")
        exit_code = table.get_by_role("row").filter(has_text="fault.exit_code")
        expect(exit_code).to_contain_text("61")
        expect(exit_code.get_by_role("cell").nth(1)).to_have_text("all")
        expect(exit_code.get_by_role("cell").nth(2)).to_have_text("never")
        expect(page.get_by_role("table", name="Also the same")).to_have_count(0)
        page.get_by_role("button", name=re.compile("^Also the same in all 2: ")).click()
        expect(page.get_by_role("table", name="Also the same")).to_be_visible()
        expect(page.locator("main")).not_to_contain_text("2 of 2")
        page.goto(f"/failures/{group}/teach")
        context_of_case = page.get_by_role("group", name="Context of the case")
        expect(context_of_case.get_by_title("fault.exit_code", exact=True)).to_be_visible()
        expect(page.get_by_role("heading", name="What tells these cases apart")).to_be_visible()
        expect(context_of_case).not_to_contain_text("2 of 2")
        expect(context_of_case).not_to_contain_text("failures_lately")
        expect(page.get_by_role("group", name="Also the same")).to_have_count(0)
        page.get_by_role("button", name="Also the same in all 2").click()
        same = page.get_by_role("group", name="Also the same")
        expect(same).to_be_visible()
        expect(same).not_to_contain_text(re.compile(r"\d of \d+ here"))
        expect(same.get_by_title(re.compile(r"\bexit_code$"))).to_have_count(0)
        page.get_by_role("button", name="More that tells these cases apart").click()
        more = page.get_by_role("group", name="More values")
        expect(more.get_by_title(re.compile(r"\bexit_code$")).first).to_be_visible()
