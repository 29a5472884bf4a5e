"""What rules have done is told as that: what a person was only told of is not shown as mended, on Home, among the
failures, on the page of a cause and in its case; and what was mended says by what."""  # UI-1

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from mendflow.core.model.repair import ExceptionType, Primitive
from tests.services.recovery.kit import exlet, mend, rule_set
from tests.web.web_server import WebServer, serving

BIG = """
name: big
jobs:
  huge: {run: echo done, resources: {memory: 900 TB}}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """A server of its own: Home shows the causes that most want somebody, and other tests leave some."""
    with serving(tmp_path_factory.mktemp("told")) as made:
        yield made


def test_a_job_that_nobody_can_take_is_told_and_not_mended(server: WebServer, page: Page) -> None:  # FM-12
    tell = exlet("tell", mend(Primitive.NOTIFY, message="nobody can take it"))
    rules = rule_set("big", ExceptionType.UNAVAILABLE, ("!job.able", "tell"), exlets=[tell], task="huge")
    server.deploy("big", BIG)
    server.client.put_rules(rules)
    case = server.begin("big")
    [group] = server.wait_for("/failures?flow=big", lambda groups: bool(groups) and groups[0]["told"] == 1)
    page.goto("/")
    cause = page.get_by_role("list", name="Failures by cause").get_by_role("link", name="no pilot can take it")
    expect(cause).to_contain_text("1 told")
    expect(page.get_by_role("list", name="Mended by rules")).not_to_contain_text("tell")
    cause.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("no pilot can take it: it asks for")
    expect(page.get_by_role("main")).to_contain_text("of 1 a person was told, and nothing else was done")
    expect(page.get_by_role("main")).to_contain_text("900 TB", use_inner_text=True)
    page.goto("/failures?only=told")
    row = page.locator(f'[data-row="{group["id"]}"]')
    expect(row).to_contain_text("tell told a person")
    row.get_by_role("link", name="tell told a person").click()
    expect(page).to_have_url(re.compile("tree=unavailable%2Fhuge"))
    expect(page.get_by_role("complementary", name="Rule 0", exact=True)).to_contain_text("tell")
    page.goto(f"/cases/{case}")
    expect(page.get_by_role("note", name="What people were told")).to_contain_text("Administrators were told of huge")
    page.locator('[data-node="exlet:huge:tell"] .case-node-name').click()
    pane = page.get_by_role("complementary", name="Exlet tell")
    expect(pane).to_contain_text("rule 0 for unavailable of huge of big decided it: administrators were told")
    expect(pane.get_by_role("link", name="messages")).to_have_attribute("href", re.compile("view=alerts&messages=true"))
    pane.get_by_role("link", name="huge", exact=True).click()
    item = page.get_by_role("complementary", name="Item huge")
    expect(item).to_contain_text("What was told")
    expect(item).to_contain_text("did tell: administrators were told, and nothing else was done")
    page.goto(f"/cases/{case}?view=history")
    told = page.get_by_role("grid", name="History").get_by_role("row", name="a person was told")
    expect(told).to_be_visible()
    page.goto("/administration?view=alerts&messages=true")
    expect(page.get_by_role("list", name="Alerts")).to_contain_text("nobody can take it")
    server.client.cancel(case)


THIRSTY = """
name: thirsty
jobs:
  fill: {run: 'if mkdir "{asked}"; then echo "out of water" >&2; exit 7; fi', retries: 0, resources: {memory: 50 MB}}
"""


def test_an_item_says_what_mended_it_and_what_that_changed(server: WebServer, page: Page) -> None:
    more = exlet("more-water", mend(Primitive.RESUBMIT, resources={"memory_bytes": 100_000_000}))
    server.deploy("thirsty", THIRSTY.replace("{asked}", str(server.folder / "asked-thirsty")))
    server.client.put_rules(
        rule_set("thirsty", ExceptionType.ABORT, ("true", "more-water"), exlets=[more], task="fill")
    )
    case = server.ended("thirsty")
    page.goto(f"/cases/{case}?view=items&item=fill")
    repairs = page.get_by_role("complementary", name="Item fill").get_by_role("list", name="Repairs")
    expect(repairs).to_contain_text("rule 0 for fill of thirsty did more-water: recovered")
    expect(repairs).to_contain_text("It changed memory 50.0 MB → 100 MB.")
    page.goto(f"/cases/{case}")
    box = page.locator('[data-node="exlet:fill:more-water"]')
    note, fold = box.locator(".case-node-note").first, box.get_by_role("button", name="Fold more-water")
    expect(note).to_have_text("exlet · 1 recovered")
    outer = box.bounding_box()
    assert outer is not None
    for part in (note, fold, box.locator(".case-node-name").first):
        inner = part.bounding_box()
        assert inner is not None and inner["width"] > 0 and inner["x"] + inner["width"] <= outer["x"] + outer["width"]
