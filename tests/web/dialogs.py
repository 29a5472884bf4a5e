"""Acts as people do them: a menu is opened, an act chosen, and what the dialog asks is answered."""

from playwright.sync_api import Locator, Page, expect


def confirm(page: Page, act: str) -> None:
    """Answer the dialog, which must then be gone: it stays where the server refuses."""
    page.get_by_role("dialog").get_by_role("button", name=act, exact=True).click()
    expect(page.get_by_role("dialog")).not_to_be_visible()


def choose(page: Page, menu: str, act: str, *, within: Locator | None = None) -> None:
    (within or page.locator("main")).get_by_role("button", name=menu, exact=True).click()
    page.get_by_role("menuitem", name=act).click()


def noted(page: Page, text: str) -> None:
    """The page has said this in a corner."""
    expect(page.get_by_role("log", name="Notes")).to_contain_text(text)
