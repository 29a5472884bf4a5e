"""Acts on many cases at once, clicked: each says what it will do, does it, and reports every case."""  # UI-1

import pytest
from playwright.sync_api import Locator, Page, expect

from mendflow.core.model.ids import CaseId
from tests.patience import PATIENCE_S
from tests.web.recovery_case import fail, passing_trouble
from tests.web.web_server import WebServer

MANY = 103
"""More cases than the page loads at first."""
IDLE = """
name: idle
steps: [{wait: 5 h}]
"""


def select(page: Page, cases: list[CaseId]) -> None:
    for case in cases:
        page.get_by_role("checkbox", name=f"Select {case}").check()


def begin(page: Page, act: str) -> Locator:
    page.get_by_role("toolbar").get_by_role("button", name=act, exact=True).click()
    return page.get_by_role("dialog")


def finish(dialog: Locator, act: str, says: str) -> None:
    dialog.get_by_role("button", name=act, exact=True).click()
    expect(dialog.get_by_role("status")).to_contain_text(says, timeout=60_000)
    dialog.get_by_role("button", name="Close", exact=True).last.click()


def test_cases_are_suspended_resumed_and_cancelled_together(server: WebServer, page: Page) -> None:
    over, cases = server.ended("quick"), [server.begin("watching") for _ in range(2)]
    page.goto("/cases")
    select(page, [over, *cases])
    dialog = begin(page, "Suspend")
    expect(dialog).to_contain_text("1 case is left out: it does not run")
    finish(dialog, "Suspend 2 cases", "2 cases are being suspended.")
    for case in cases:
        server.came_to(case, "suspended")
        expect(page.locator(f'[data-row="{case}"]')).to_contain_text("suspended")
    finish(begin(page, "Resume"), "Resume 2 cases", "2 cases go on.")
    for case in cases:
        server.came_to(case, "running")
    dialog = begin(page, "Cancel")
    dialog.get_by_label("Reason").fill("not tonight")
    finish(dialog, "Cancel 2 cases", "2 cases are being cancelled.")
    for case in cases:
        server.came_to(case, "cancelled")
        assert "not tonight" in str(server.ask("GET", f"/cases/{case}/history"))
    assert server.client.case(over).status == "completed"
    cancel = page.get_by_role("toolbar").get_by_role("button", name="Cancel", exact=True)
    expect(cancel).to_be_disabled()
    expect(cancel).to_have_attribute("title", "Not for any of these cases: it is over")


def test_cases_are_run_again_together(server: WebServer, page: Page) -> None:
    before = [server.ended("quick") for _ in range(2)]
    page.goto("/cases?flow=quick")
    select(page, before)
    dialog = begin(page, "Run again")
    dialog.get_by_role("button", name="Run 2 cases again", exact=True).click()
    expect(dialog.get_by_role("status")).to_contain_text("2 cases are run again.")
    made = dialog.locator(".outcome-text a").all_inner_texts()
    assert len(made) == 2
    again = [server.client.wait(CaseId(each), timeout_s=PATIENCE_S) for each in made]
    assert {each.rerun_of for each in again} == set(before)
    assert {each.status for each in again} == {"completed"}


def test_the_rules_are_applied_to_cases_that_wait(server: WebServer, page: Page) -> None:
    passing_trouble(server, "ferry", "the ferry has left without us", code=21)
    group, cases = fail(server, "ferry", "ABC")
    rule = {"condition": "fault.exit_code == 21", "exlet": "try-again", "group": group}
    server.ask("POST", "/rule-drafts", rule)
    page.goto("/cases?flow=ferry")
    select(page, cases[:2])
    dialog = begin(page, "Apply the rules")
    expect(dialog).to_contain_text("are asked again about what failed in 2 cases")
    finish(dialog, "Apply the rules to 2 cases", "A rule takes up what failed in 2 cases.")
    for case in cases[:2]:
        server.came_to(case, "completed")
    assert server.client.case(cases[2]).status == "running", "a case that nobody chose was taken up"
    select(page, cases[2:])
    expect(page.get_by_role("toolbar")).to_contain_text("3 cases selected")
    dialog = begin(page, "Apply the rules")
    expect(dialog).to_contain_text("2 cases are left out: nothing in it has failed or waits")
    finish(dialog, "Apply the rules to 1 case", "A rule takes up what failed in 1 case.")
    server.came_to(cases[2], "completed")


@pytest.fixture(scope="module")
def idle(server: WebServer) -> list[CaseId]:
    server.deploy("idle", IDLE)
    return [server.begin("idle") for _ in range(MANY)]


def test_all_that_match_are_cancelled_also_those_beyond_the_page(
    server: WebServer, page: Page, idle: list[CaseId]
) -> None:
    page.goto("/cases?flow=idle&status=running")
    page.get_by_role("checkbox", name="Select all rows that are loaded").check()
    expect(page.get_by_role("toolbar")).to_contain_text("100 cases selected")
    page.get_by_role("button", name="Select all that match").click()
    expect(page.get_by_role("toolbar")).to_contain_text(f"{MANY} cases selected")
    dialog = begin(page, "Cancel")
    expect(dialog).to_contain_text(f"{MANY} cases end now")
    finish(dialog, f"Cancel {MANY} cases", f"{MANY} cases are being cancelled.")
    expect(page.get_by_text("No case matches")).to_be_visible()
    assert {server.client.case(case).status for case in (idle[0], idle[-1])} == {"cancelled"}
    assert server.ask("GET", "/cases/count?where=flow%20%3D%3D%20%27idle%27&by=status")["counts"] == {"cancelled": MANY}
