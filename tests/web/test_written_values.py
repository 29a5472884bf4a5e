"""What is written into a form of the web app is what the case gets: the same as by the command line."""

import re

import pytest
from playwright.sync_api import Page, expect

from mendflow.core.model.ids import CaseId
from tests.web.dialogs import confirm
from tests.web.watched import Complaints
from tests.web.web_server import WebServer

LABELLED = """
name: labelled
inputs:
  version: {type: string}
  zip: {default: null}
  tag: {default: null}
  serial: {type: number}
  share: {type: number, default: 2}
jobs:
  say: {run: "echo '${{ inputs.version }}'"}
"""
ASKED = """
name: asked
jobs:
  name-it: {user-task: Name it, role: editor, fields: {release: the release, serial: its number}}
"""
SERIAL = 12345678901234567890


@pytest.fixture
def labelled(server: WebServer) -> WebServer:
    server.deploy("labelled", LABELLED)
    return server


def test_ui_1_a_case_gets_what_was_written_letter_by_letter(page: Page, labelled: WebServer) -> None:
    page.goto("/run/labelled")
    for name, text in {"version": "1.10", "zip": "00123", "tag": "2026.10", "serial": str(SERIAL)}.items():
        page.get_by_label(name).fill(text)
    page.get_by_label("share").fill("1.0")
    page.get_by_role("button", name="Start").click()
    first = _started(page, "labelled")
    given = {"version": "1.10", "zip": "00123", "tag": "2026.10", "serial": SERIAL, "share": 1.0}
    assert repr(dict(sorted(labelled.client.case(first).inputs.items()))) == repr(dict(sorted(given.items())))

    labelled.came_to(first, "completed")
    page.goto(f"/run/labelled?inputs_of={first}")
    expect(page.get_by_label("serial")).to_have_value(str(SERIAL))
    page.get_by_label("tag").fill("true")
    expect(page.get_by_label("tag")).to_have_accessible_description("Taken as yes (true); in quotes it is text.")
    page.get_by_label("tag").fill("1e5")
    page.get_by_role("button", name="Start").click()
    page.wait_for_url(re.compile(f"/cases/labelled-(?!{first.removeprefix('labelled-')}$)"))
    second = _started(page, "labelled")
    assert repr(labelled.client.case(second).inputs["serial"]) == repr(SERIAL)
    assert repr(labelled.client.case(second).inputs["share"]) == "1.0"
    assert labelled.client.case(second).inputs["tag"] == "1e5"


def test_ui_1_an_answer_is_what_was_written(page: Page, server: WebServer) -> None:
    server.deploy("asked", ASKED)
    case = server.begin("asked")
    server.wait_for("/worklist", lambda tasks: any(each["case"] == case for each in tasks))
    page.goto(f"/worklist/{case}/1")
    page.get_by_label("release").fill("2026.10")
    page.get_by_label("serial").fill(str(SERIAL))
    page.get_by_role("button", name="Complete").click()
    server.came_to(case, "completed")
    outputs = server.ask("GET", f"/cases/{case}/items/name-it")["outputs"]
    assert (outputs["release"], outputs["serial"]) == ("2026.10", SERIAL)


def test_ui_1_a_schedule_keeps_the_inputs_that_nobody_changed(page: Page, labelled: WebServer) -> None:
    given = {"version": "1.10", "serial": SERIAL, "share": 1.0}
    labelled.ask(
        "PUT", "/schedules/labels", {"name": "labels", "flow": "labelled", "inputs": given, "cron": "0 3 * * *"}
    )
    page.goto("/schedules?name=labels")
    page.get_by_role("button", name="More acts on labels").click()
    page.get_by_role("menuitem", name="Change").click()
    page.get_by_text("inputs with defaults").click()
    page.get_by_label("zip").fill("00123")
    confirm(page, "Change")
    told = labelled.wait_for("/schedules/labels", lambda told: "zip" in told["spec"]["inputs"])
    assert repr(sorted(told["spec"]["inputs"].items())) == repr(sorted({**given, "zip": "00123"}.items()))


def test_ui_1_what_is_needed_is_marked_and_what_is_missing_is_said_at_its_field(
    page: Page, labelled: WebServer
) -> None:
    page.goto("/run/labelled")
    version = page.get_by_role("textbox", name="version (needed)")
    expect(version).to_have_attribute("aria-required", "true")
    expect(page.get_by_role("textbox", name="zip", exact=True)).not_to_have_attribute("aria-required", "true")
    labelled.deploy("asked", ASKED.replace("serial: its number", "sharp: yes or no"))
    case = labelled.begin("asked")
    labelled.wait_for("/worklist", lambda tasks: any(each["case"] == case for each in tasks))
    page.goto(f"/worklist/{case}/1")
    page.get_by_role("button", name="Complete").click()
    expect(page.get_by_role("textbox", name="release (needed)")).to_be_focused()
    page.get_by_label("release").fill("2026.10")
    page.get_by_role("button", name="Complete").click()
    expect(page.get_by_role("radiogroup", name="sharp (needed)").get_by_label("Yes")).to_be_focused()


def test_ui_1_a_schedule_that_is_not_right_yet_says_so_where_one_looks(
    page: Page, labelled: WebServer, complaints: Complaints
) -> None:
    complaints.expected.append("409")  # what the browser itself says of the refusal
    page.goto("/schedules?make=true")
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Make it").click()
    expect(dialog.get_by_label("Name")).to_be_focused()
    expect(dialog.get_by_text("A name is needed")).to_be_in_viewport()
    dialog.get_by_label("Name").fill("no good name!")
    dialog.get_by_label("Flow").fill("labelled")
    dialog.get_by_text("inputs with defaults").click()
    dialog.get_by_label("serial").fill("1")
    dialog.get_by_role("button", name="Make it").click()
    expect(dialog.get_by_label("version")).to_be_focused()
    dialog.get_by_label("version").fill("1.10")
    page.route(
        "**/api/v1/schedules/*",
        lambda route: route.fulfill(status=409, json={"error": "conflict", "message": "another has it"}),
    )
    dialog.get_by_role("button", name="Make it").click()
    expect(dialog.get_by_role("alert")).to_be_in_viewport()


def test_ui_1_who_starts_a_case_says_whether_it_waits_when_something_fails(page: Page, server: WebServer) -> None:
    server.deploy("waiting", "name: waiting\non-unhandled: hold\njobs:\n  one: {run: exit 3}\n")
    page.goto("/run/waiting")
    page.get_by_text("More settings").click()
    page.get_by_label("A failure that no rule takes up").select_option("Fail the case")
    page.get_by_role("button", name="Start").click()
    server.came_to(_started(page, "waiting"), "failed")


def _started(page: Page, flow: str) -> CaseId:
    page.wait_for_url(f"**/cases/{flow}-*")
    return CaseId(page.url.rpartition("/")[2])
