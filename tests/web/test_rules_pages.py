"""The pages of failures, rules and proposals: what they show and do, and that everybody can use them (axe-core)."""

import pytest
from playwright.sync_api import Browser, expect

from tests.web.recovery_case import LICENCES, fail, passing_trouble
from tests.web.watched import violations, watched
from tests.web.web_server import WebServer

RULE = {"condition": "fault.exit_code == 9", "exlet": "try-again", "passive": True}


@pytest.fixture(scope="module")
def group(recovery: WebServer) -> str:
    """A cause with a rule on trial."""
    passing_trouble(recovery, "solve", f"old {LICENCES}")
    found, _ = fail(recovery, "solve", "AB")
    recovery.ask("POST", "/rule-drafts", {**RULE, "group": found})
    return found


def test_nobody_is_kept_out(recovery: WebServer, group: str, browser: Browser) -> None:
    addresses = [
        "/failures",
        f"/failures/{group}",
        f"/failures/{group}/teach?term=fault.exit_code%20%3D%3D%209",
        "/rules",
        "/rules/solve?rule=1",
        "/rules/solve?view=versions",
        "/rules/solve?view=trial",
        "/rules/*?view=cornerstones",
        "/rules/*?view=exlets",
        "/proposals",
    ]
    found: dict[str, list[str]] = {}
    with watched(browser, recovery.url, bypass_csp=True) as context:
        page = context.page()
        for address in addresses:
            page.goto(address)
            page.locator(".page-body > *").first.wait_for()
            page.wait_for_timeout(700)  # what is read after the page
            if problems := violations(page):
                found[address] = problems
    assert found == {}


def test_a_rule_on_trial_is_put_in_force_retired_and_restored(
    recovery: WebServer, group: str, browser: Browser
) -> None:
    with watched(browser, recovery.url) as context:
        page = context.page()
        page.goto("/rules/solve?view=trial")
        page.get_by_role("button", name="Put in force").click()
        page.get_by_role("dialog").get_by_role("button", name="Put in force").click()
        expect(page.get_by_text("No rule is on trial")).to_be_visible()
        page.get_by_role("link", name="Tree").click()
        page.get_by_role("button", name="1 fault.exit_code == 9").click()
        page.get_by_role("button", name="Retire").click()
        page.get_by_role("button", name="Try against the past").click()
        expect(page.get_by_text("past decision")).to_be_visible()
        page.get_by_role("dialog").get_by_role("button", name="Retire").click()
        expect(page.get_by_text("out of use").first).to_be_visible()
        page.get_by_role("link", name="Versions").click()
        page.locator("[data-row='2']").get_by_role("button", name="Restore").click()
        page.get_by_role("dialog").get_by_role("button", name="Restore").click()
        expect(page.get_by_text("as version 4")).to_be_visible()
    assert recovery.ask("GET", "/rules/solve")["version"] == 4


def test_the_page_of_a_rule_shows_it_whole_and_leads_on_from_it(recovery: WebServer, browser: Browser) -> None:
    passing_trouble(recovery, "shown", "the lamp of the projector is dark", code=51)
    group, _ = fail(recovery, "shown", "A")
    condition = 'fault.exit_code == 51 && job.log_tail.contains("the lamp of the projector") && job.failures < 4'
    recovery.ask("POST", "/rule-drafts", {**RULE, "condition": condition, "group": group})
    with watched(browser, recovery.url) as context:
        page = context.page()
        page.goto("/rules/shown?view=exlets")
        expect(page.locator(".tab[aria-current]")).to_have_text("Exlets1")
        page.goto("/rules/shown?tree=abort%2Fsolver&rule=1")
        shown = page.get_by_role("complementary", name="Rule 1").locator(".code-host").first
        expect(shown).to_contain_text("job.failures < 4")
        assert shown.evaluate("box => box.scrollHeight <= box.clientHeight + 1 && box.clientHeight > 15"), "it is cut"
        page.get_by_role("button", name="Put in force").click()
        asked = page.get_by_role("dialog")
        tried = asked.get_by_role("button", name="Try against the past").bounding_box()
        assert tried and tried["width"] < 200, "it looks like a field"
        asked.get_by_role("button", name="Put in force").click()
        onward = page.get_by_role("region", name="Apply it to what waits or has failed")
        onward.get_by_role("link", name="the lamp of the projector is dark").click()
        expect(page.get_by_role("button", name="Apply to 1 failure")).to_be_enabled()
