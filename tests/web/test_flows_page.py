"""The deployed flows have a page of their own, where each is looked at, edited, removed and run."""  # UI-1

import re

from playwright.sync_api import Page, expect

from tests.web.flows import QUICK
from tests.web.web_server import WebServer


def test_ui_1_flows_are_found_in_the_navigation(page: Page, server: WebServer) -> None:
    server.deploy("soon-gone", QUICK.replace("quick", "soon-gone"))
    page.goto("/run")
    page.get_by_role("main").get_by_role("link", name="Flows", exact=True).click()
    expect(page.get_by_role("heading", name="Flows", exact=True)).to_be_visible()
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Home").click()
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Flows").click()
    page.get_by_label("Find a flow").fill("soon")
    row = page.get_by_role("grid", name="Flows").locator("[data-row]")
    expect(row).to_have_count(1)
    expect(row.get_by_role("link", name="Run soon-gone")).to_have_attribute("href", re.compile("/run/soon-gone$"))
    row.get_by_role("link", name="Edit soon-gone").click()
    expect(page.get_by_role("button", name="Remove …")).to_be_visible()
    page.get_by_role("button", name="Remove …").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove", exact=True).click()
    expect(page.get_by_role("heading", name="Flows", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="soon-gone", exact=True)).to_have_count(0)
