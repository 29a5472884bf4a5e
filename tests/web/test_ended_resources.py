"""What ends or goes on with the last click of its page: a data set that is closed, a batch that gets another case, and
a site that is removed while it has pilots."""  # UI-1

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from mendflow.core.model.data_sets import DataSetSpec, Gathering
from tests.patience import PATIENCE_S
from tests.web.dialogs import choose, confirm, noted
from tests.web.watched import Complaints, watched
from tests.web.web_server import WebServer, serving

SIFT = """
name: sift
inputs: {{files: {{type: list}}}}
jobs:
  sift:
    run: 'if mkdir "{asked}" 2>/dev/null; then echo "the sieve is torn" >&2; exit 5; fi'
    inputs: {{grains/: "${{{{ inputs.files }}}}"}}
    retries: 0
"""
AT_THE_ANNEX = """
name: far-off
jobs:
  observe: {run: "echo begun; while [ ! -e LEAVE ]; do sleep 0.1; done", site: annex}
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """A server whose sets and sites are those of these tests alone."""
    with serving(tmp_path_factory.mktemp("alone")) as made:
        yield made


@pytest.fixture
def page(browser: Browser, alone: WebServer, complaints: Complaints) -> Iterator[Page]:
    with watched(browser, alone.url, complaints=complaints) as context:
        yield context.page()


def test_a_batch_gets_another_case_and_its_set_is_closed(page: Page, alone: WebServer) -> None:
    alone.deploy("sift", SIFT.format(asked=alone.folder / "asked"))
    pairs = Gathering(name="pairs", flow="sift", count=2, inputs={"files": "${{ files }}"})
    alone.client.put_data_set(DataSetSpec(name="sand", gatherings=(pairs,)))
    for number in range(3):
        path = alone.folder / f"grain-{number}.txt"
        path.write_text(f"grain {number}")
        alone.client.add_to_set("sand", [alone.client.upload(path)])
    alone.wait_for("/data/sets/sand/batches", lambda batches: statuses(batches) == ["failed"])

    page.goto("/data?view=sets&name=sand")
    details = page.get_by_role("complementary", name="Data set sand")
    details.get_by_role("button", name="Another case").click()
    noted(page, "Another case takes it up")
    expect(details.get_by_role("button", name="Another case")).to_have_count(0)
    alone.wait_for("/data/sets/sand/batches", lambda batches: statuses(batches) == ["completed"])
    expect(details).to_contain_text("1 file waits")

    details.get_by_role("button", name="Nothing more comes …").click()
    expect(page.get_by_role("dialog")).to_contain_text("what has gathered starts its last cases now")
    confirm(page, "Close it")
    noted(page, "sand is closed")
    expect(details.get_by_role("button", name="Nothing more comes …")).to_have_count(0)
    rest = alone.wait_for("/data/sets/sand/batches", lambda batches: statuses(batches) == ["completed"] * 2)
    assert [each["files"] for each in rest] == [1, 2]
    alone.wait_for("/data/sets/sand", lambda found: found["state"] == "over")
    expect(page.locator('[data-row="sand"]')).to_contain_text("over")


def statuses(batches: Any) -> list[str]:
    return [each["status"] for each in batches]


def at_work(alone: WebServer, leave: Path) -> tuple[str, str]:
    """A site with one pilot that runs a job: the case, and the pilot."""
    site = {"name": "annex", "max_pilots": 1, "batch": {"kind": "local"}, "pilots": {"idle_exit_ms": 1_000}}
    alone.ask("PUT", "/sites/annex", site)
    alone.deploy("far-off", AT_THE_ANNEX.replace("LEAVE", str(leave)))
    case = alone.begin("far-off")
    alone.item_came_to(case, "observe", "running")
    (pilot,) = (each["id"] for each in alone.ask("GET", "/pilots") if each["site"] == "annex")
    return case, pilot


def test_a_site_that_is_removed_goes_with_its_last_pilot(page: Page, alone: WebServer, tmp_path: Path) -> None:
    case, pilot = at_work(alone, tmp_path / "leave")
    page.goto("/sites?site=annex")
    details = page.get_by_role("complementary", name="Site annex")
    expect(details).to_contain_text("1 busy")
    expect(details.get_by_role("link", name=pilot)).to_be_visible()
    choose(page, "More acts on annex", "Remove …", within=details)
    expect(page.get_by_role("dialog")).to_contain_text("when its last pilot has done its jobs")
    confirm(page, "Remove")
    noted(page, "annex is being removed")
    assert alone.client.case(case).status == "running"
    expect(page.locator('[data-row="annex"]')).to_contain_text("removed")
    (tmp_path / "leave").touch()
    assert alone.client.wait(case, timeout_s=PATIENCE_S).status == "completed"
    expect(page.get_by_text("No site yet")).to_be_visible(timeout=1000 * PATIENCE_S)


def test_a_site_is_removed_with_its_pilots_at_once(page: Page, alone: WebServer, tmp_path: Path) -> None:
    case, pilot = at_work(alone, tmp_path / "leave")
    page.goto("/sites?site=annex")
    details = page.get_by_role("complementary", name="Site annex")
    choose(page, "More acts on annex", "Remove, and end its pilots …", within=details)
    expect(page.get_by_role("dialog")).to_contain_text("Its pilots are ended now")
    confirm(page, "Remove")
    expect(page.get_by_text("No site yet")).to_be_visible(timeout=1000 * PATIENCE_S)
    alone.wait_for("/pilots", lambda pilots: pilot not in [each["id"] for each in pilots if each["state"] != "gone"])
    alone.item_came_to(case, "observe", "waiting")
    alone.client.cancel(case)
