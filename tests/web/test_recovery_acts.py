"""Acts on failures, rules and proposals, clicked: a repair for these cases alone, a cause handed to a person, proposals
adopted and dismissed, and one rule that two tabs change."""  # UI-1

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.patience import PATIENCE_S
from tests.web.dialogs import confirm, noted
from tests.web.recovery_case import fail, passing_trouble
from tests.web.watched import Complaints, WatchedContext, watched
from tests.web.web_server import WebServer

STUCK = """
name: stuck
on-unhandled: hold
steps:
  - name: valve
    run: 'echo "the valve is rusted shut" >&2; exit 13'
  - name: pump
    run: echo pumping
"""


@pytest.fixture
def profile(browser: Browser, recovery: WebServer, complaints: Complaints) -> Iterator[WatchedContext]:
    with watched(browser, recovery.url, complaints=complaints) as context:
        yield context


@pytest.fixture
def page(profile: WatchedContext) -> Page:
    return profile.page()


def test_cases_that_wait_are_begun_again_once(recovery: WebServer, page: Page) -> None:
    passing_trouble(recovery, "tide", "the tide is out", code=31)
    group, cases = fail(recovery, "tide", "AB")
    page.goto(f"/failures/{group}")
    page.get_by_role("button", name="Mend once").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("all 2 that wait")).to_be_checked()
    expect(dialog.get_by_role("button", name="Choose a repair").last).to_be_disabled()
    dialog.get_by_role("button", name=re.compile("more repair")).click()
    dialog.get_by_role("radio", name=re.compile("^begin-again")).click()
    dialog.get_by_role("button", name="Do begin-again to 2 cases").click()
    for case in cases:
        expect(dialog.get_by_role("row").filter(has_text=case)).to_be_visible()
    dialog.get_by_role("button", name="Close").last.click()
    for case in cases:
        assert recovery.client.wait(case, timeout_s=PATIENCE_S).status == "completed"
    expect(page.get_by_label("Failures of this cause")).to_contain_text("begun again")
    names = [each["name"] for each in recovery.ask("GET", "/rules")]
    assert "tide" not in names or recovery.ask("GET", "/rules/tide")["rule_count"] == 0, "a rule was made of it"


def test_all_pages_tell_the_same_of_a_repair_by_hand(recovery: WebServer, page: Page) -> None:
    flow = "name: moat\non-unhandled: hold\njobs:\n  cross: {run: 'echo \"Error: the moat is deep\" >&2; exit 6'}\n"
    recovery.deploy("moat", flow)
    case = recovery.begin("moat")
    group = recovery.wait_for("/failures?flow=moat", lambda groups: groups and groups[0]["waiting"])[0]["id"]
    page.goto(f"/failures/{group}")
    page.get_by_role("button", name="Mend once").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("radio", name=re.compile("^try-again")).click()
    dialog.get_by_role("button", name="Do try-again to 1 case").click()
    dialog.get_by_role("button", name="Close").last.click()
    recovery.wait_for(f"/decisions?case={case}", lambda told: [each["state"] for each in told] == ["waiting", "done"])
    me = recovery.client.case(case).owner
    tried = page.get_by_label("Failures of this cause")
    expect(tried).to_contain_text("tried in vain")
    expect(page.get_by_text("a person did try-again 1 time: 1 tried in vain")).to_be_visible()
    page.goto("/failures?flow=moat")
    expect(page.get_by_role("grid")).to_contain_text("by hand: try-again 0/1")
    page.goto(f"/cases/{case}?view=history")
    expect(page.locator("main")).to_contain_text(f"cross failed and {me} did try-again once, without success")
    history = page.get_by_role("grid", name="History")
    expect(history.get_by_role("row", name="tried in vain")).to_contain_text(me)
    expect(history).to_contain_text(f"{me} did try-again once, without success, and it waits for a person")
    expect(history).not_to_contain_text("under way")
    page.goto(f"/cases/{case}?view=items&item=cross")
    expect(page.get_by_role("list", name="Repairs")).to_contain_text(f"{me} did try-again: tried in vain")
    page.goto(f"/cases/{case}")
    expect(page.locator("main")).to_contain_text("exlet · 1 failed")


def test_a_dialog_keeps_the_failure_that_it_was_opened_for(recovery: WebServer, page: Page) -> None:
    passing_trouble(recovery, "ebb", "the ebb has begun", code=34)
    group, (first,) = fail(recovery, "ebb", "A")
    page.goto(f"/failures/{group}")
    page.get_by_role("button", name="Mend once").click()
    dialog = page.get_by_role("dialog", name=f"Mend once: {first}")
    expect(dialog).to_contain_text(f"The repair is done now, to {first}")
    later = recovery.begin("ebb", sample="B")
    expect(page.locator(".group-sample")).to_have_count(2)
    expect(page.locator(".group-sample").first).to_contain_text(later)
    expect(dialog).to_contain_text(f"The repair is done now, to {first}")
    recovery.client.resume(first)
    expect(dialog.get_by_role("status")).to_contain_text(f"Meanwhile {first} solver was settled")
    expect(dialog.get_by_role("button", name="Nothing is left to mend")).to_be_disabled()
    dialog.get_by_role("button", name="Not now").click()
    assert recovery.ask("GET", f"/cases/{later}")["held"], "the other case was mended"


def test_an_item_that_cannot_succeed_is_counted_as_done(recovery: WebServer, page: Page) -> None:
    recovery.deploy("stuck", STUCK)
    case = recovery.begin("stuck")
    group = recovery.wait_for("/failures?flow=stuck", lambda groups: groups and groups[0]["waiting"])[0]["id"]
    page.goto(f"/failures/{group}")
    page.get_by_role("button", name="Mend once").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Compose an exlet").click()
    dialog.get_by_role("button", name="Add force-complete").click()
    dialog.get_by_label("Name of the exlet").fill("the-valve-is-open")
    dialog.get_by_role("button", name="Do the-valve-is-open to 1 case").click()
    expect(dialog.get_by_role("row").filter(has_text=case)).to_be_visible()
    dialog.get_by_role("button", name="Close").last.click()
    assert recovery.client.wait(case, timeout_s=PATIENCE_S).status == "completed"
    valve = recovery.ask("GET", f"/cases/{case}/items/valve")
    assert valve["state"] == "completed"
    assert valve["reason"].startswith("force-completed")
    page.goto(f"/cases/{case}?view=items&item=valve")
    expect(page.get_by_role("list", name="Repairs").locator("code")).to_have_text("force-complete")


def test_a_failure_that_waits_and_a_choice_that_was_wrong_stand_in_the_worklist(
    recovery: WebServer, page: Page
) -> None:
    passing_trouble(recovery, "attic", "a bat is in the attic", code=32)
    group, (case,) = fail(recovery, "attic", "A")
    page.goto("/worklist?show=failures")
    page.get_by_role("link", name=re.compile("a bat is in the attic")).click()
    expect(page).to_have_url(re.compile(f"/failures/{group}"))
    expect(page.get_by_role("button", name="Hand to a person")).to_have_count(0)
    recovery.client.resume(case)
    assert recovery.client.wait(case, timeout_s=PATIENCE_S).status == "completed"
    page.get_by_role("button", name="Hand to a person").click()
    expect(page.get_by_role("dialog")).to_contain_text("An author is asked")
    page.get_by_role("dialog").get_by_label("What should they know?").fill("the bat is a protected one")
    confirm(page, "Ask an author")
    noted(page, f"An author is asked about {case}")
    page.goto("/worklist?show=failures")
    page.get_by_role("link", name=re.compile("the bat is a protected one")).click()
    expect(page).to_have_url(re.compile(f"/failures/{group}"))


PROPOSED = {
    "owl": "an owl sits on the antenna",
    "fox": "the fox has eaten the fibre",
    "elk": "an elk stands in the beam",
}


@pytest.fixture(scope="module")
def proposed(recovery: WebServer) -> dict[str, str]:
    """By flow, a proposal: people have tried its cases again twice, and it helped."""
    for number, (flow, words) in enumerate(PROPOSED.items()):
        passing_trouble(recovery, flow, words, code=41 + number)
        for case in fail(recovery, flow, "AB")[1]:
            recovery.client.resume(case)
            assert recovery.client.wait(case, timeout_s=PATIENCE_S).status == "completed"

    def of_flows(proposals: Any) -> dict[str, str]:
        return {each["rules"]: each["id"] for each in proposals if each["rules"] in PROPOSED}

    return of_flows(recovery.wait_for("/proposals", lambda found: of_flows(found).keys() == PROPOSED.keys()))


def open_proposal(page: Page, words: str) -> None:
    page.goto("/proposals")
    page.get_by_role("row").filter(has_text=words).get_by_text("as people did").click()
    expect(page.get_by_role("complementary", name="Proposal")).to_be_visible()


def state_of(recovery: WebServer, proposal: str) -> Any:
    return {each["id"]: each for each in recovery.ask("GET", "/proposals?every=true")}[proposal]


def test_a_proposal_is_adopted_on_trial_and_then_put_in_force(
    recovery: WebServer, page: Page, proposed: dict[str, str]
) -> None:
    open_proposal(page, "owl sits")
    page.get_by_role("button", name="Adopt on trial").click()
    expect(page.get_by_role("dialog")).to_contain_text("It stays on trial until somebody puts it in force")
    confirm(page, "Adopt on trial")
    noted(page, "that is recorded, and nothing else is done")
    expect(page.get_by_role("row").filter(has_text="owl sits")).to_contain_text("on trial")
    assert state_of(recovery, proposed["owl"])["state"] == "on-trial"
    page.get_by_role("button", name="Put in force").click()
    confirm(page, "Put in force")
    noted(page, "try-again is carried out for what fails since")
    assert state_of(recovery, proposed["owl"])["state"] == "in-force"
    again = recovery.begin("owl", sample="C")
    assert recovery.client.wait(again, timeout_s=PATIENCE_S).status == "completed"


def test_a_proposal_is_put_in_force_at_once(recovery: WebServer, page: Page, proposed: dict[str, str]) -> None:
    open_proposal(page, "fox has eaten")
    page.get_by_role("button", name="Put in force").click()
    expect(page.get_by_role("dialog")).to_contain_text(
        "From now on try-again is carried out for what fails and where it holds"
    )
    confirm(page, "Put in force")
    noted(page, "try-again is carried out for what fails since")
    assert state_of(recovery, proposed["fox"])["state"] == "in-force"
    page.goto("/rules/fox")
    expect(page.get_by_role("button", name=re.compile("the fox has eaten the fibre"))).to_be_visible()


def test_a_proposal_is_dismissed_with_a_reason(recovery: WebServer, page: Page, proposed: dict[str, str]) -> None:
    open_proposal(page, "elk stands")
    page.get_by_role("button", name="Dismiss").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Dismiss", exact=True)).to_be_disabled()
    dialog.get_by_role("button", name="It is mended at its cause").click()
    confirm(page, "Dismiss")
    expect(page.get_by_role("row").filter(has_text="elk stands")).to_have_count(0)
    decided = state_of(recovery, proposed["elk"])
    assert (decided["state"], decided["why"]) == ("dismissed", "It is mended at its cause")
    page.get_by_label("also those that are decided").check()
    expect(page.get_by_role("row").filter(has_text="elk stands")).to_contain_text("dismissed")


def test_of_two_tabs_that_change_one_rule_the_second_is_refused_and_keeps_its_text(
    recovery: WebServer, profile: WatchedContext
) -> None:
    profile.complaints.expected.append("409")  # what the browser itself says of the server's refusal
    passing_trouble(recovery, "twins", "both twins are asleep", code=33)
    group, _ = fail(recovery, "twins", "A")
    recovery.ask("POST", "/rule-drafts", {"condition": "fault.exit_code == 33", "exlet": "try-again", "group": group})
    before = recovery.ask("GET", "/rules/twins")["version"]
    first, second = profile.page(), profile.page()
    for page in (first, second):
        page.goto("/rules/twins?rule=1")
    second.get_by_role("button", name="live").click()  # a tab that does not hear of changes by itself
    for page in (first, second):
        page.get_by_role("button", name="Change", exact=True).click()
    first.get_by_role("dialog").get_by_label("Note").fill("twins sleep until noon")
    first.get_by_role("dialog").get_by_role("button", name="Save").click()
    noted(first, f"Rule 1 is changed: version {before + 1}")
    dialog = second.get_by_role("dialog")
    mine = 'fault.exit_code == 33 && fault.message.contains("twins")'
    dialog.get_by_role("textbox", name="Condition").fill(mine)
    dialog.get_by_role("button", name="Save").click()
    conflict = dialog.get_by_role("alert")
    expect(conflict).to_contain_text("Somebody else has changed these rules meanwhile")
    expect(dialog.get_by_role("textbox", name="Condition")).to_have_text(mine)
    assert recovery.ask("GET", "/rules/twins")["version"] == before + 1
    expect(dialog.get_by_role("button", name="Save")).to_be_disabled()
    dialog.get_by_role("button", name=f"Go on with version {before + 1}").click()
    dialog.get_by_role("button", name="Save").click()
    noted(second, f"Rule 1 is changed: version {before + 2}")
    (tree,) = recovery.ask("GET", "/rules/twins")["rules"]["trees"]["abort"].values()
    rule = tree["rules"]["1"]
    assert (rule["condition"], rule["note"]) == (mine, "twins sleep until noon"), "what the first wrote is undone"


def test_a_case_page_mends_its_own_case_alone(recovery: WebServer, page: Page) -> None:
    passing_trouble(recovery, "shoal", "the shoal has moved", code=35)
    group, (older, newer) = fail(recovery, "shoal", "AB")
    page.goto(f"/cases/{older}")
    page.get_by_role("link", name="Mend once").click()
    dialog = page.get_by_role("dialog", name=f"Mend once: {older}")
    expect(dialog.get_by_label("all 2 that wait")).not_to_be_checked()
    dialog.get_by_role("button", name=re.compile("more repair")).click()
    dialog.get_by_role("radio", name=re.compile("^try-again")).click()
    dialog.get_by_role("button", name="Do try-again to 1 case").click()
    expect(dialog.get_by_role("status")).to_contain_text("try-again is over: it has helped.")
    expect(dialog.get_by_role("row").filter(has_text=older)).to_contain_text("recovered")
    dialog.get_by_role("button", name="Close").last.click()
    assert recovery.client.wait(older, timeout_s=PATIENCE_S).status == "completed"
    assert recovery.ask("GET", f"/cases/{newer}")["held"], "the other case was mended"
    chosen = recovery.ask("GET", f"/decisions?case={older}")[-1]["id"]
    page.goto(f"/failures/{group}?act=mend&decision={chosen}")
    expect(page.locator(".group-sample[aria-current]")).to_contain_text(older)
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Mend once").click()
    expect(page.get_by_role("dialog", name=f"Mend once: {newer}")).to_be_visible()


def test_ui_1_a_repair_that_takes_its_time_says_so_and_goes_on(recovery: WebServer, page: Page) -> None:
    passing_trouble(recovery, "slow-tide", "the tide is out", code=36)
    group, (case,) = fail(recovery, "slow-tide", "A")
    page.goto(f"/failures/{group}?act=mend")
    dialog = page.get_by_role("dialog", name=f"Mend once: {case}")
    dialog.get_by_role("button", name="Compose an exlet").click()
    dialog.get_by_role("button", name="Add wait", exact=True).click()
    dialog.get_by_role("textbox", name="how long").fill("3 s")
    dialog.get_by_role("button", name="Add re-submit", exact=True).click()
    dialog.get_by_role("button", name="Do wait-then-re-submit to 1 case").click()
    told = dialog.get_by_role("status")
    expect(told).to_contain_text("wait-then-re-submit runs now for this case. You may close this: the repair goes on.")
    expect(dialog.get_by_role("link", name=case)).to_be_visible()
    expect(told).to_contain_text("wait-then-re-submit is over: it has helped.")


def test_an_item_that_is_held_is_found_for_a_person_and_tried_again(recovery: WebServer, page: Page) -> None:
    passing_trouble(recovery, "wader", "a wader sits in the tube", code=32)
    group, (case,) = fail(recovery, "wader", "A")
    page.goto(f"/cases/{case}?view=items")
    states = page.get_by_role("navigation", name="State of items")
    row = page.get_by_role("grid", name="Items").locator('[data-row="solver"]')
    states.get_by_role("link", name="waiting", exact=True).click()
    expect(page.get_by_text("No item matches")).to_be_visible()
    states.get_by_role("link", name="failed", exact=True).click()
    expect(row).to_have_count(0)
    page.get_by_text("One that failed is not over: it waits").get_by_role("link", name="for a person").click()
    expect(row).to_contain_text("for a person")
    expect(states.get_by_role("link", name="for a person")).to_have_attribute("aria-current", "true")
    row.click()
    acts = page.get_by_role("group", name="What can be done about solver")
    expect(acts.get_by_role("link")).to_have_text(["Mend once", "Teach a repair", "Its cause in Failures"])
    expect(acts.get_by_role("link", name="Teach a repair")).to_have_attribute("href", re.compile(f"/{group}/teach"))
    page.get_by_role("button", name="Acts on solver").click()
    expect(page.get_by_role("menuitem")).to_have_count(1)
    expect(page.get_by_role("menuitem", name="Cancel")).not_to_contain_text("killed")
    page.keyboard.press("Escape")
    acts.get_by_role("button", name="Try again").click()
    confirm(page, "Try again")
    assert recovery.client.wait(case, timeout_s=PATIENCE_S).status == "completed"


def test_a_cause_for_which_a_rule_is_in_force_asks_for_no_other(recovery: WebServer, page: Page) -> None:
    passing_trouble(recovery, "neap", "the neap tide left the boat aground", code=33)
    group, (case,) = fail(recovery, "neap", "A")
    page.goto(f"/cases/{case}")
    why = page.get_by_role("region", name=f"Why {case}")
    expect(why).to_contain_text("Its cause in Failures is where you can teach a rule, Apply the rules applies those")
    page.goto(f"/failures/{group}")
    rules = page.locator(".group-rules")
    expect(rules).to_contain_text("none holds")
    expect(rules.get_by_role("link", name="choose a repair")).to_be_visible()
    recovery.ask("POST", "/rule-drafts", {"condition": "fault.exit_code == 33", "exlet": "later", "group": group})
    page.reload()
    expect(rules).to_contain_text("would do later")
    expect(rules.get_by_role("link", name="choose a repair")).to_have_count(0)
