"""Home, the list of cases and the page of a case, as a person uses them."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from mendflow.core.scheduling.amounts import duration
from tests.web.watched import PHONE, Complaints, watched
from tests.web.web_server import WebServer


def row(page: Page, case: str) -> str:
    return f'[data-row="{case}"]'


NIGHTS = """
name: nights
inputs:
  parts: {type: number}
  table: {type: string}
steps:
  - run: 'echo "Error: ${{ inputs.parts }} parts are too many" >&2; exit 12'
"""


def test_ui_1_cases_are_told_apart_by_what_they_were_given(server: WebServer, page: Page) -> None:
    server.deploy("nights", NIGHTS)
    cases = {name: server.ended("nights", table=f"/data/{name}.csv", parts=3) for name in ("night02", "night05")}
    page.goto("/cases?flow=nights")
    for name, case in cases.items():
        given = page.locator(f"{row(page, case)} .case-inputs")
        expect(given).to_have_text(f"…/{name}.csv")
        expect(given).to_have_attribute("title", f"table: /data/{name}.csv\nparts: 3")
    page.goto(f"/cases/{cases['night05']}")
    expect(page.locator(".case-lead .case-inputs")).to_have_text("…/night05.csv · parts=3")
    group = server.ask("GET", "/failures?flow=nights")[0]["id"]
    page.goto(f"/failures/{group}")
    of_cause = page.get_by_role("list", name="Failures of this cause").get_by_role("listitem")
    for name, case in cases.items():
        expect(of_cause.filter(has_text=case)).to_contain_text(f"…/{name}.csv · parts=3")


def test_ui_1_a_case_is_found_by_the_words_that_people_remember(server: WebServer, page: Page) -> None:
    server.deploy("nights", NIGHTS)
    wanted, other = (server.ended("nights", table=f"{name}.csv", parts=3) for name in ("Sample-ab12cd", "night08"))
    page.goto("/")
    for words in ("NIGHTS sample", "sample-AB12CD"):  # the second could be the id of a case, too
        page.get_by_role("searchbox", name="Search cases").fill(words)
        page.keyboard.press("Enter")
        expect(page.locator(row(page, wanted))).to_be_visible()
        expect(page.locator(row(page, other))).to_have_count(0)
    page.get_by_role("searchbox", name="Search cases").fill(other)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/cases/{other}$"))
    broken = server.ended("broken")
    message = server.ask("GET", f"/cases/{broken}")["fault"]["message"]
    for words in ("failed broken", " ".join(message.split()[-2:]).strip(".")):
        page.get_by_role("searchbox", name="Search cases").fill(words)
        page.keyboard.press("Enter")
        expect(page.locator(row(page, broken))).to_be_visible()
    page.get_by_role("searchbox", name="Search cases").fill("completed broken")
    page.keyboard.press("Enter")
    told = "why they failed, and what failed in them and waits. What a loop did for a sample"
    expect(page.get_by_text(told)).to_be_visible()


@pytest.mark.short
def test_a_failure_is_found_from_home_to_the_line_that_says_why(server: WebServer, page: Page) -> None:
    case = server.ended("broken")
    page.goto("/")
    expect(page.get_by_role("heading", name="Home")).to_be_visible()
    expect(page.get_by_role("list", name="Failures by cause").get_by_text("no stars in field")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("c")
    expect(page).to_have_url(re.compile("/cases$"))
    expect(page.locator(row(page, case))).to_contain_text("no stars in field 1")
    page.locator(row(page, case)).get_by_role("link", name=case).click()
    expect(page.get_by_role("region", name="Why").first).to_contain_text("no stars in field 1")
    page.get_by_role("link", name=re.compile("^Items")).click()
    page.get_by_role("link", name="failed", exact=True).click()
    page.locator('[data-row="measure[1]"]').click()
    expect(
        page.get_by_role("complementary", name="Item measure[1]").get_by_role("region", name=re.compile("^Log of"))
    ).to_contain_text("ERROR: no stars in field 1")
    page.reload()
    expect(page.get_by_role("complementary", name="Item measure[1]")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("complementary", name="Item measure[1]")).not_to_be_visible()


def test_took_is_how_long_the_job_ran_not_how_long_it_waited(server: WebServer, page: Page) -> None:  # UI-1
    case = server.ended("survey")
    [attempt] = server.client.item(case, "prepare").attempts
    ran_ms = attempt.ran_ms or attempt.ended_at - attempt.started_at
    text = duration(ran_ms)
    page.goto(f"/cases/{case}?view=items&item=prepare")
    expect(page.locator('[data-row="prepare"] .duration')).to_have_text(text)
    expect(page.get_by_role("complementary", name="Item prepare").locator("dd .duration").first).to_have_text(text)


def test_the_list_follows_what_happens_without_being_asked(server: WebServer, page: Page) -> None:
    page.goto("/cases?flow=quick")
    expect(page.get_by_text("No case matches").or_(page.get_by_role("grid", name="Cases"))).to_be_visible()
    case = server.begin("quick")
    expect(page.locator(row(page, case))).to_contain_text("completed", timeout=20_000)


def test_a_condition_narrows_the_list_and_is_in_the_address(
    server: WebServer, page: Page, complaints: Complaints
) -> None:
    good, bad = server.ended("survey"), server.ended("broken")
    page.goto("/cases")
    expect(page.locator(row(page, good))).to_be_visible()
    page.get_by_role("textbox", name="Condition").click()
    page.keyboard.type("status == 'fai")
    page.keyboard.press("Escape")
    page.keyboard.type("led'")
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("where="))
    expect(page.locator(row(page, bad))).to_be_visible()
    expect(page.locator(row(page, good))).not_to_be_visible()
    complaints.expected.append("400")
    page.goto("/cases?where=nonsense%20%3D%3D%201")
    expect(page.get_by_role("alert")).to_contain_text("nonsense")


def test_bulk_acts_say_what_they_do_and_report_each_case(server: WebServer, page: Page) -> None:
    over, running = server.ended("quick"), server.begin("watching")
    page.goto("/cases")
    for case in (over, running):
        page.get_by_role("checkbox", name=f"Select {case}").check()
    page.get_by_role("toolbar").get_by_role("button", name="Cancel").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("cannot be taken back")
    expect(dialog).to_contain_text("1 case is left out: it is over")
    dialog.get_by_role("button", name="Cancel 1 case").click()
    expect(dialog.get_by_role("status")).to_contain_text("1 case is being cancelled.")
    dialog.get_by_role("button", name="Close", exact=True).last.click()
    expect(page.locator(row(page, running))).to_contain_text("cancelled")


def test_a_case_is_run_again_and_the_new_one_is_shown(server: WebServer, page: Page) -> None:
    case = server.ended("survey")
    page.goto(f"/cases/{case}")
    page.get_by_role("button", name="Run again", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("A new case starts, with the same inputs and the same version of the flow.")
    dialog.get_by_role("button", name="Run again", exact=True).click()
    expect(page.get_by_text(f"runs {case} again")).to_be_visible()


def test_the_graph_has_a_loop_as_one_node_that_leads_to_its_items(server: WebServer, page: Page) -> None:
    case = server.ended("survey")
    page.goto(f"/cases/{case}")
    page.get_by_role("button", name="measure: 3 completed").click()
    expect(page).to_have_url(re.compile("view=items"))
    expect(page.locator('[data-row="measure[2]"]')).to_be_visible()
    expect(page.locator('[data-row="prepare"]')).not_to_be_visible()


def test_ui_1_why_an_item_was_skipped_is_shown_whole_beside_its_details(server: WebServer, page: Page) -> None:
    case = server.ended("broken")
    page.goto(f"/cases/{case}?view=items&item=report")
    why = page.locator('[data-row="report"]').get_by_role("gridcell").filter(has_text="it needs measure")
    expect(why).to_have_text("it needs measure, which did not complete")
    assert why.evaluate("cell => cell.scrollWidth <= cell.clientWidth"), "the reason is cut"


def test_every_view_of_a_case_is_shown(server: WebServer, page: Page) -> None:
    case = server.ended("survey")
    page.goto(f"/cases/{case}?view=timeline")
    expect(page.get_by_role("img", name=re.compile("^Timeline of"))).to_be_visible()
    page.get_by_role("link", name="History").click()
    expect(page.get_by_role("grid", name="History")).to_contain_text("report")
    page.get_by_role("link", name="full").click()
    expect(page.get_by_role("grid", name="History")).to_contain_text("measure[0]")
    page.get_by_role("link", name="Inputs and outputs").click()
    inputs = page.get_by_role("group", name="Inputs", exact=True)
    expect(inputs).to_contain_text(re.compile("fields.*default.*m31", re.DOTALL))
    page.get_by_role("button", name="report.json").click()
    expect(page.get_by_role("group", name="report.json")).to_contain_text("30")
    page.get_by_role("link", name="Messages").click()
    expect(page.get_by_text("No messages")).to_be_visible()


def test_a_log_grows_while_the_job_prints(server: WebServer, page: Page) -> None:
    case = server.begin("watching")
    page.goto(f"/cases/{case}?view=items&item=watch")
    log = page.get_by_role("region", name=re.compile("^Log of"))
    expect(log).to_contain_text("sample 3", timeout=30_000)
    expect(log).to_contain_text("sample 12", timeout=30_000)
    server.client.cancel(case)
    expect(page.get_by_role("heading", level=1)).to_contain_text("cancelled")


def test_keys_are_listed_and_the_look_is_chosen(page: Page) -> None:
    page.goto("/cases")
    expect(page.get_by_role("button", name="live")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("next row")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_ui_1_on_a_phone_the_list_of_cases_has_its_filters_behind_a_button(server: WebServer, browser: Browser) -> None:
    case = server.ended("quick")
    with watched(browser, server.url, size=PHONE) as context:
        page = context.page()
        page.goto("/cases?flow=quick")
        expect(page.locator(row(page, case))).to_be_visible()
        status = page.get_by_role("navigation", name="Status")
        expect(status).to_be_hidden()
        page.get_by_role("button", name="Filters: 1 in use").click()
        status.get_by_role("link", name=re.compile("^failed")).click()
        expect(page.locator(row(page, case))).to_have_count(0)
        expect(page.get_by_role("button", name="Filters: 2 in use")).to_be_visible()
