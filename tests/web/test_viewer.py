"""Whoever may only look is offered no change on any page, and the server refuses every one that the app can ask for."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.web.flows import FLOWS
from tests.web.recovery_case import fail, passing_trouble
from tests.web.watched import WatchedContext, watched
from tests.web.web_server import WebServer

LOOKS = re.compile(
    r"Views|Filters|Copy .+|Close details|Open|Try again|Link to line \d+|\d+ lines? of trouble|XES, for process mining"
    r"|Show all .+|See .+|Its cases|Compare cornerstones|The flow itself"
    r"|Also the same in all .+|Also known of this case.*|Differs among them.*|Is long, or tells nothing"
    r"|More: .+|More that .+"
    r"|Beginning|End|The line that matters"
    r"|and \d+ more|[Ii]ts cause in Failures|The item|The case|All of this cause"
    r"|Fit View|Zoom In|Zoom Out|[\w-]+: \d+ [\w ]+(?:, \d+ [\w ]+)*"
)
"""What can be clicked to look at more."""
ROWS = ".sort-button, .json-fold, .rule-card, .group-sample, .word"
"""Heads of tables, rows that open, and words that are explained."""


class Things:
    """Something of every kind that can be changed."""

    def __init__(self, closed: WebServer) -> None:
        closed.deploy("broken", FLOWS["broken"])
        closed.deploy("sleeping", "name: sleeping\njobs:\n  watch: {run: sleep 600}\n")
        passing_trouble(closed, "gate", "the gate is locked", code=51)
        self.running = closed.begin("sleeping")
        self.failed = closed.ended("broken")
        self.group, (self.held,) = fail(closed, "gate", "A")
        draft = {"condition": "fault.exit_code == 51", "exlet": "try-again", "group": self.group, "passive": True}
        closed.ask("POST", "/rule-drafts", draft)
        self.decision = closed.ask("GET", f"/decisions?group={self.group}")[0]["id"]
        closed.ask("PUT", "/schedules/weekly", {"name": "weekly", "flow": "quick", "cron": "0 4 * * 1"})
        closed.ask("PUT", "/sites/attic", {"name": "attic", "max_pilots": 1})
        closed.ask("PUT", "/limits/places", {"count": 2})
        self.pilot = closed.ask("GET", "/pilots")[0]["id"]
        self.token = closed.reader("otto")["id"]


@pytest.fixture(scope="module")
def things(closed: WebServer) -> Iterator[Things]:
    made = Things(closed)
    yield made
    closed.client.cancel(made.running)


@pytest.fixture
def viewer(browser: Browser, closed: WebServer) -> Iterator[WatchedContext]:
    with watched(browser, closed.url) as context:
        context.complaints.expected += ["401", "403"]  # what the browser itself says of the server's refusal
        context.sign_in(closed.reader("vera")["token"])
        yield context


def test_no_page_offers_a_change(things: Things, viewer: WatchedContext) -> None:
    addresses = [
        "/",
        "/cases",
        f"/cases?at={things.failed}",
        f"/cases/{things.running}",
        f"/cases/{things.running}?view=items&item=watch",
        f"/cases/{things.failed}",
        f"/cases/{things.failed}?view=items&item=measure[1]",
        f"/cases/{things.held}?view=history",
        "/jobs",
        "/failures",
        f"/failures/{things.group}",
        f"/failures/{things.group}/teach",
        "/rules",
        "/rules/gate?rule=1",
        "/rules/gate?view=trial",
        "/rules/gate?view=versions",
        "/proposals",
        "/worklist",
        "/run",
        "/run?write=true",
        "/run/quick",
        *(f"/flows/quick?view={view}" for view in ("drawing", "file", "deployments", "edit")),
        "/schedules?name=weekly",
        "/schedules?make=true",
        *(f"/data?view={view}" for view in ("files", "sets", "storage", "results")),
        f"/pilots?pilot={things.pilot}",
        "/sites?site=attic",
        "/sites?make=true",
        "/domains",
        "/domains?make=invite",
        *(f"/administration?view={view}" for view in ("tokens", "audit", "alerts", "webhooks", "retention", "limits")),
        *(f"/administration?view={view}" for view in ("secrets", "projects", "versions")),
    ]
    offered: dict[str, list[str]] = {}
    page = viewer.page()
    for address in addresses:
        page.goto(address)
        expect(page.locator(".top-bar")).to_contain_text("vera")
        page.locator("main h1").first.wait_for()
        page.wait_for_timeout(400)  # what is read after the page
        controls = page.locator(f"main :is(button:not({ROWS}), a.button), [role=dialog] button")
        names = controls.evaluate_all("all => all.map(each => each.ariaLabel || each.innerText || each.title)")
        if found := sorted({name.strip() for name in names if not LOOKS.fullmatch(name.strip())}):
            offered[address] = found
    assert not offered, "\n".join(f"{address}: {names}" for address, names in offered.items())


def test_the_server_refuses_what_is_not_offered(closed: WebServer, things: Things, viewer: WatchedContext) -> None:
    rule = {"rule": 1, "type": "abort", "task": "*"}
    asked: list[tuple[str, str, object]] = [
        *(("POST", f"/cases/{things.running}/{act}", {}) for act in ("suspend", "resume", "cancel", "rerun")),
        ("POST", f"/cases/{things.running}/suspend", {"item": "watch"}),
        ("POST", f"/cases/{things.running}/cancel", {"item": "watch"}),
        ("POST", f"/cases/{things.held}/mend", {"exlet": "try-again", "decision": things.decision}),
        ("POST", "/cases", {"flow": "quick"}),
        ("POST", "/flows", closed.ask("GET", "/flows/quick")["flow"]),
        ("DELETE", "/flows/quick", None),
        ("POST", f"/failures/{things.group}/apply", {}),
        ("POST", f"/failures/{things.group}/apply/stop", None),
        ("POST", "/decisions/reject", {"decision": things.decision, "note": "no"}),
        ("POST", "/rule-drafts", {"condition": "true", "exlet": "try-again", "group": things.group}),
        ("POST", "/rules/gate/promote", rule),
        ("POST", "/rules/gate/retire", rule),
        ("POST", "/rules/gate/change", {**rule, "note": "mine"}),
        ("POST", "/rules/gate/restore", {"version": 0}),
        ("PUT", "/schedules/weekly", {"name": "weekly", "flow": "quick", "cron": "0 5 * * 1"}),
        *(("POST", f"/schedules/weekly/{act}", {}) for act in ("pause", "resume", "trigger", "backfill")),
        ("DELETE", "/schedules/weekly", None),
        ("PUT", "/sites/attic", {"name": "attic", "max_pilots": 9}),
        ("POST", "/sites/attic/pause", {"reason": "no"}),
        ("POST", "/sites/attic/resume", {}),
        ("DELETE", "/sites/attic", None),
        ("POST", f"/pilots/{things.pilot}/drain", {"reason": "no"}),
        ("DELETE", f"/pilots/{things.pilot}/drain", None),
        ("POST", "/data/storage", {"name": "disk", "url": "file:///tmp"}),
        ("DELETE", "/results?every=true", None),
        ("POST", "/domains/south/invite", {"rights": {"flows": ["*"]}}),
        ("PUT", "/projects/default", {"weight": 9}),
        ("PUT", "/limits/places", {"count": 9}),
        ("DELETE", "/limits/places", None),
        ("PUT", "/secrets/mine", {"value": "x"}),
        ("PUT", "/retention/all", {"name": "all", "states": ["completed"]}),
        ("POST", "/prunes", {"rules": [{"states": ["completed"]}], "dry_run": True}),
        ("POST", "/webhooks", {"url": "http://127.0.0.1:9/"}),
        ("POST", "/tokens", {"name": "evil", "roles": ["admin"]}),
        ("DELETE", f"/tokens/{things.token}", None),
    ]
    answers = {f"{method} {path} {body}": viewer.send(method, path, body) for method, path, body in asked}
    assert {request: status for request, status in answers.items() if status != 403} == {}
    assert closed.client.case(things.running).status == "running"
    assert closed.ask("GET", "/rules/gate")["version"] == 1
    assert closed.ask("GET", "/limits")[0]["count"] == 2
