"""From the file of a case to the editor of its flow: what others deployed since is not taken back unseen."""

# UI-1

from playwright.sync_api import Page, expect

from tests.web.web_server import WebServer


def test_ui_1_the_file_of_a_case_is_edited_as_the_next_version(page: Page, server: WebServer) -> None:
    _deploy(server, "echo edited")
    case = server.ended("edited")
    page.goto(f"/cases/{case}?view=file")
    page.get_by_role("link", name="Edit as the next version").click()
    expect(page).to_have_url(f"{server.url}/flows/edited?view=edit")
    expect(page.locator(".cm-content")).to_contain_text("echo edited")
    _deploy(server, "echo edited anew")
    page.goto(f"/cases/{case}?view=file")
    expect(page.get_by_role("link", name="Edit version 2")).to_be_visible()
    page.get_by_role("link", name="edit this text all the same").click()
    expect(page.get_by_role("heading", name=f"The flow of {case}")).to_be_visible()
    expect(page.locator(".cm-content")).to_contain_text("echo edited")
    page.get_by_role("button", name="Deploy edited").click()
    page.wait_for_url("**/flows/edited")
    assert server.ask("GET", "/flows/edited")["version"] == 3


def _deploy(server: WebServer, command: str) -> None:
    """With the text of its file, as the editor and the command line send it."""
    text = f"name: edited\njobs:\n  say: {{run: {command}}}\n"
    flow = server.ask("POST", "/flow-checks", {"text": text, "name": "edited.yaml"})["flow"]
    server.ask("POST", "/flows", {**flow, "source": {"file": "edited.yaml", "text": text}})
