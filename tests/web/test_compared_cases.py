"""Two cases beside each other: first what failed, and of all else only what differs."""  # UI-1

from playwright.sync_api import Page, expect

from mendflow.core.model.repair import ExceptionType, Primitive
from tests.services.recovery.kit import exlet, mend, rule_set
from tests.web.web_server import WebServer

FRAGILE = """
name: fragile
inputs: {code: {type: number}}
jobs:
  step: {run: "sh -c 'echo it is broken >&2; exit {code}'", retries: 0}
"""

MENDED = """
name: mended
jobs:
  step: {run: "test -e {seen} || { touch {seen}; exit 3; }", retries: 0}
"""


def test_what_failed_comes_first_and_what_is_the_same_is_left_out(server: WebServer, page: Page) -> None:
    server.deploy("fragile", FRAGILE.replace("{code}", "${{ inputs.code }}"))
    good, bad = server.ended("fragile", code=0), server.ended("fragile", code=3)
    path = f"/cases/{bad}/compare?with={good}"
    server.wait_for(path, lambda seen: all(seen["jobs"][0][side]["command"] for side in ("left", "right")))
    page.goto(f"/cases/{bad}?view=compare&with={good}")
    failed = page.locator(".panel", has=page.get_by_role("heading", name="What failed"))
    expect(failed).to_contain_text("step: ")
    expect(failed).to_contain_text("it is broken")
    expect(failed).to_contain_text("nothing")
    jobs = page.locator(".panel", has=page.get_by_role("heading", name="Jobs"))
    expect(jobs).to_contain_text("exit 3")
    expect(jobs).not_to_contain_text("container")


def test_the_last_case_that_completed_is_compared_unless_another_is_chosen(server: WebServer, page: Page) -> None:
    text = FRAGILE.replace("{code: {type: number}}", "{code: {type: number}, kit: {type: string, default: V7}}")
    server.deploy("tender", text.replace("fragile", "tender").replace("{code}", "${{ inputs.code }}"))
    other, good = server.ended("tender", code=4, kit="V6"), server.ended("tender", code=0, kit="V5")
    bad = server.ended("tender", code=3)
    page.goto(f"/cases/{bad}?view=compare")
    offered = page.get_by_role("list", name="Other cases of tender").get_by_role("button")
    expect(offered.first).to_contain_text(f"completed{good}code=0 · V5")
    expect(offered.first).to_contain_text("the last that completed")
    expect(offered.first).to_have_attribute("aria-pressed", "true")
    inputs = page.locator(".panel", has=page.get_by_role("heading", name="Inputs"))
    expect(inputs.get_by_role("row", name="kit")).to_contain_text("V7defaultV5")
    offered.filter(has_text=other).click()
    expect(inputs.get_by_role("row", name="kit")).to_contain_text("V7defaultV6")


def test_earlier_cases_are_offered_too_and_what_was_mended_is_said(server: WebServer, page: Page) -> None:
    retry = exlet("again", mend(Primitive.RESUBMIT))
    server.deploy("mended", MENDED.replace("{seen}", str(server.folder / "seen-mended")))
    server.client.put_rules(rule_set("mended", ExceptionType.ABORT, ("true", "again"), exlets=[retry], task="step"))
    cases = [server.ended("mended") for _ in range(8)]
    mended, last = cases[0], cases[-1]
    page.goto(f"/cases/{last}?view=compare")
    offered = page.get_by_role("list", name="Other cases of mended").get_by_role("button")
    expect(offered).to_have_count(6)
    page.get_by_role("button", name="More: 1 earlier case").click()
    expect(offered).to_have_count(7)
    offered.filter(has_text=mended).click()
    expect(page.get_by_text("They do not differ")).to_be_visible()
    told = page.get_by_role("list", name="What was mended")
    expect(told).to_contain_text(f"{last}: nothing was mended")
    expect(told).to_contain_text(f"{mended}: step: again")


def test_one_state_of_jobs_is_marked(server: WebServer, page: Page) -> None:
    server.ended("quick")  # Home of a server on which nothing has run counts nothing
    page.goto("/")
    page.locator(".tile", has_text="Jobs waiting").click()
    states = page.get_by_role("navigation", name="State of jobs")
    expect(states.locator("[aria-current]")).to_have_count(1)
    expect(states.locator("[aria-current]")).to_contain_text("waiting")
    states.get_by_role("link", name="not ended").click()
    expect(states.locator("[aria-current]")).to_have_count(1)
    expect(states.locator("[aria-current]")).to_contain_text("not ended")
