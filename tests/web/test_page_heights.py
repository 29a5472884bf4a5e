"""A page is as high as its window where its parts scroll by themselves: one bar, and the head of the page stays."""

import pytest
from playwright.sync_api import Page, expect

from tests.web.web_server import WebServer

LONG_LOG = """
name: wordy
jobs:
  talk: {run: 'for n in $(seq 60); do echo "reading part $n"; done; echo "Error: part 61 is torn" >&2; exit 3'}
"""


@pytest.mark.parametrize("width, height", [(1440, 900), (390, 844)])
def test_ui_1_a_long_log_does_not_make_the_page_longer_than_its_window(
    server: WebServer, page: Page, width: int, height: int
) -> None:
    server.deploy("wordy", LONG_LOG)
    server.ended("wordy")
    [group] = server.wait_for("/failures?flow=wordy", bool)
    page.set_viewport_size({"width": width, "height": height})
    for address in (f"/failures/{group['id']}", f"/failures/{group['id']}/teach"):
        page.goto(address)
        expect(page.get_by_text("part 61 is torn").first).to_be_attached()
        beyond = page.evaluate("document.documentElement.scrollHeight - window.innerHeight")
        assert beyond <= 0, (address, beyond)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, address
