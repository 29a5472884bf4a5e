"""What was mended or run again meanwhile is counted, offered and told of no more; and nothing moves under a pointer."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.patience import PATIENCE_S
from tests.web.recovery_case import fail, passing_trouble
from tests.web.watched import watched
from tests.web.web_server import WebServer, serving

SAMPLES = "ABCDEFGHIJKLMNOPQRSTUVW"
"""More than the samples that the page of a cause offers."""
ONCE = """
name: {flow}
inputs: {{sample: {{type: string}}}}
steps:
  - name: solver
    run: |
      if mkdir "{asked}/${{{{ inputs.sample }}}}" 2>/dev/null; then echo "{words}" >&2; exit 91; fi
    retries: 0
"""


@pytest.fixture(scope="module")
def few_causes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """A server of its own: Home shows the most frequent causes only."""
    with serving(tmp_path_factory.mktemp("few")) as made:
        yield made


def test_ui_1_only_what_can_still_be_applied_to_is_counted(recovery: WebServer, browser: Browser) -> None:
    asked = recovery.folder / "asked-tern"
    asked.mkdir()
    recovery.deploy("tern", ONCE.format(flow="tern", asked=asked, words="a tern flew into the fan"))
    cases = [recovery.ended("tern", sample=sample) for sample in "ABC"]
    [group] = recovery.wait_for("/failures?flow=tern", lambda groups: groups and groups[0]["count"] == 3)
    recovery.ask(
        "POST", "/rule-drafts", {"condition": "fault.exit_code == 91", "exlet": "begin-again", "group": group["id"]}
    )
    with watched(browser, recovery.url) as context:
        page = context.page()
        page.goto(f"/failures/{group['id']}")
        expect(page.get_by_role("heading", name="3 failures of this cause")).to_be_visible()
        expect(page.get_by_role("button", name="Apply to 3 failures")).to_be_enabled()
        again = recovery.client.rerun(cases[0])
        recovery.client.wait(again.id, timeout_s=PATIENCE_S)
        expect(page.get_by_role("button", name="Apply to 2 failures")).to_be_visible()
        page.get_by_role("button", name="Apply to 2 failures").click()
        expect(page.get_by_role("dialog")).to_contain_text("0 that wait for a person, 2 whose cases have failed")
        page.get_by_role("dialog").get_by_role("button", name="Apply", exact=True).click()
        expect(page.get_by_text("2 failures taken up in 2 cases")).to_be_visible()
        expect(page.get_by_role("button", name=re.compile("^Apply to"))).to_have_count(0)


def test_ui_1_alerts_go_when_their_cases_are_mended(recovery: WebServer, browser: Browser) -> None:
    passing_trouble(recovery, "swift", "a swift nests in the dome", code=92)
    _, (case, other) = fail(recovery, "swift", "AB")
    recovery.wait_for("/alerts", lambda alerts: {case, other} <= {each["case"] for each in alerts})
    with watched(browser, recovery.url) as context:
        page, home = context.page(), context.page()
        home.goto("/")
        page.goto("/administration?view=alerts")
        row = page.get_by_role("list", name="Alerts").get_by_role("listitem").filter(has_text=case)
        expect(row).to_be_visible()
        at_home = home.locator(".home-alert").filter(has_text=case)
        recovery.client.resume(case)
        recovery.came_to(case, "completed")
        expect(row).to_have_count(0)
        expect(at_home).to_have_count(0)
        expect(page.get_by_role("list", name="Alerts")).to_contain_text(other)


def top(page: Page) -> list[float]:
    cards = page.locator(".repair-card")
    expect(cards.first).to_be_visible()
    return [box[side] for box in (cards.nth(at).bounding_box() for at in range(3)) if box for side in ("x", "y")]


def test_ui_1_repairs_stay_where_they_are(recovery: WebServer, browser: Browser) -> None:
    passing_trouble(recovery, "wren", "a wren sits on the cable", code=93)
    group, _ = fail(recovery, "wren", SAMPLES)
    with watched(browser, recovery.url, size={"width": 1440, "height": 2000}) as context:
        context.complaints.expected.append("400 (Bad Request)")
        page = context.page()
        page.goto(f"/failures/{group}/teach")
        before = top(page)
        page.get_by_role("group", name="Context of the case").get_by_title("fault.exit_code", exact=True).click()
        expect(page.get_by_role("button", name=re.compile("23 of 23 caught"))).to_be_visible()
        assert top(page) == before
        page.get_by_label("Condition as text").press_sequentially(" &&")
        expect(page.get_by_role("alert").first).to_be_visible()
        assert top(page) == before
        for key in ("Backspace",) * 3:
            page.get_by_label("Condition as text").press(key)
        page.get_by_role("button", name=re.compile("23 of 23 caught")).click()
        page.get_by_role("radio", name=re.compile("^later")).click()
        expect(page.get_by_role("table")).to_be_visible()
        assert top(page) == before
        page.set_viewport_size({"width": 1440, "height": 700})
        assert top(page)[::2] == before[::2], "a scroll bar has moved them"
        shown = {each["id"] for each in recovery.ask("GET", f"/failures/{group}")["samples"]}
        known = recovery.ask("GET", f"/decisions?group={group}&limit=100")
        [far, *_] = [each for each in known if each["id"] not in shown]
        at_hand = page.get_by_label("Case at hand")
        page.goto(f"/failures/{group}/teach?decision={far['id']}")
        expect(at_hand.locator("option:checked")).to_contain_text(
            re.compile(rf"{far['case']} · solver · \d\d:\d\d:\d\d")
        )
        expect(page.locator("main")).not_to_contain_text(far["id"])


PERSONS = """
name: plover
jobs:
  approve: {user-task: Publish these nights?, role: astronomer}
"""


def test_ui_1_a_failure_whose_case_was_run_again_is_not_unhandled_anywhere(
    few_causes: WebServer, browser: Browser
) -> None:
    asked = few_causes.folder / "asked-dove"
    asked.mkdir()
    few_causes.deploy("dove", ONCE.format(flow="dove", asked=asked, words="a dove sleeps on the mirror"))
    cases = [few_causes.ended("dove", sample=sample) for sample in "AB"]
    [group] = few_causes.wait_for("/failures?flow=dove", lambda groups: groups and groups[0]["count"] == 2)
    with watched(browser, few_causes.url) as context:
        home, page = context.page(), context.page()
        home.goto("/")
        row = (
            home.get_by_role("list", name="Failures by cause").get_by_role("listitem").filter(has_text="a dove sleeps")
        )
        expect(row).to_contain_text("2 unhandled")
        few_causes.client.wait(few_causes.client.rerun(cases[0]).id, timeout_s=PATIENCE_S)
        expect(row).to_contain_text("1 unhandled")
        page.goto("/failures?flow=dove")
        page.get_by_role("link", name=re.compile("nobody took up")).click()
        expect(page.get_by_role("heading", name="Failures that nobody took up: 1")).to_be_visible()
        listed = page.get_by_role("list", name="Failures of this cause").get_by_role("listitem")
        expect(listed).to_have_count(1)
        expect(listed).to_contain_text(cases[1])
        expect(page.get_by_role("button", name=re.compile("^Apply to 1 failure"))).to_be_visible()
        few_causes.client.wait(few_causes.client.rerun(cases[1]).id, timeout_s=PATIENCE_S)
        expect(row).to_contain_text("run again")
        page.goto(f"/failures/{group['id']}?only=run-again")
        expect(page.get_by_role("heading", name="Failures whose cases were run again: 2")).to_be_visible()
        expect(page.get_by_role("button", name=re.compile("^Apply to"))).to_have_count(0)


def test_ui_1_what_a_person_rejected_is_told_as_a_decision(few_causes: WebServer, browser: Browser) -> None:
    few_causes.deploy("plover", PERSONS)
    case = few_causes.begin("plover")
    [task] = few_causes.wait_for(f"/worklist?case={case}", lambda tasks: len(tasks) == 1)
    few_causes.ask("POST", f"/worklist/{task['id']}/reject", {"comment": "clouds"})
    few_causes.came_to(case, "failed")
    with watched(browser, few_causes.url) as context:
        page = context.page()
        page.goto("/")
        causes = page.get_by_role("list", name="Failures by cause").get_by_role("listitem")
        row = causes.filter(has_text="approve was rejected")
        expect(row).to_contain_text("by a person")
        expect(row).not_to_contain_text("unhandled")
        page.goto("/failures?flow=plover")
        page.get_by_role("link", name="a person rejected it").click()
        expect(page.get_by_text("It is a decision: no rule is wanted for it.")).to_be_visible()
        expect(page.get_by_role("link", name="Teach")).to_have_count(0)
        expect(page.get_by_role("button", name=re.compile("^Apply to"))).to_have_count(0)
        page.goto(f"/cases/{case}")
        expect(page.get_by_role("heading", name=case)).to_be_visible()
        expect(page.get_by_role("link", name="Teach a repair")).to_have_count(0)
