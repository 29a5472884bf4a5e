"""Repairs that do not help, and failures that wait for their next try: pages say how that stands."""

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.web.dialogs import confirm
from tests.web.watched import watched
from tests.web.web_server import WebServer

ALIGN = """
name: {flow}
inputs: {{sample: {{type: string}}}}
steps:
  - name: align
    run: 'echo "no index for the genome of {flow}" >&2; exit {code}'
    retries: 0
"""
MKDIR = {"kind": "job", "name": "step-1", "command": "mkdir -p indexes"}
AGAIN = {"kind": "mend", "name": "step-2", "do": "re-submit"}
CONTEXT = {"type": "map", "description": "what is known of the case that is mended", "required": True}
MKDIR_THEN_AGAIN = {
    "name": "mkdir-then-re-submit",
    "exlet": True,
    "inputs": {"context": CONTEXT},
    "body": {"kind": "sequence", "name": "mkdir-then-re-submit.steps", "body": [MKDIR, AGAIN]},
}


def failed(recovery: WebServer, flow: str, samples: str, *, code: int) -> tuple[str, list[str]]:
    """A cause that cases of this flow have failed by, and these cases."""
    recovery.deploy(flow, ALIGN.format(flow=flow, code=code))
    cases = [recovery.begin(flow, sample=sample) for sample in samples]
    for case in cases:
        recovery.came_to(case, "failed")
    groups = recovery.wait_for(f"/failures?flow={flow}", lambda said: bool(said) and said[0]["count"] == len(samples))
    return groups[0]["id"], [str(case) for case in cases]


def teach(recovery: WebServer, group: str, condition: str) -> None:
    draft = {"condition": condition, "exlet": "mkdir-then-re-submit", "flow": MKDIR_THEN_AGAIN, "group": group}
    recovery.ask("POST", "/rule-drafts", draft)


@pytest.fixture
def tried(recovery: WebServer, request: pytest.FixtureRequest) -> str:
    """The cause of a flow, as parametrized, whose rule was applied to its one failure and failed each time."""
    group, _ = failed(recovery, request.param, "A", code=54)
    teach(recovery, group, "fault.exit_code == 54 && job.generation <= 3")
    recovery.ask("POST", f"/failures/{group}/apply", {"retry": False})
    recovery.wait_for(f"/failures/{group}", lambda said: said["group"]["handled"][0]["results"] == {"failed": 3})
    return group


def test_a_repair_that_does_not_help_is_followed_to_its_end(recovery: WebServer, browser: Browser) -> None:
    group, cases = failed(recovery, "vain", "AB", code=51)
    teach(recovery, group, "fault.exit_code == 51 && job.generation <= 3")
    with watched(browser, recovery.url) as context:
        page = context.page()
        page.goto(f"/failures/{group}")
        page.get_by_role("button", name="Apply to 2 failures").click()
        confirm(page, "Apply")
        came = page.get_by_role("list", name="What came of each case").get_by_role("listitem")
        expect(came).to_have_count(2)
        for row in (came.first, came.last):
            expect(row).to_contain_text("tried 3 times with mkdir-then-re-submit (rule 1)")
            expect(row).to_contain_text("failed each time")
            expect(row).not_to_contain_text("repairing")
        expect(page.get_by_text("2 cases failed again")).to_be_visible()
        page.goto(f"/cases/{cases[0]}")
        tried = page.get_by_role("list", name="What was tried")
        expect(tried).to_contain_text(
            "Rule 1 for align of vain (mkdir-then-re-submit) was tried 3 times and did not help."
        )
        expect(page.get_by_text("teach a rule")).to_have_count(0)
        expect(page.get_by_text("tells what rules did in vain")).to_be_visible()
    nodes = recovery.ask("GET", f"/cases/{cases[0]}/graph")["nodes"]
    assert [node["state"] for node in nodes if node["id"] == "exlet:align:mkdir-then-re-submit"] == ["failed"]


def test_what_waits_for_its_next_try_waits_for_nobody(recovery: WebServer, browser: Browser) -> None:
    held = ALIGN.format(flow="patient", code=53) + "on-unhandled: hold\n"
    recovery.deploy("patient", held)
    first = recovery.begin("patient", sample="A")
    [group] = recovery.wait_for("/failures?flow=patient", lambda said: bool(said) and said[0]["waiting"] == 1)
    recovery.ask("POST", "/rule-drafts", {"condition": "fault.exit_code == 53", "exlet": "later", "group": group["id"]})
    recovery.ask("POST", f"/failures/{group['id']}/apply", {"retry": False})
    with watched(browser, recovery.url) as context:
        page = context.page()
        page.goto(f"/failures/{group['id']}")
        expect(page.get_by_text("1 waits for its next try")).to_be_visible()
        expect(page.get_by_text("1 waits for a person")).to_have_count(0)
        expect(page.get_by_role("button", name="Apply to 1 failure")).to_have_count(0)
        page.goto(f"/cases/{first}")
        why = page.get_by_role("region", name=f"Why {first}")
        expect(why.get_by_text(re.compile(r"It waits for its next try in \d+"))).to_be_visible()
        for word in ("level", "Drain", "items run"):
            expect(why).not_to_contain_text(word)
        why.get_by_role("button", name="Try now").click()
        asked = page.get_by_role("dialog")
        expect(asked).to_contain_text("runs again at once")
        asked.get_by_role("button", name="Try now").click()
        expect(asked).to_be_hidden()
    recovery.wait_for(f"/failures/{group['id']}", lambda said: said["group"]["count"] == 2)


@pytest.mark.parametrize("tried", ["mended"], indirect=True)
def test_a_rule_that_did_not_help_is_changed_and_its_exlet_edited(
    recovery: WebServer, browser: Browser, tried: str
) -> None:
    with watched(browser, recovery.url) as context:
        page = context.page()
        page.goto(f"/failures/{tried}/teach")
        note = page.get_by_role("note", name="Rules that did not help")
        expect(note).to_contain_text("Rule 1 for align of mended takes this cause up already")
        expect(note).to_contain_text("3 times, and failed each time")
        note.get_by_role("link", name="Change rule 1 instead").click()
        dialog = page.get_by_role("dialog", name="Change rule 1")
        choice = dialog.get_by_label("Exlet")
        expect(choice.locator("optgroup[label='Of mended'] option")).to_have_text(["mkdir-then-re-submit"])
        expect(choice.locator("optgroup[label='Shipped'] option", has_text="more-memory")).to_have_count(1)
        choice.select_option("more-memory")
        dialog.get_by_role("button", name="Save").click()
        expect(dialog).to_be_hidden()
        expect(page.get_by_role("region", name="What more-memory does")).to_be_visible()
        page.get_by_role("link", name=re.compile("^Exlets")).click()
        exlets = page.get_by_role("region", name="Exlets")
        expect(exlets).to_contain_text("Run a command, then re-submit")
        exlets.get_by_role("button", name="mkdir-then-re-submit").click()
        pane = page.get_by_role("complementary", name="Exlet mkdir-then-re-submit")
        expect(pane).to_contain_text("mkdir -p indexes")
        pane.get_by_role("button", name="Edit the exlet").click()
        editor = page.get_by_role("dialog", name="Edit mkdir-then-re-submit")
        editor.get_by_role("button", name="Add notify", exact=True).click()
        editor.get_by_role("button", name=re.compile("^Settings of step 1")).click()
        editor.get_by_role("textbox", name="command").fill("")
        expect(editor.get_by_text("no command yet")).to_be_visible()
        expect(editor.get_by_role("button", name="Save")).to_be_disabled()
        editor.get_by_role("textbox", name="command").fill("make-index")
        editor.get_by_role("button", name="Save").click()
        expect(editor).to_be_hidden()
        expect(pane).to_contain_text("make-index")
    made = recovery.ask("GET", "/rules/mended")
    assert made["version"] == 3
    tree = made["rules"]["trees"]["abort"]["align"]["rules"]["1"]
    assert tree["exlet"] == "more-memory" and tree["cornerstone"]


@pytest.mark.parametrize("tried", ["bounded"], indirect=True)
def test_a_bound_holds_for_the_case_at_hand_and_the_true_reason_stands_at_the_buttons(
    recovery: WebServer, browser: Browser, tried: str
) -> None:
    with watched(browser, recovery.url) as context:
        page = context.page()
        page.goto(f"/failures/{tried}/teach?term=fault.exit_code%20%3D%3D%2054%20%26%26%20job.generation%20%3C%3D%203")
        page.get_by_role("radio", name=re.compile("^mkdir-then-re-submit")).click()
        expect(page.get_by_text("job.generation is 4 there. Change it, or choose another case.")).to_be_visible()
        expect(page.get_by_text("It would break a cornerstone")).to_have_count(0)
        page.get_by_role("button", name=re.compile("^Remove job.generation")).click()
        expect(page.get_by_text("there job.generation is 4 already")).to_be_visible()
        page.get_by_role("button", name="End it after three more tries").click()
        expect(page.get_by_label("Parts of the condition")).to_contain_text("6")
        page.get_by_role("button", name="Save on trial").click()
        expect(page.get_by_role("status").filter(has_text="is on trial")).to_be_visible()
        expect(page.get_by_text("What it would have done")).to_have_count(0)
        page.goto(f"/failures/{tried}/teach")
        saved = page.get_by_role("note", name="A rule is saved")
        expect(saved).to_contain_text("You have saved rule 2 for align of bounded")
        saved.get_by_role("button", name="Teach another rule").click()
        expect(page.get_by_text("Nothing yet.")).to_be_visible()
