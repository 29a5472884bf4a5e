"""Where a page leads on: from a case to its flow as it is now, from an alert to its cause, from jobs to those that
ended, and to Help from everywhere."""

import re

from playwright.sync_api import Browser, Page, expect

from tests.web.watched import PHONE, watched
from tests.web.web_server import WebServer

DRAWING = """
name: drawn
jobs:
  draw:
    run: |
      echo '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="40">' >plan.svg
      echo '<script>document.title = 1</script></svg>' >>plan.svg
    files: plan.svg
outputs:
  plan: ${{ jobs.draw.files['plan.svg'] }}
"""


def test_ui_1_a_case_leads_to_its_flow_as_it_is_now(server: WebServer, page: Page) -> None:
    server.deploy("counted", "name: counted\ninputs: {n: {type: number}}\njobs:\n  a: {run: 'exit 3', retries: 0}\n")
    case = server.ended("counted", n=7)
    page.goto(f"/cases/{case}")
    expect(page.get_by_role("button", name="Run again from what failed").first).to_be_visible()
    expect(page.get_by_role("link", name=re.compile("^start version"))).to_have_count(0)
    server.deploy("counted", "name: counted\ninputs: {n: {type: number}}\njobs:\n  a: {run: 'true', retries: 0}\n")
    page.reload()
    expect(page.get_by_text("its flow has changed since:")).to_be_visible()
    page.get_by_role("button", name="Run again from what failed").first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Its flow has a newer version, which this does not take: start version 2")
    dialog.get_by_role("link", name="start version 2 with these inputs").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Run counted")
    expect(page.get_by_role("textbox", name="n (needed)")).to_have_value("7")


def test_ui_1_jobs_that_ended_are_found_over_all_cases(server: WebServer, page: Page) -> None:
    server.deploy("wrecked", "name: wrecked\njobs:\n  wreck: {run: 'exit 4', retries: 0}\n")
    cases = [server.ended("wrecked") for _ in range(2)]
    page.goto("/jobs")
    page.get_by_role("navigation", name="State of jobs").get_by_role("link", name="failed").click()
    rows = page.get_by_role("grid", name="Jobs").get_by_role("row")
    for case in cases:
        expect(rows.filter(has_text=case)).to_contain_text("it ended with exit code 4")
    page.get_by_role("navigation", name="State of jobs").get_by_role("link", name="completed").click()
    expect(rows.filter(has_text=cases[0])).to_have_count(0)


def test_ui_1_an_alert_says_how_many_more_failed_alike(recovery: WebServer, browser: Browser) -> None:
    recovery.deploy(
        "plover", "name: plover\njobs:\n  rail: {run: 'echo a plover sits on the rail >&2; exit 93', retries: 0}\n"
    )
    cases = [recovery.ended("plover") for _ in range(3)]
    alerts = recovery.wait_for("/alerts", lambda found: any(each["case"] in cases for each in found))
    assert len([each for each in alerts if each["case"] in cases]) == 1
    with watched(browser, recovery.url) as context:
        page = context.page()
        page.goto("/administration?view=alerts")
        row = page.get_by_role("list", name="Alerts").get_by_role("listitem").filter(has_text="a plover sits")
        expect(row).to_contain_text("One of 3 failures of this cause that nobody has taken up")


def test_ui_1_whoever_forbids_retries_is_told_what_the_rules_would_do(recovery: WebServer, browser: Browser) -> None:
    recovery.deploy(
        "gannet", "name: gannet\njobs:\n  dive: {run: 'head -c 400M /dev/zero | tail', memory: 50MB, retries: 0}\n"
    )
    recovery.ended("gannet")
    [group] = recovery.wait_for("/failures?flow=gannet", lambda groups: len(groups) == 1)
    with watched(browser, recovery.url) as context:
        page = context.page()
        page.goto(f"/failures/{group['id']}")
        said = (
            "The built-in rules leave it alone, as its flow says “retries: 0”."
            " Without that, they would have given it more memory."
        )
        expect(page.get_by_text(said)).to_be_visible()


def test_ui_1_a_drawing_is_drawn_and_its_scripts_are_not_run(server: WebServer, page: Page) -> None:
    server.deploy("drawn", DRAWING)
    case = server.ended("drawn")
    page.goto(f"/cases/{case}?view=data")
    page.get_by_role("button", name=re.compile(r"plan\.svg")).first.click()
    drawing = page.get_by_role("img", name="plan.svg")
    expect(drawing).to_be_visible()
    expect(drawing).to_have_js_property("naturalWidth", 90)
    assert (drawing.get_attribute("src") or "").startswith("data:image/svg+xml"), (
        "an address of this server runs scripts"
    )
    expect(page).not_to_have_title("1")


def test_ui_1_help_is_found_on_a_phone(server: WebServer, browser: Browser) -> None:
    with watched(browser, server.url, size=PHONE) as context:
        page = context.page()
        page.goto("/cases")
        page.get_by_role("button", name="Pages").click()
        page.get_by_role("navigation", name="Pages").get_by_role("link", name="Help").click()
        words = page.get_by_role("region", name="Words")
        expect(words).to_contain_text("exlet")
        assert words.evaluate("each => each.scrollWidth <= each.clientWidth"), "nothing has to be moved aside"
