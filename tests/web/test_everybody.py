"""Everybody can use every page, in the light and in the dark: axe-core finds nothing that keeps somebody out. The pages
of failures and rules are in test_rules_pages."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.web.test_worklist_page import LETTER
from tests.web.watched import violations, watched
from tests.web.web_server import WebServer

SCHEDULE = {"name": "weekly", "flow": "quick", "cron": "0 4 * * 1"}
SITE = {"name": "attic", "max_pilots": 1}


@pytest.fixture(scope="module")
def addresses(server: WebServer) -> Iterator[list[str]]:
    """Every page, with something on it."""
    server.deploy("letter", LETTER)
    server.ask("PUT", "/schedules/weekly", SCHEDULE)
    server.ask("PUT", "/sites/attic", SITE)
    server.ask("PUT", "/limits/places", {"count": 2})
    letter, good, bad = server.begin("letter"), server.ended("survey"), server.ended("broken")
    task = server.wait_for(f"/worklist?case={letter}", bool)[0]["id"]
    pilot = server.ask("GET", "/pilots")[0]["id"]
    yield [
        "/",
        "/cases",
        f"/cases/{good}",
        f"/cases/{bad}?view=items&item=measure[1]",
        *(f"/cases/{good}?view={view}" for view in ("timeline", "history", "data", "messages", "file")),
        f"/cases/{bad}?view=compare&with={good}",
        "/help",
        "/worklist",
        f"/worklist/{task}",
        "/run",
        "/flows",
        "/run?write=true",
        "/run/survey",
        *(f"/flows/survey?view={view}" for view in ("drawing", "file", "model", "deployments", "edit")),
        "/schedules?name=weekly",
        "/schedules?make=true",
        *(f"/data?view={view}" for view in ("files", "sets", "storage", "results")),
        f"/pilots?pilot={pilot}",
        "/sites?site=attic",
        "/sites?make=true",
        "/domains",
        "/domains?make=invite",
        *(f"/administration?view={view}" for view in ("tokens", "audit", "alerts", "webhooks", "retention", "limits")),
        *(f"/administration?view={view}" for view in ("secrets", "projects", "versions")),
        "/sign-in",
        "/nowhere",
    ]
    for path in ("/schedules/weekly", "/sites/attic", "/limits/places"):
        server.ask("DELETE", path)
    server.client.cancel(letter)
    server.wait_for("/sites", lambda sites: not sites)


def test_nobody_is_kept_out_of_a_page(server: WebServer, addresses: list[str], browser: Browser) -> None:
    found: dict[str, list[str]] = {}
    with watched(browser, server.url, bypass_csp=True) as context:
        page = context.page()
        for address in addresses:
            page.goto(address)
            page.locator("main h1, [role=dialog] h2").first.wait_for()
            page.wait_for_timeout(700)  # what is read after the page
            if problems := violations(page):
                found[address] = problems
    assert not found, "\n".join(f"{address}: {problems}" for address, problems in found.items())
