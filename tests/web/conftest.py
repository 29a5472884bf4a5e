"""Pages in a real Chromium, on a real server with pilots."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.marked import below
from tests.servers import chromium
from tests.web.flows import FLOWS
from tests.web.recovery_case import CRUNCH
from tests.web.watched import Complaints, watched
from tests.web.web_server import BOSS, WebServer, serving

HERE = Path(__file__).parent
expect.set_options(timeout=20_000)  # a busy machine is slow, and only what fails takes this long


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in below(items, HERE):
        item.add_marker(pytest.mark.web)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """One server for all tests, with the flows of flows.py."""
    with serving(tmp_path_factory.mktemp("web")) as made:
        for name, text in FLOWS.items():
            made.deploy(name, text)
        yield made


@pytest.fixture(scope="session")
def recovery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """One server for the tests of failures and rules, whose flows have causes of their own. A case of crunch waits
    there all the time."""
    with serving(tmp_path_factory.mktemp("recovery")) as made:
        made.deploy("crunch", CRUNCH)
        made.begin("crunch", n=1)
        yield made


@pytest.fixture(scope="session")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """A server that answers nobody without a token."""
    with serving(tmp_path_factory.mktemp("closed"), token=BOSS) as made:
        made.deploy("quick", FLOWS["quick"])
        made.ended("quick")
        yield made


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        shown = playwright.chromium.launch(executable_path=chromium.executable(), args=list(chromium.FLAGS))
        yield shown
        shown.close()


@pytest.fixture
def complaints() -> Complaints:
    return Complaints()


@pytest.fixture
def page(browser: Browser, server: WebServer, complaints: Complaints) -> Iterator[Page]:
    with watched(browser, server.url, complaints=complaints) as context:
        yield context.page()
