"""What an alert, or a reason, offers: links and acts of the app, and only those that the caller may use."""

import re

from playwright.sync_api import Browser, Page, expect

from tests.patience import PATIENCE_S
from tests.web.dialogs import confirm, noted
from tests.web.recovery_case import fail, passing_trouble
from tests.web.watched import watched
from tests.web.web_server import WebServer


def alerted(app: WebServer, case: str) -> None:
    app.wait_for("/alerts", lambda alerts: any(each["case"] == case for each in alerts))


def test_ui_1_a_held_case_is_tried_again_from_its_alert(recovery: WebServer, browser: Browser) -> None:
    passing_trouble(recovery, "heron", "a heron stands on the dish", code=81)
    group, (case,) = fail(recovery, "heron", "A")
    alerted(recovery, case)
    with watched(browser, recovery.url) as context:
        page = context.page()
        page.goto("/administration?view=alerts")
        row = page.get_by_role("list", name="Alerts").get_by_role("listitem").filter(has_text=case)
        expect(row).to_contain_text("a heron stands on the dish")
        expect(row).not_to_contain_text("mendflow")
        expect(row.locator(".case-inputs")).to_have_text("A")  # what the case was given, by the same answer
        row.get_by_role("link", name="Teach a repair").click()
        expect(page).to_have_url(re.compile(f"/failures/{group}/teach"))
        page.go_back()
        row.get_by_role("button", name="Try again").click()
        expect(page.get_by_role("dialog")).to_contain_text("is tried again as it is")
        confirm(page, "Try again")
        noted(page, f"Try again: {case}")
    assert recovery.client.wait(case, timeout_s=PATIENCE_S).status == "completed"


def test_ui_1_a_reason_has_buttons_where_a_terminal_has_commands(recovery: WebServer, browser: Browser) -> None:
    passing_trouble(recovery, "plover", "a plover nests on the road", code=82)
    group, (case, other) = fail(recovery, "plover", "AB")
    with watched(browser, recovery.url) as context:
        page = context.page()
        page.goto(f"/cases/{case}")
        why = page.get_by_role("region", name=f"Why {case}")
        expect(why).to_contain_text("tries it again as it is")
        expect(why).not_to_contain_text("mendflow")
        why.get_by_role("link", name="Mend once").click()
        expect(page.get_by_role("dialog", name="Mend once")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).not_to_be_visible()
        page.goto(f"/cases/{case}")
        why.get_by_role("link", name="Its cause in Failures").click()
        expect(page).to_have_url(re.compile(f"/failures/{group}"))
        page.goto(f"/cases/{case}")
        expect(why).to_contain_text("“Try again” tries it again as it is")  # the page has the button
        expect(page.get_by_role("button", name="Resume")).to_have_count(0)
        page.goto(f"/cases?at={case}")
        why.get_by_role("button", name="Try again").click()
        expect(page.get_by_role("dialog")).to_contain_text("is tried again as it is")
        confirm(page, "Try again")
        assert recovery.client.wait(case, timeout_s=PATIENCE_S).status == "completed"
        page.goto(f"/cases/{other}")
        page.get_by_role("region", name=f"Why {other}").get_by_role("button", name="Cancel").click()
        expect(page.get_by_role("dialog")).to_contain_text("without handlers")
        confirm(page, "Cancel the case")
    assert recovery.client.wait(case, timeout_s=PATIENCE_S).status == "completed"
    assert recovery.client.wait(other, timeout_s=PATIENCE_S).status == "cancelled"


def test_ui_1_who_runs_a_case_again_from_its_reason_is_led_to_the_new_one(server: WebServer, page: Page) -> None:
    case = server.ended("broken")
    page.goto(f"/cases/{case}")
    reason = page.get_by_role("region", name=f"Why {case}")
    expect(reason).to_contain_text("“Run again from what failed” runs what did not succeed")  # the page has the button
    expect(page.get_by_role("button", name="Run again from what failed")).to_have_count(1)
    page.goto(f"/cases?at={case}")
    reason.get_by_role("button", name="Run again from what failed").click()
    confirm(page, "Run again from what failed")
    noted(page, "It runs again as")
    page.get_by_role("log", name="Notes").get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).not_to_contain_text(case)
    expect(page.get_by_role("heading", level=1)).to_contain_text("broken-")


def test_ac_1_who_may_only_look_is_offered_links_and_no_acts(closed: WebServer, browser: Browser) -> None:
    passing_trouble(closed, "stork", "a stork sits on the mast", code=83)
    _, (case,) = fail(closed, "stork", "A")
    alerted(closed, case)
    with watched(browser, closed.url) as context:
        context.sign_in(closed.reader("ringo")["token"])
        page = context.page()
        page.goto("/administration?view=alerts")
        row = page.get_by_role("list", name="Alerts").get_by_role("listitem").filter(has_text=case)
        expect(row.get_by_role("link", name="All of this cause")).to_be_visible()
        expect(row.get_by_role("link", name="Teach a repair")).to_have_count(0)
        expect(row.get_by_role("button")).to_have_count(0)
        page.goto(f"/cases/{case}")
        why = page.get_by_role("region", name=f"Why {case}")
        expect(why).to_contain_text("tries it again as it is")
        expect(why.get_by_text("mends it on the spot")).to_be_visible()
        assert why.get_by_role("button").count() == 0


def test_ui_1_a_word_is_explained_where_it_stands_also_by_keyboard(page: Page) -> None:
    page.goto("/rules/*")
    word = page.get_by_role("button", name="abort", exact=True)
    word.focus()
    page.keyboard.press("Enter")
    note = page.get_by_role("note").filter(has_text="Rules for abort are asked when")
    expect(note).to_be_visible()
    page.keyboard.press("Escape")
    expect(note).not_to_be_visible()
    expect(word).to_be_focused()
