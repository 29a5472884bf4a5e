"""Profiles of a browser whose pages must not complain: not by an error in the console, and not by an exception that
nothing catches. And whether everybody can use a page (axe-core)."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Page, ViewportSize

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
DESK: ViewportSize = {"width": 1440, "height": 900}
SEEN_CHARS_MAX = 8_000
PHONE: ViewportSize = {"width": 390, "height": 844}

OF_COLOURS = ["color-contrast", "link-in-text-block"]
"""What axe-core looks for that is not the same in the dark."""


class Complaints:
    """What pages complained of. A test that makes the server refuse something says which complaint it expects."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.expected: list[str] = []

    def hear(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.found.append(f"{message.text} {message.location}")

    def hear_error(self, error: Error) -> None:
        self.found.append(str(error))

    def unexpected(self) -> list[str]:
        return [each for each in self.found if not any(part in each for part in self.expected)]


class WatchedContext:
    """Pages of one browser profile, and what they complained of."""

    def __init__(self, context: BrowserContext, url: str, complaints: Complaints) -> None:
        self._context = context
        self._url = url
        self.complaints = complaints

    def page(self) -> Page:
        page = self._context.new_page()
        page.on("console", self.complaints.hear)
        page.on("pageerror", self.complaints.hear_error)
        return page

    def sign_in(self, token: str) -> None:
        """Have the profile signed in, without a page."""
        assert self.send("POST", "/session", {"token": token}) == 204

    def send(self, method: str, path: str, body: object = None) -> int:
        """Ask the server as a page of this profile does; the status of its answer."""
        own = {"Mendflow-Request": "web", "Origin": self._url, "Content-Type": "application/json"}
        return self._context.request.fetch(f"/api/v1{path}", method=method, data=body, headers=own).status


@contextmanager
def watched(
    browser: Browser,
    url: str,
    *,
    complaints: Complaints | None = None,
    size: ViewportSize = DESK,
    bypass_csp: bool = False,
) -> Iterator[WatchedContext]:
    """A profile of its own, whose pages must not complain."""
    context = browser.new_context(
        base_url=url, viewport=size, has_touch=size is PHONE, color_scheme="light", bypass_csp=bypass_csp
    )
    context.set_default_timeout(20_000)
    found = WatchedContext(context, url, complaints or Complaints())
    try:
        yield found
    except Exception as failure:
        for page in context.pages:
            failure.add_note(_as_seen(page))
        raise
    finally:
        context.close()
    assert not found.complaints.unexpected(), found.complaints.unexpected()


def _as_seen(page: Page) -> str:
    """What a screen reader would tell of the page now, for whoever reads why a test failed."""
    try:
        return f"{page.url} showed:\n{page.locator('body').aria_snapshot(timeout=5_000)[:SEEN_CHARS_MAX]}"
    except Error as gone:
        return f"{page.url} could not be read any more: {gone}"


def violations(page: Page) -> list[str]:
    """Where the page, in the light and in the dark, keeps somebody out. The page must be one whose policy is bypassed,
    so that axe-core can look."""
    page.evaluate(AXE.read_text())
    found = _violations(page, "{}")
    page.emulate_media(color_scheme="dark")
    page.locator('html[data-theme="dark"]').wait_for()
    found += [f"in the dark, {each}" for each in _violations(page, f"{{runOnly: {OF_COLOURS}}}")]
    page.emulate_media(color_scheme="light")
    return found


def _violations(page: Page, options: str) -> list[str]:
    said = page.evaluate(f"axe.run(document, {{resultTypes: ['violations'], ...{options}}})")
    return [f"{each['id']}: {[node['target'] for node in each['nodes']][:4]}" for each in said["violations"]]
