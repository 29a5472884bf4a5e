"""Administration: tokens, the record of who did what, alerts, webhooks, quotas, limits, secrets and retention."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.web.dialogs import confirm
from tests.web.recovery_case import CRUNCH
from tests.web.test_worklist_page import LETTER
from tests.web.web_server import WebServer

SECRET = "correct horse battery staple"


@pytest.fixture(scope="module")
def held(server: WebServer) -> Iterator[str]:
    """A case that waits for somebody, of which there is an alert."""
    server.deploy("crunch", CRUNCH)
    case = server.client.start("crunch", {"n": 1}).id
    server.wait_for("/alerts", lambda alerts: any(each["case"] == case for each in alerts))
    yield case
    server.client.cancel(case)


def test_a_server_for_one_offers_no_token_that_it_would_refuse(page: Page) -> None:
    """Its jobs run as itself: whoever else started some could read what it has."""
    page.goto("/administration")
    page.get_by_role("button", name="Make a token").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("checkbox")).to_have_count(3)
    expect(dialog.get_by_label("user: reads")).to_have_count(0)
    expect(dialog.get_by_label("Role there").get_by_role("option")).to_have_text(["viewer"])
    dialog.get_by_text("How to let others start flows").click()
    expect(dialog.get_by_text("Say how they are kept apart")).to_be_visible()


def test_a_token_is_made_shown_once_and_revoked(page: Page, server: WebServer) -> None:
    page.goto("/administration")
    page.get_by_role("button", name="Make a token").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("wanda")
    expect(dialog.get_by_role("checkbox", checked=True)).to_have_count(0)  # nobody may anything by default
    expect(dialog.get_by_role("button", name="Make it")).to_be_disabled()
    dialog.get_by_label("Project", exact=True).fill("survey")
    dialog.get_by_label("Role there").select_option("viewer")
    expect(dialog.get_by_role("status")).to_have_text("wanda is viewer of the project survey.")
    dialog.get_by_role("button", name="Make it").click()
    token = dialog.get_by_test_id("token").inner_text()
    assert len(token) > 20
    dialog.get_by_role("button", name="I have it").click()
    row = page.get_by_role("row").filter(has_text="wanda")
    expect(row).to_contain_text("survey: viewer")
    page.reload()
    expect(row).to_be_visible()
    assert token not in page.content()
    row.get_by_role("button", name="Revoke wanda").click()
    expect(page.get_by_role("dialog")).to_contain_text("This cannot be undone")
    confirm(page, "Revoke")
    expect(row).not_to_be_visible()
    assert "wanda" not in [each["name"] for each in server.ask("GET", "/tokens")]


def test_the_record_of_who_did_what_is_searched(page: Page, server: WebServer) -> None:
    server.ask("PUT", "/limits/audited", {"count": 1})
    server.ask("DELETE", "/limits/audited")
    page.goto("/administration?view=audit")
    expect(page.get_by_text("The record is whole")).to_be_visible()
    page.get_by_label("Operation").fill("remove_limit")
    table = page.get_by_role("grid", name="Who did what")
    expect(table).to_contain_text("audited")
    expect(table).not_to_contain_text("set_limit")
    page.reload()
    expect(page.get_by_label("Operation")).to_have_value("remove_limit")
    page.get_by_label("Who", exact=True).fill("nobody-of-this-name")
    expect(page.get_by_text("No entry matches")).to_be_visible()


def test_what_was_done_to_the_tasks_of_a_case_is_found_by_the_case(
    page: Page, server: WebServer, tmp_path: Path
) -> None:
    server.deploy("letter", LETTER)
    case = server.begin("letter")
    task = server.wait_for(f"/worklist?case={case}", bool)[0]["id"]
    (tmp_path / "notes.txt").write_text("a file that somebody sends")
    digest = server.client.upload(tmp_path / "notes.txt").sha256
    server.client.reject(task, comment="too long")
    page.goto(f"/administration?view=audit&object={case}")
    table = page.get_by_role("grid", name="Who did what")
    expect(table).to_contain_text(task)
    expect(table).to_contain_text("start")
    page.get_by_label("Object").fill("")
    expect(page.get_by_text("That files were stored (store_file) is hidden.")).to_be_visible()
    expect(table).not_to_contain_text(digest)
    page.get_by_role("button", name="Show it").click()
    expect(table).to_contain_text(digest)
    page.get_by_label("Operation").fill("store_file")
    expect(table).to_contain_text(digest)


def test_an_alert_is_acknowledged_on_home(page: Page, server: WebServer) -> None:  # UI-1
    server.deploy("grind", CRUNCH.replace("crunch", "grind"))
    case = server.client.start("grind", {"n": 1}).id
    server.wait_for("/alerts", lambda alerts: any(each["case"] == case for each in alerts))
    page.goto("/")
    row = page.get_by_role("list", name="Alerts").get_by_role("listitem").filter(has_text=case)
    expect(row.locator('[data-icon="failures"]')).to_have_text("warning")
    row.get_by_role("button", name="I have seen it").click()
    expect(row).to_contain_text("seen by")
    expect(row.get_by_role("button", name="I have seen it")).to_have_count(0)
    server.client.cancel(case)


def test_an_alert_is_acknowledged(page: Page, held: str) -> None:
    page.goto("/administration?view=alerts")
    row = page.get_by_role("list", name="Alerts").get_by_role("listitem").filter(has_text=held)
    row.get_by_role("button", name="I have seen it").click()
    expect(row.get_by_role("button", name="I have seen it")).not_to_be_visible()
    expect(row).to_contain_text("now")
    row.get_by_role("link", name="The item").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(held)


def test_a_webhook_is_added_tried_and_removed(page: Page, server: WebServer) -> None:
    page.goto("/administration?view=webhooks")
    page.get_by_role("button", name="Add a webhook").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Address").fill("http://127.0.0.1:9/hook")
    dialog.get_by_label("a case completed").check()
    dialog.get_by_label("Secret").fill(SECRET)
    confirm(page, "Add")
    row = page.get_by_role("row").filter(has_text="127.0.0.1:9")
    expect(row).to_contain_text("signed")
    row.get_by_role("button", name="Try it").click()
    expect(page.get_by_role("log", name="Notes")).to_contain_text("It did not arrive")
    assert SECRET not in page.content()
    row.get_by_role("button", name="Remove …").click()
    confirm(page, "Remove")
    expect(row).not_to_be_visible()
    assert server.ask("GET", "/webhooks") == []


def test_a_limit_is_set_changed_and_removed(page: Page, server: WebServer) -> None:
    page.goto("/administration?view=limits")
    page.get_by_role("button", name="New limit").click()
    page.get_by_role("dialog").get_by_label("Name").fill("licences")
    page.get_by_role("dialog").get_by_label("Together at most").fill("4")
    confirm(page, "Set")
    row = page.get_by_role("row").filter(has_text="licences")
    expect(row).to_contain_text("0 of 4")
    row.get_by_role("button", name="Change …").click()
    page.get_by_role("dialog").get_by_label("Together at most").fill("6")
    confirm(page, "Set")
    expect(row).to_contain_text("0 of 6")
    row.get_by_role("button", name="Remove …").click()
    confirm(page, "Remove")
    expect(row).not_to_be_visible()
    assert [each["name"] for each in server.ask("GET", "/limits")] == []


def test_a_project_gets_quotas_that_are_changed_and_taken_away(page: Page, server: WebServer) -> None:
    page.goto("/administration?view=projects")
    page.get_by_role("button", name="Bound a project").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Project").fill("lab")
    dialog.get_by_label("Cases").fill("5")
    dialog.get_by_label("Memory").fill("much")
    expect(dialog.get_by_text("Write a number and a unit")).to_be_visible()
    expect(dialog.get_by_role("button", name="Set", exact=True)).to_be_disabled()
    dialog.get_by_label("Memory").fill("8 GiB")
    dialog.get_by_label("Stored files").fill("1234567 B")
    confirm(page, "Set")
    row = page.get_by_role("row").filter(has_text="lab")
    expect(row).to_contain_text("cases 0 of 5")
    page.reload()
    row.get_by_role("button", name="Change …").click()
    expect(dialog.get_by_label("Memory")).to_have_value("8 GiB")
    expect(dialog.get_by_label("Stored files")).to_have_value("1234567 B")
    dialog.get_by_label("Weight").fill("2.5")
    dialog.get_by_label("Cases").fill("")
    confirm(page, "Set")
    expect(row).to_contain_text("2.5")
    expect(row).not_to_contain_text("cases")
    settings = server.ask("GET", "/projects/lab")["settings"]
    quotas = {name: value for name, value in settings["quotas"].items() if value is not None}
    assert (settings["weight"], quotas) == (2.5, {"memory_bytes": 8 * 2**30, "stored_bytes": 1234567})
    row.get_by_role("button", name="Take away …").click()
    confirm(page, "Take away")
    expect(row).to_have_count(0)


def test_a_rule_of_retention_is_set_and_removed(page: Page, server: WebServer) -> None:
    page.goto("/administration?view=retention")
    page.get_by_role("button", name="New rule").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("old-surveys")
    dialog.get_by_label("Older than").fill("400 d")
    dialog.get_by_label("Of the flow").fill("survey")
    confirm(page, "Set")
    row = page.get_by_role("row").filter(has_text="old-surveys")
    expect(row).to_contain_text("completed of survey")
    assert [each["rule"]["name"] for each in server.ask("GET", "/retention")] == ["old-surveys"]
    row.get_by_role("button", name="Remove …").click()
    confirm(page, "Remove")
    expect(page.get_by_text("Everything is kept")).to_be_visible()
    assert server.ask("GET", "/retention") == []


def test_cases_are_removed_after_a_look_at_what_would_go(page: Page, server: WebServer) -> None:
    server.deploy("chaff", "name: chaff\nsteps: [echo chaff]\n")
    case = server.ask("POST", "/cases", {"flow": "chaff"})["id"]  # without a key, by which its starter may ask again
    server.came_to(case, "completed")
    page.goto("/administration?view=retention")
    panel = page.locator("section").filter(has=page.get_by_role("heading", name="Remove cases now"))
    expect(panel.get_by_role("button", name="Remove them …")).to_be_disabled()
    panel.get_by_label("Of the flow").fill("chaff")
    panel.get_by_label("Older than").fill("1 ms")
    panel.get_by_role("button", name="What would go").click()
    expect(panel.get_by_role("status")).to_contain_text("1 case would go")
    expect(panel.get_by_role("link", name=case)).to_be_visible()
    assert server.client.case(case).status == "completed"
    panel.get_by_role("button", name="Remove them …").click()
    confirm(page, "Remove")
    expect(panel.get_by_role("status")).to_contain_text("1 case went")
    assert server.client.cases(flow="chaff") == []


def test_a_secret_is_set_and_its_value_never_shown(page: Page, server: WebServer) -> None:
    page.goto("/administration?view=secrets")
    page.get_by_role("button", name="Set a secret").click()
    page.get_by_role("dialog").get_by_label("Name").fill("archive-password")
    page.get_by_role("dialog").get_by_label("Value").fill(SECRET)
    confirm(page, "Set")
    row = page.get_by_role("row").filter(has_text="archive-password")
    row.get_by_role("button", name="New value …").click()
    expect(page.get_by_role("dialog").get_by_label("Value")).to_have_value("")
    page.get_by_role("dialog").get_by_role("button", name="Not now").click()
    page.reload()
    expect(row).to_be_visible()
    assert SECRET not in page.content()
    row.get_by_role("button", name="Remove …").click()
    expect(page.get_by_role("dialog")).to_contain_text("No flow uses it")
    confirm(page, "Remove")
    expect(row).not_to_be_visible()


@pytest.mark.parametrize(
    "view", ["tokens", "audit", "alerts", "webhooks", "retention", "limits", "secrets", "projects", "versions"]
)
def test_every_view_is_kept_by_its_address(page: Page, view: str) -> None:
    page.goto(f"/administration?view={view}")
    current = page.get_by_role("navigation", name="Views").locator('[aria-current="page"]')
    expect(current).to_be_visible()
    word = current.inner_text()
    page.reload()
    expect(current).to_have_text(word)
    expect(page.get_by_role("alert")).to_have_count(0)
