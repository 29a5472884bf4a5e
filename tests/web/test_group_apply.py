"""Rules applied to all failures of a cause: offered when a rule holds, and stopped on the way."""

import re

from playwright.sync_api import Browser, expect

from tests.patience import PATIENCE_S
from tests.web.dialogs import confirm
from tests.web.recovery_case import fail, passing_trouble
from tests.web.watched import watched
from tests.web.web_server import WebServer

SAMPLES = "ABCDEFGHIJKLMNOPQRSTUVWX"
LONG_LOOK = "size(range(28000)) == 28000 && fault.exit_code == 71"
"""It takes so much work that a project's failures soon wait to be judged: the application is under way for seconds."""


def test_ui_1_an_application_is_stopped_and_then_gone_on_with(recovery: WebServer, browser: Browser) -> None:
    passing_trouble(recovery, "stopped", "the tide is too high", code=71)
    group, cases = fail(recovery, "stopped", SAMPLES)
    recovery.ask("POST", "/rule-drafts", {"condition": LONG_LOOK, "exlet": "try-again", "group": group})
    with watched(browser, recovery.url) as context:
        page = context.page()
        page.goto(f"/failures/{group}")
        page.get_by_role("button", name=f"Apply to {len(SAMPLES)} failures").click()
        confirm(page, "Apply")
        page.get_by_role("button", name="Stop", exact=True).click()
        told = page.get_by_role("status").filter(has_text="Stopped:")
        expect(told).to_be_visible()
        expect(page.get_by_role("button", name="Stop", exact=True)).to_have_count(0)
        state = recovery.wait_for(f"/failures/{group}/apply", lambda run: not run["running"])
        assert state["stopped"]
        assert state["left"] and len(state["taken_up"]) + len(state["left"]) == len(SAMPLES)
        for case in cases:
            waits = any(each.startswith(f"{case}/") for each in state["left"])
            recovery.came_to(case, "running" if waits else "completed")
        rest = page.get_by_role("button", name=re.compile(rf"Apply to {len(state['left'])} failures?$"))
        rest.click()
        confirm(page, "Apply")
        expect(page.get_by_role("status").filter(has_text="Done:")).to_be_visible()
        expect(
            page.get_by_text(re.compile(rf"{len(state['left'])} failures? taken up in \d+ cases?, 0 left"))
        ).to_be_visible()
    assert {recovery.client.wait(case, timeout_s=PATIENCE_S).status for case in cases} == {"completed"}


def test_ui_1_rules_are_applied_only_when_one_holds_and_else_all_can_be_tried_again(
    recovery: WebServer, browser: Browser
) -> None:
    passing_trouble(recovery, "untaught", "the ferry is late", code=72)
    group, cases = fail(recovery, "untaught", "AB")
    with watched(browser, recovery.url) as context:
        page = context.page()
        page.goto(f"/failures/{group}")
        apply = page.get_by_role("button", name="Apply to 2 failures")
        expect(apply).to_be_disabled()
        expect(apply).to_have_accessible_description(re.compile("holds for these failures as they are now"))
        page.get_by_role("button", name="Try again as they are").click()
        expect(page.get_by_role("dialog").get_by_role("checkbox")).to_be_checked()
        confirm(page, "Apply")
        expect(page.get_by_text("2 cases recovered")).to_be_visible()
        expect(page.get_by_text("a person did try-again 2 times")).to_be_visible()
    assert {recovery.client.wait(case, timeout_s=PATIENCE_S).status for case in cases} == {"completed"}
