"""What a person was told of is not shown as mended: on Home, among the failures, on the page of a cause."""  # UI-1

import re

from playwright.sync_api import Page, expect

from mendflow.core.model.repair import ExceptionType, Primitive
from tests.services.recovery.kit import exlet, mend, rule_set
from tests.web.web_server import WebServer

BIG = """
name: big
jobs:
  huge: {run: echo done, resources: {memory: 900 TB}}
"""


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
    page.goto(f"/cases/{case}?view=history")
    told = page.get_by_role("grid", name="History").get_by_role("row", name="a person was told")
    expect(told).to_be_visible()
    server.client.cancel(case)
