"""What people are asked to do: the list, the form of a task, and how it ends."""

import re
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from mendflow.core.model.ids import CaseId
from tests.patience import PATIENCE_S
from tests.web.watched import PHONE, watched
from tests.web.web_server import WebServer

LETTER = """
name: letter
jobs:
  approve:
    user-task: May the letter go out?
    role: editor
    data: {letter: Dear all}
    fields: {approved: "yes or no: may it go out?", note: What to tell the author}
    deadline: 2 h
"""


@pytest.fixture(scope="module")
def letters(server: WebServer) -> WebServer:
    server.deploy("letter", LETTER)
    return server


@pytest.fixture
def asked(letters: WebServer) -> CaseId:
    """A case that waits for an editor."""
    case = letters.begin("letter")
    give_up = time.monotonic() + PATIENCE_S
    while not letters.client.worklist(case=case):
        assert time.monotonic() < give_up, "nobody was asked"
        time.sleep(0.05)
    return case


@pytest.fixture
def phone(browser: Browser, letters: WebServer) -> Iterator[Page]:
    with watched(browser, letters.url, size=PHONE) as context:
        yield context.page()


def test_a_task_is_claimed_and_completed(page: Page, letters: WebServer, asked: CaseId) -> None:
    page.goto(f"/worklist?case={asked}")
    page.get_by_role("link", name="May the letter go out?").click()
    page.get_by_role("button", name="Claim").click()
    expect(page.get_by_text("claimed by you")).to_be_visible()
    page.get_by_role("button", name="Complete").click()
    expect(page.get_by_text("An answer is needed").first).to_be_visible()
    page.get_by_label("Yes").check()
    page.get_by_role("textbox", name="note").fill("well written")
    page.get_by_role("button", name="Complete").click()
    expect(page.get_by_role("heading", name="How it ended")).to_be_visible()
    expect(page.get_by_role("main").get_by_text(re.compile("completed|done"))).to_have_text(["completed"])
    assert letters.client.wait(asked, timeout_s=PATIENCE_S).status == "completed"
    assert letters.client.worklist(case=asked)[0].outputs == {"approved": True, "note": "well written"}


ODD_NAMES = ("constructor", "toString", "hasOwnProperty", "__proto__")
ODD = f"""
name: odd
inputs: {{constructor: {{type: string}}}}
jobs:
  ask: {{user-task: Say it, role: editor, fields: {{{", ".join(f"{name}: text" for name in ODD_NAMES)}}}}}
"""


PARTS = """
name: parts
jobs:
  call:
    for-each: {sample: [PT-1, PT-2, PT-3], tolerate: 1}
    run: test ${{ sample }} != PT-2; echo n=1 >> "$MENDFLOW_OUTPUT"
  join: {needs: call, run: 'echo ${{ size(jobs.call.outputs.filter(each, each != null)) }}'}
  publish: {needs: join, user-task: Publish these?, role: editor}
"""


def test_whoever_is_asked_hears_that_something_is_missing(page: Page, server: WebServer) -> None:  # UI-1
    server.deploy("parts", PARTS)
    case = server.begin("parts")
    [task] = server.wait_for(f"/worklist?case={case}", lambda found: found)
    page.goto(f"/worklist/{task['id']}")
    told = page.get_by_role("note", name="What is incomplete")
    expect(told).to_contain_text("Incomplete: join ran without the results of call[1] (PT-2), which failed")
    page.goto(f"/cases/{case}")
    expect(page.locator("main")).to_contain_text("join ran without the results of call[1] (PT-2)")
    server.client.cancel(case)


def test_a_field_may_have_any_name(page: Page, server: WebServer) -> None:  # UI-1
    server.deploy("odd", ODD)
    page.goto("/run/odd")
    page.get_by_role("textbox", name="constructor").fill("given")
    page.get_by_role("button", name="Start").click()
    expect(page).to_have_url(re.compile("/cases/odd-"))
    case = page.url.rpartition("/")[2].partition("?")[0]
    [task] = server.wait_for(f"/worklist?case={case}", bool)
    page.goto(f"/worklist/{task['id']}")
    for name in ODD_NAMES:
        page.get_by_role("textbox", name=name).fill(f"of {name}")
    page.get_by_role("button", name="Complete").click()
    expect(page.get_by_role("heading", name="How it ended")).to_be_visible()
    assert server.client.case(case).inputs == {"constructor": "given"}
    assert server.client.worklist(case=case)[0].outputs == {name: f"of {name}" for name in ODD_NAMES}


RELEASE = """
name: release
inputs: {tables: [orders, customers]}
jobs:
  export: {run: 'echo "rows=7" >> "$MENDFLOW_OUTPUT"'}
  signoff: {needs: export, user-task: "Release the tables?", role: editor}
"""
REVIEW = """
name: review
jobs:
  review: {user-task: Review the plate, role: editor, fields: {approved: "yes or no: is it sharp?"}}
outputs: {approved: "${{ jobs.review.outputs.approved }}"}
"""


def test_ui_1_a_question_is_approved_beside_what_it_is_about(page: Page, letters: WebServer) -> None:
    letters.deploy("release", RELEASE)
    case = letters.begin("release", tables=["orders", "customers"])
    task = letters.wait_for(f"/worklist?case={case}", bool)[0]
    page.goto(f"/worklist/{task['id']}")
    expect(page.get_by_text("Claim keeps others from answering it; not needed.")).to_be_visible()
    expect(page.get_by_role("group", name="Inputs of the case")).to_contain_text("customers")
    expect(page.get_by_role("group", name="Outputs of export")).to_contain_text("7")
    expect(page.get_by_role("button", name="Complete")).to_have_count(0)
    expect(page.get_by_role("button", name="Reject …")).to_be_visible()
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("heading", name="How it ended")).to_be_visible()
    assert letters.client.wait(case, timeout_s=PATIENCE_S).status == "completed"


@pytest.mark.parametrize(("button", "answer"), [("Approve", True), ("Reject", False)])
def test_ui_1_one_yes_or_no_is_answered_by_a_button(page: Page, letters: WebServer, button: str, answer: bool) -> None:
    letters.deploy("review", REVIEW)
    case = letters.begin("review")
    task = letters.wait_for(f"/worklist?case={case}", bool)[0]
    page.goto(f"/worklist/{task['id']}")
    expect(page.get_by_text("is it sharp?")).to_be_visible()
    page.get_by_role("button", name=button, exact=True).click()
    expect(page.get_by_role("heading", name="How it ended")).to_be_visible()
    assert letters.client.wait(case, timeout_s=PATIENCE_S).outputs == {"approved": answer}


def test_a_claim_is_given_back_and_a_task_rejected_with_the_reason(
    page: Page, letters: WebServer, asked: CaseId
) -> None:
    task = letters.client.worklist(case=asked)[0]
    page.goto(f"/worklist/{task.id}")
    page.get_by_role("button", name="Claim").click()
    page.get_by_role("button", name="Release").click()
    expect(page.get_by_role("button", name="Claim")).to_be_visible()
    page.get_by_role("button", name="Reject …").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Reject")).to_be_disabled()
    dialog.get_by_label("Why").fill("too long")
    dialog.get_by_role("button", name="Reject").click()
    expect(page.get_by_text("This task was rejected")).to_be_visible()
    assert letters.client.worklist(case=asked)[0].comment == "too long"


SIGN = """
name: sign
inputs: {samples: {type: list, default: [na1, na2]}}
jobs:
  approve: {user-task: Publish the calls?, role: editor}
"""


def test_ui_1_tasks_of_one_title_are_told_apart_by_what_their_cases_were_given(page: Page, letters: WebServer) -> None:
    letters.deploy("sign", SIGN)
    by_default, given = letters.begin("sign"), letters.begin("sign", samples=["tumour-7", "tumour-8"])
    for case in (by_default, given):
        letters.wait_for(f"/worklist?case={case}", bool)
    page.goto("/worklist")
    tasks = page.get_by_role("listitem").filter(has_text="Publish the calls?")
    expect(tasks.filter(has_text=given)).to_contain_text("Publish the calls? [tumour-7, tumour-8]")
    row = tasks.filter(has_text=by_default)
    expect(row).to_contain_text("default: [na1, na2]")
    row.get_by_role("link").click()
    given_to_it = page.get_by_role("group", name="Inputs of the case")
    expect(given_to_it).to_contain_text("na1")
    expect(given_to_it).to_contain_text("default")
    page.get_by_label("Comment").fill("the controls are missing")
    page.get_by_role("button", name="Reject …").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Your comment says why: “the controls are missing”")
    expect(dialog.get_by_role("textbox")).to_have_count(0)
    dialog.get_by_role("button", name="Reject", exact=True).click()
    expect(page.get_by_role("link", name=f"Next task: Publish the calls?, {given}")).to_be_visible()
    page.goto(f"/cases/{by_default}")
    expect(page.get_by_role("region", name="Why").first).to_contain_text("the controls are missing")
    letters.client.cancel(given)


def test_on_a_phone_nothing_is_beyond_the_edge(phone: Page, letters: WebServer, asked: CaseId) -> None:
    task = letters.client.worklist(case=asked)[0]
    for address in ("/worklist", f"/worklist/{task.id}"):
        phone.goto(address)
        expect(phone.get_by_text("May the letter go out?").first).to_be_visible()
        assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    phone.reload()
    expect(phone.get_by_role("button", name="Complete")).to_be_visible()


def test_what_is_shown_is_in_the_address(page: Page, asked: CaseId) -> None:
    page.goto(f"/worklist?case={asked}")
    page.get_by_role("link", name="Ended").click()
    page.reload()
    expect(page.get_by_role("link", name="Ended")).to_have_attribute("aria-current", "page")
    page.go_back()
    expect(page.get_by_text("May the letter go out?").first).to_be_visible()


REPORT = """
name: report
jobs:
  write: {run: echo "all is well" > report.txt, files: report.txt}
  publish: {needs: write, user-task: Publish the report?, role: editor}
"""


def test_on_a_phone_what_is_judged_stands_above_the_answer(phone: Page, letters: WebServer) -> None:
    letters.deploy("report", REPORT)
    case = letters.begin("report")
    [task] = letters.wait_for(f"/worklist?case={case}", bool)
    phone.goto(f"/worklist/{task['id']}")
    report, answer = phone.get_by_text("report.txt"), phone.get_by_role("button", name="Approve")
    expect(report.first).to_be_visible()
    places = [each.bounding_box() for each in (report.first, answer)]
    assert places[0] is not None and places[1] is not None
    assert places[0]["y"] < places[1]["y"]
    letters.client.cancel(case)
