"""A job that no pilot could ever take, on a server with tokens: the alert is there for its project and for
administrators, and what the pages say of it is true."""  # JS-5 UI-1

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.watched import Complaints, watched
from tests.web.web_server import BOSS, WebServer, serving

MODEL = """
name: model
jobs:
  train: {run: echo trained, resources: {gpus: 1}}
"""
SOON = ("--jobs", "1", "--alert", "unable=1s", "--alert", "look=1s")


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    with serving(tmp_path_factory.mktemp("strict"), token=BOSS, options=SOON) as made:
        yield made


def token(server: WebServer, name: str, project: str) -> str:
    return str(server.ask("POST", "/tokens", {"name": name, "projects": {project: "viewer"}})["token"])


def test_a_job_that_no_pilot_can_take_is_an_alert_of_its_project(
    strict: WebServer, browser: Browser, complaints: Complaints
) -> None:
    strict.deploy("model", MODEL)
    case = strict.begin("model")
    [alert] = strict.wait_for("/alerts", bool)
    assert (alert["kind"], alert["case"], alert["item"]) == ("no-pilot", case, "train")
    with watched(browser, strict.url, complaints=complaints) as boss:
        boss.sign_in(BOSS)
        page = boss.page()
        see_what_waits(page, case)
    with watched(browser, strict.url, complaints=complaints) as other:
        other.sign_in(token(strict, "olga", "elsewhere"))
        page = other.page()
        page.goto("/")
        expect(page.get_by_text("Nothing has run here yet")).to_be_visible()
        expect(page.get_by_role("main")).not_to_contain_text(case)
    with watched(browser, strict.url, complaints=complaints) as own:
        own.sign_in(token(strict, "ann", "default"))
        page = own.page()
        page.goto("/")
        expect(page.locator(".home-alert")).to_contain_text("would do so for ever")
    strict.client.cancel(case)
    strict.wait_for("/alerts", lambda found: not found)


def see_what_waits(page: Page, case: str) -> None:
    page.goto("/")
    row = page.locator(".home-alert")
    expect(row).to_contain_text(
        f"{case}: 'train' waits, and would do so for ever: no pilot can take it: it asks for 1 gpu"
    )
    row.get_by_role("link", name="The item").click()
    expect(page.get_by_role("link", name="Start it with other inputs")).to_have_count(0)
    page.get_by_role("link", name="Add a pilot").click()
    said = page.get_by_role("dialog", name="Add a pilot")
    expect(said).to_contain_text("mendflow pilot --server http://127.0.0.1")
    said.get_by_role("button", name="Close").click()
    grid = page.get_by_role("grid", name="Pilots")
    expect(grid.get_by_role("columnheader", name="GPUs")).to_be_visible()
