"""A server that is killed and comes back while a page is open."""

from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.web.flows import FLOWS
from tests.web.watched import Complaints, watched
from tests.web.web_server import serving


def test_a_page_goes_on_when_its_server_is_back(browser: Browser, complaints: Complaints, tmp_path: Path) -> None:
    complaints.expected.append("net::ERR_")  # what the browser itself says of a server that is away
    with serving(tmp_path) as server, watched(browser, server.url, complaints=complaints) as context:
        server.deploy("quick", FLOWS["quick"])
        before = server.ended("quick")
        page = context.page()
        page.goto("/cases")
        expect(page.locator(f'[data-row="{before}"]')).to_be_visible()
        server.kill()
        expect(page.get_by_role("button", name="server away")).to_be_visible(timeout=20_000)
        expect(page.locator(f'[data-row="{before}"]')).to_be_visible()
        server.start()
        expect(page.get_by_role("button", name="live")).to_be_visible(timeout=30_000)
        after = server.ended("quick")
        expect(page.locator(f'[data-row="{after}"]')).to_be_visible(timeout=30_000)
