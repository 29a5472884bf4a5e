"""What can be done with one case and one item of it, clicked; a reload and the way back keep the place."""  # UI-1

import os
import pwd
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from mendflow.core.model.ids import CaseId
from tests.patience import PATIENCE_S
from tests.web.dialogs import choose, confirm, noted
from tests.web.recovery_case import fail, passing_trouble
from tests.web.web_server import WebServer

ACCOUNT = pwd.getpwuid(os.geteuid()).pw_name
PICKY = """
name: picky
inputs: {samples: {type: list, default: [na1, na2]}, depth: {type: number, default: 30}}
jobs:
  align: {run: echo aligned, resources: {memory: 900 TB}}
"""
PAIR = """
name: pair
jobs:
  left: {run: sleep 600}
  right: {run: sleep 600}
"""


@pytest.fixture
def watching(server: WebServer) -> Iterator[CaseId]:
    case = server.begin("watching")
    server.item_came_to(case, "watch", "running")
    yield case
    if server.client.case(case).status in ("running", "suspended"):
        server.client.cancel(case)


@pytest.fixture(scope="module")
def pair(server: WebServer) -> Iterator[CaseId]:
    """A case of two long jobs beside each other."""
    server.deploy("pair", PAIR)
    case = server.begin("pair")
    for item in ("left", "right"):
        server.item_came_to(case, item, "running")
    yield case
    server.client.cancel(case)


def details(page: Page, item: str) -> Locator:
    return page.get_by_role("complementary", name=f"Item {item}")


def test_a_case_is_suspended_and_resumed(server: WebServer, page: Page, watching: CaseId) -> None:
    page.goto(f"/cases/{watching}")
    choose(page, "More actions", "Suspend")
    expect(page.get_by_role("dialog")).to_contain_text("Nothing new is started in the case")
    confirm(page, "Suspend")
    expect(page.get_by_role("heading", level=1)).to_contain_text("suspended")
    server.came_to(watching, "suspended")
    page.locator(".page-actions").get_by_role("button", name="Resume", exact=True).click()
    confirm(page, "Resume")
    expect(page.get_by_role("heading", level=1)).to_contain_text("running")
    server.came_to(watching, "running")
    server.item_came_to(watching, "watch", "running")


def test_a_case_is_cancelled_and_the_reason_is_in_its_history(server: WebServer, page: Page, watching: CaseId) -> None:
    page.goto(f"/cases/{watching}")
    choose(page, "More actions", "Cancel")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("This cannot be taken back")
    dialog.get_by_role("button", name="Not now").click()
    assert server.client.case(watching).status == "running"
    choose(page, "More actions", "Cancel")
    dialog.get_by_label("Reason").fill("the clouds came")
    confirm(page, "Cancel the case")
    expect(page.get_by_role("heading", level=1)).to_contain_text("cancelled")
    assert server.client.case(watching).status == "cancelled"
    page.get_by_role("link", name="History").click()
    cancelled = page.get_by_role("grid", name="History").get_by_role("row", name="the clouds came")
    expect(cancelled).to_contain_text(f"{ACCOUNT}cancelled")
    page.get_by_role("link", name="Who did what with this case").click()
    expect(page).to_have_url(re.compile(f"view=audit.*{watching}|{watching}.*view=audit"))
    expect(page.get_by_role("row", name=re.compile("cancel")).first).to_contain_text(ACCOUNT)


def test_an_item_is_suspended_and_resumed_while_the_other_runs(server: WebServer, page: Page, pair: CaseId) -> None:
    page.goto(f"/cases/{pair}?view=items&item=left")
    left = details(page, "left")
    choose(page, "Acts on left", "Suspend", within=left)
    expect(page.get_by_role("dialog")).to_contain_text("Other items go on")
    confirm(page, "Suspend")
    noted(page, "left is suspended")
    server.item_came_to(pair, "left", "suspended")
    expect(left).to_contain_text("suspended")
    assert server.ask("GET", f"/cases/{pair}/items/right")["state"] == "running"
    choose(page, "Acts on left", "Resume", within=left)
    confirm(page, "Resume")
    server.item_came_to(pair, "left", "running")
    expect(page.locator('[data-row="left"]')).to_contain_text("running")


def test_an_item_is_cancelled_and_the_other_runs_on(server: WebServer, page: Page, pair: CaseId) -> None:
    page.goto(f"/cases/{pair}?view=items&item=right")
    choose(page, "Acts on right", "Cancel", within=details(page, "right"))
    expect(page.get_by_role("dialog")).to_contain_text("What needs it does not run")
    confirm(page, "Cancel the item")
    noted(page, "right is cancelled")
    server.item_came_to(pair, "right", "cancelled")
    expect(details(page, "right").get_by_role("button", name="Acts on right")).to_have_count(0)
    assert server.ask("GET", f"/cases/{pair}/items/left")["state"] == "running"


def test_a_case_that_waits_for_a_person_is_tried_again_and_offers_nothing_that_would_be_refused(
    server: WebServer, page: Page
) -> None:
    passing_trouble(server, "tram", "the tram is full", code=23)
    _, [case] = fail(server, "tram", "A")
    page.goto(f"/cases/{case}")
    again = page.get_by_role("button", name="Try again", exact=True)
    expect(again).to_be_visible()
    expect(page.get_by_role("button", name="Run again", exact=True)).to_have_count(0)
    page.get_by_role("button", name="More actions", exact=True).click()
    expect(page.get_by_role("menuitem", name="Cancel")).to_be_visible()
    expect(page.get_by_role("menuitem", name=re.compile("Run again(?! with other inputs)"))).to_have_count(0)
    page.keyboard.press("Escape")
    again.click()
    expect(page.get_by_role("dialog")).to_contain_text("is tried again as it is")
    confirm(page, "Try again")
    server.came_to(case, "completed")
    expect(page.get_by_role("button", name="Run again", exact=True)).to_be_visible()


def test_a_case_is_run_again_with_other_inputs(server: WebServer, page: Page) -> None:
    before = server.ended("survey", fields=["m51", "m101"])
    page.goto(f"/cases/{before}")
    choose(page, "More actions", "Run again with other inputs")
    expect(page.get_by_text(f"The fields begin with the inputs of {before}")).to_be_visible()
    expect(page.get_by_role("textbox", name="fields")).to_have_value("m51\nm101")
    page.get_by_role("textbox", name="fields").fill("m51\nm81\nm82")
    page.get_by_role("button", name="Run again").click()
    expect(page.get_by_text(f"runs {before} again")).to_be_visible()
    again = CaseId(page.url.rpartition("/")[2])
    assert again != before
    done = server.client.wait(again, timeout_s=PATIENCE_S)
    assert (done.status, done.inputs, done.rerun_of) == ("completed", {"fields": ["m51", "m81", "m82"]}, before)


def test_a_case_that_no_pilot_takes_is_started_anew_with_its_own_inputs(server: WebServer, page: Page) -> None:
    server.deploy("picky", PICKY)
    waiting = server.begin("picky", samples=["tumour-7"])
    server.deploy("picky", PICKY.replace("default: 30", "default: 60"))
    page.goto(f"/cases/{waiting}?view=items")
    expect(page.get_by_role("columnheader", name="Why")).to_be_visible()
    expect(page.get_by_role("columnheader", name="Pilot")).to_have_count(0)  # no row has one, and Why gets its room
    page.goto(f"/cases/{waiting}")
    page.get_by_role("link", name="Start it with other inputs").click()
    notice = page.get_by_text(f"The fields begin with the inputs of {waiting}")
    expect(notice).to_contain_text(f"{waiting} stays as it is and goes on waiting")
    expect(page.get_by_role("textbox", name="samples")).to_have_value("tumour-7")
    expect(page.get_by_label("depth")).to_have_value("30")  # the default of then
    page.get_by_label("depth").fill("15")
    page.get_by_label(f"Cancel {waiting} when the new one has started").check()
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_role("heading", level=1)).not_to_contain_text(waiting)
    expect(page).to_have_url(re.compile("/cases/picky-"))
    anew = CaseId(page.url.rpartition("/")[2])
    view = server.client.case(anew)
    assert (view.inputs, view.rerun_of) == ({"samples": ["tumour-7"], "depth": 15}, None)
    server.came_to(waiting, "cancelled")
    server.client.cancel(anew)


def test_a_failed_case_is_run_again_from_what_failed(server: WebServer, page: Page) -> None:
    before = server.ended("broken")
    page.goto(f"/cases/{before}")
    page.locator(".page-actions").get_by_role("button", name="Run again from what failed").click()
    confirm(page, "Run again from what failed")
    expect(page.get_by_text(f"runs {before} again")).to_be_visible()
    again = CaseId(page.url.rpartition("/")[2])
    assert server.client.wait(again, timeout_s=PATIENCE_S).status == "failed"
    states = {each["item"]: each["state"] for each in server.ask("GET", f"/cases/{again}/items")}
    assert states["prepare"] == "cached"
    assert states["measure[1]"] == "failed"
    page.goto(f"/cases/{before}")
    expect(page.get_by_text(f"run again as {again}, failed")).to_be_visible()
    expect(page.get_by_role("link", name="Teach a repair")).to_have_count(0)
    page.get_by_role("link", name=again).click()
    expect(page.get_by_role("link", name="Teach a repair")).to_be_visible()


def test_a_case_is_shown_before_it_is_known_what_can_be_taught(server: WebServer, page: Page) -> None:
    held: list[Route] = []
    page.route("**/api/v1/decisions?*", lambda route: held.append(route))
    page.goto(f"/cases/{server.ended('broken')}")
    expect(page.locator(".page-actions").get_by_role("button", name="Run again from what failed")).to_be_visible()
    expect(page.get_by_role("link", name="Teach a repair")).to_have_count(0)
    held.pop().continue_()
    expect(page.get_by_role("link", name="Teach a repair")).to_be_visible()


def test_the_list_keeps_its_filters_over_a_reload_and_the_way_back(server: WebServer, page: Page) -> None:
    good, bad = server.ended("quick"), server.ended("broken")
    page.goto("/cases")
    page.get_by_label("Flow").select_option("broken")
    page.get_by_label("Started").select_option("1 day")
    page.get_by_role("navigation", name="Status").get_by_role("link", name=re.compile("failed")).click()
    page.locator(f'[data-row="{bad}"]').get_by_text("no stars in field").click()
    beside = page.get_by_role("complementary", name=f"Case {bad}")

    def is_kept() -> None:
        expect(beside).to_be_visible()
        expect(page.get_by_label("Flow")).to_have_value("broken")
        expect(page.get_by_label("Started")).to_have_value("1 day")
        failed = page.get_by_role("navigation", name="Status").get_by_role("link", name=re.compile("failed"))
        expect(failed).to_have_attribute("aria-current", re.compile("true|page"))
        expect(page.locator(f'[data-row="{bad}"]')).to_be_visible()
        expect(page.locator(f'[data-row="{good}"]')).to_have_count(0)

    is_kept()
    page.reload()
    is_kept()
    beside.get_by_role("link", name="Open").click()
    expect(page).to_have_url(re.compile(f"/cases/{bad}"))
    page.go_back()
    is_kept()


def test_a_case_keeps_its_view_and_its_item_over_a_reload_and_the_way_back(server: WebServer, page: Page) -> None:
    case = server.ended("broken")
    page.goto(f"/cases/{case}")
    page.get_by_role("link", name=re.compile("^Items")).click()
    page.get_by_role("link", name="failed", exact=True).click()
    page.locator('[data-row="measure[1]"]').get_by_text("no stars").click()
    expect(details(page, "measure[1]")).to_be_visible()
    page.reload()
    expect(details(page, "measure[1]")).to_be_visible()
    expect(page.locator('[data-row="measure[0]"]')).to_have_count(0)
    page.get_by_role("link", name="History").click()
    expect(page.get_by_role("grid", name="History")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("grid", name="Items")).to_be_visible()
    expect(details(page, "measure[1]")).to_be_visible()
    page.get_by_role("link", name="Cases", exact=True).first.click()
    expect(page.get_by_role("heading", name="Cases")).to_be_visible()
    page.go_back()
    expect(details(page, "measure[1]")).to_be_visible()
    expect(page.locator('[data-row="measure[0]"]')).to_have_count(0)


HELD = """
name: {flow}
on-unhandled: hold
inputs: {{ok: {{type: boolean, default: false}}, unit: mg}}
jobs:
  weigh: {{run: "echo once >> '{folder}/weighed'"}}
  fit: {{needs: weigh, run: "${{{{ inputs.ok }}}}"}}
"""


@pytest.mark.parametrize("cancels", [False, True])
def test_a_held_case_is_run_again_with_other_inputs(server: WebServer, page: Page, cancels: bool) -> None:
    flow = f"assay-{cancels}".lower()
    folder = server.folder / flow
    folder.mkdir()
    server.deploy(flow, HELD.format(flow=flow, folder=folder))
    held = server.begin(flow)
    server.wait_for(f"/cases/{held}", lambda view: view["held"])
    page.goto(f"/cases/{held}")
    choose(page, "More actions", "Run again with other inputs")
    expect(
        page.get_by_text(f"{held} stays held: it waits for a person, unless you have it cancelled below.")
    ).to_be_visible()
    page.get_by_label("ok").select_option("Yes")
    if cancels:
        page.get_by_label(f"Cancel {held}").check()
    page.get_by_role("button", name="Start").click()
    page.wait_for_url(re.compile(f"/cases/{flow}-(?!{held.rpartition('-')[2]})"))
    made = page.url.rpartition("/")[2]
    server.came_to(made, "completed")
    assert server.client.case(CaseId(made)).inputs == {"ok": True}
    assert (folder / "weighed").read_text() == "once\n", "what was completed ran again"
    if cancels:
        server.came_to(held, "cancelled")
    else:
        assert server.ask("GET", f"/cases/{held}")["held"]
