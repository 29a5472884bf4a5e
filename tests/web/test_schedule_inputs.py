"""Who makes a schedule sees what its cases are given, before when they start."""  # UI-1

import pytest
from playwright.sync_api import Browser, ViewportSize, expect

from tests.web.watched import DESK, PHONE, watched
from tests.web.web_server import WebServer

NIGHTLY = """
name: reads-of-night
inputs:
  night: {type: string, description: The night that is reduced}
  fields: {type: list, default: [m31, m33]}
  depth: {type: number, default: 30}
jobs:
  say: {run: "echo '${{ inputs.night }}'"}
"""


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_ui_1_what_a_schedule_needs_is_in_sight(browser: Browser, server: WebServer, size: ViewportSize) -> None:
    server.deploy("reads-of-night", NIGHTLY)
    name = f"nights-{size['width']}"
    with watched(browser, server.url, size=size) as context:
        page = context.page()
        page.goto("/schedules?make=true")
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Name").fill(name)
        dialog.get_by_label("Flow").fill("reads-of-night")
        expect(dialog.get_by_text("It has 3 inputs, 1 needed.")).to_be_in_viewport()
        needed = dialog.get_by_role("textbox", name="night")
        expect(needed).to_be_in_viewport(ratio=1)
        others = dialog.get_by_text("2 inputs with defaults: fields, depth")
        expect(others).to_be_in_viewport(ratio=1)
        dialog.get_by_role("button", name="Make it").click()
        expect(needed).to_be_focused()
        needed.fill("2026-11-19")
        others.click()
        dialog.get_by_role("textbox", name="depth").fill("40")
        dialog.get_by_role("button", name="Make it").click()
        expect(dialog).not_to_be_visible()
    made = server.ask("GET", f"/schedules/{name}")
    assert made["spec"]["inputs"] == {"night": "2026-11-19", "depth": 40}
