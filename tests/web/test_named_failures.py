"""The page of a case names the items that failed: each is a link, and those not named are one step away."""  # UI-1

import re

from playwright.sync_api import Page, expect

from tests.web.web_server import WebServer

DARK_FIELDS = """
name: dark-fields
on-unhandled: hold
jobs:
  measure:
    for-each: {field: "${{ range(3) }}"}
    retries: 0
    run: echo "no light in ${{ field }}" >&2; exit 4
"""
WIDE_FIELDS = """
name: wide-fields
jobs:
  measure:
    for-each: {field: "${{ range(8) }}", min-success: 1}
    retries: 0
    run: echo "no room for ${{ field }}" >&2; exit 4
"""


def test_ui_1_each_failure_that_is_named_leads_to_its_item(page: Page, server: WebServer) -> None:
    server.deploy("dark-fields", DARK_FIELDS)
    case = server.begin("dark-fields")
    server.wait_for(f"/cases/{case}", lambda view: len(view["held"]) == 3)
    page.goto(f"/cases/{case}?view=history")
    told = page.get_by_role("region", name=f"Why {case}", exact=True)
    for at in range(3):
        told.get_by_role("link", name=f"measure[{at}]", exact=True).click()
        expect(page).to_have_url(re.compile("view=history"))
        expect(page.get_by_role("region", name=f"Why {case}:measure[{at}]")).to_contain_text(f"no light in {at}")


def test_ui_1_what_is_not_named_is_one_step_away(page: Page, server: WebServer) -> None:
    server.deploy("wide-fields", WIDE_FIELDS)
    case = server.ended("wide-fields")
    page.goto(f"/cases/{case}")
    told = page.get_by_role("region", name=f"Why {case}", exact=True)
    expect(told.get_by_role("listitem").get_by_role("link", name=re.compile(r"^measure\[\d\]$"))).to_have_count(3)
    told.get_by_role("button", name=re.compile(r"^and \d more$")).click()
    expect(told).to_contain_text(re.compile(r"and \d more: all that failed"))
    told.get_by_role("link", name="all that failed").click()
    expect(page.get_by_role("grid", name="Items").locator("[data-row]")).to_have_count(8)
