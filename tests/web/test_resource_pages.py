"""The pages of what work needs: pilots, sites, schedules, data and domains, as used by who keeps them going."""

import hashlib
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.patience import PATIENCE_S
from tests.web.dialogs import choose, confirm, noted
from tests.web.web_server import WebServer, serving


def test_a_pilot_is_drained_and_used_again(page: Page, server: WebServer) -> None:
    pilot = server.ask("GET", "/pilots")[0]["id"]
    page.goto("/pilots")
    page.get_by_role("link", name=pilot).click()
    details = page.get_by_role("complementary", name=f"Pilot {pilot}")
    expect(details).to_contain_text("0 of 3 busy")
    details.get_by_role("button", name="Drain …").click()
    expect(page.get_by_role("dialog")).to_contain_text("It gets no more jobs")
    confirm(page, "Drain")
    expect(details).to_contain_text("drained in the web app")
    expect(page.locator(f'[data-row="{pilot}"]')).to_contain_text("drained")
    waiting = server.begin("quick")
    page.reload()
    expect(details).to_contain_text("drained in the web app")
    assert server.client.case(waiting).status == "running"
    details.get_by_role("button", name="Use again …").click()
    confirm(page, "Use it again")
    expect(details.get_by_role("button", name="Drain …")).to_be_visible()
    assert server.client.wait(waiting, timeout_s=PATIENCE_S).status == "completed"


def test_a_site_is_added_paused_resumed_and_removed(page: Page, server: WebServer) -> None:
    page.goto("/sites")
    page.get_by_role("link", name="Add a site").click()
    page.get_by_role("dialog").get_by_label("Name").fill("annex")
    page.get_by_role("dialog").get_by_label("Pilots at most").fill("many")
    expect(page.get_by_role("dialog").get_by_role("button", name="Add", exact=True)).to_be_disabled()
    page.get_by_role("dialog").get_by_label("Pilots at most").fill("1")
    confirm(page, "Add")
    details = page.get_by_role("complementary", name="Site annex")
    details.get_by_role("button", name="Pause …").click()
    expect(page.get_by_role("dialog")).to_contain_text("No more pilots are submitted there")
    confirm(page, "Pause")
    expect(details).to_contain_text("paused in the web app")
    page.reload()
    details.get_by_role("button", name="Resume").click()
    expect(details.get_by_role("button", name="Pause …")).to_be_visible()
    assert server.ask("GET", "/sites/annex")["site"]["max_pilots"] == 1
    choose(page, "More acts on annex", "Settings …")
    page.get_by_role("dialog").get_by_label("Pilots at most").fill("3")
    page.get_by_role("dialog").get_by_label("Memory of each").fill("1500 MB")
    confirm(page, "Change")
    expect(details).to_contain_text("at most 3")
    choose(page, "More acts on annex", "Settings …")
    expect(page.get_by_role("dialog").get_by_label("Memory of each")).to_have_value("1500 MB")
    page.get_by_role("dialog").get_by_label("Memory of each").fill("")
    confirm(page, "Change")
    noted(page, "annex is set")
    site = server.ask("GET", "/sites/annex")["site"]
    assert (site["max_pilots"], site["pilots"].get("memory_bytes", 0)) == (3, 0)
    choose(page, "More acts on annex", "Remove …")
    confirm(page, "Remove")
    expect(page.get_by_role("link", name="annex")).to_have_count(0)


def test_a_schedule_is_made_paused_resumed_and_started_by_hand(page: Page, server: WebServer) -> None:
    page.goto("/schedules")
    page.get_by_role("link", name="New schedule").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("nightly")
    dialog.get_by_label("Flow").fill("nothing")
    expect(dialog.get_by_text("There is no flow nothing")).to_be_visible()
    dialog.get_by_label("Flow").fill("quick")
    dialog.get_by_label("Times", exact=True).fill("15 26 * * *")
    expect(dialog.get_by_text("26 stands where a number from 0 to 23 should")).to_be_visible()
    dialog.get_by_role("button", name="Make it").click()
    expect(dialog.get_by_label("Times", exact=True)).to_be_focused()
    dialog.get_by_label("How often").select_option("Weekdays, Monday to Friday")
    dialog.get_by_label("At", exact=True).fill("02:15")
    expect(dialog.get_by_label("Times", exact=True)).to_have_value("15 2 * * mon-fri")
    expect(dialog.get_by_role("list", name="Next times").get_by_text(", 02:15")).to_have_count(5)
    dialog.get_by_label("How often").select_option("Each day")
    expect(dialog.get_by_label("Times", exact=True)).to_have_value("15 2 * * *")
    expect(dialog.get_by_text("of several that wait only the newest is started")).to_be_visible()
    dialog.get_by_label("While an earlier case runs").select_option("leave the time out")
    expect(dialog.get_by_text("No case is started; that time is left out.")).to_be_visible()
    dialog.get_by_label("While an earlier case runs").select_option("wait until it has ended")
    confirm(page, "Make it")
    details = page.get_by_role("complementary", name="Schedule nightly")
    expect(details.get_by_role("list", name="Next times").get_by_role("listitem")).not_to_have_count(0)
    details.get_by_role("button", name="Pause", exact=True).click()
    expect(details).to_contain_text("None while it is paused")
    page.reload()
    details.get_by_role("button", name="Resume").click()
    expect(details.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    details.get_by_role("button", name="Start now").click()
    became = details.get_by_role("list", name="What became of its times")
    expect(became).to_contain_text("started by hand")
    became.get_by_role("link").first.click()
    expect(page).to_have_url(re.compile("/cases/"))
    page.go_back()
    choose(page, "More acts on nightly", "Change …")
    dialog.get_by_label("Times", exact=True).fill("45 5 * * *")
    dialog.get_by_label("Time zone").select_option("Asia/Tokyo")
    coming = dialog.get_by_role("list", name="Next times").get_by_role("listitem")
    expect(coming.first).to_contain_text("05:45 Asia/Tokyo, here")
    confirm(page, "Change")
    when = page.locator('[data-row="nightly"]').get_by_text("45 5 * * * (Asia/Tokyo)")
    expect(when).to_be_visible()
    page.get_by_role("button", name="Close details").click()
    assert when.evaluate("text => text.parentElement.scrollWidth <= text.parentElement.clientWidth"), "it is clipped"
    page.get_by_role("link", name="nightly").click()
    choose(page, "More acts on nightly", "Catch up with past times …")
    dialog.get_by_role("button", name="What would start").click()
    expect(dialog.get_by_role("status")).to_contain_text("7 cases would be started")
    confirm(page, "Start 7 cases")
    noted(page, "7 times will be caught up with")
    choose(page, "More acts on nightly", "Remove …")
    confirm(page, "Remove")
    expect(page.get_by_role("link", name="nightly")).to_have_count(0)


def test_the_form_of_a_schedule_tells_how_inputs_use_the_due_time(page: Page, server: WebServer) -> None:
    server.deploy("dated", "name: dated\ninputs: {day: {type: string}}\nsteps: [echo]\n")
    page.goto("/schedules?make=true")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Flow").fill("dated")
    expect(dialog.get_by_text(re.compile(r"is reads-\d{4}-\d\d-\d\d\.csv in the next run"))).to_be_visible()
    dialog.get_by_label("day").fill("of ${{ schedule.date }}")
    coming = dialog.get_by_role("region", name="In the next run")
    expect(coming).to_contain_text(re.compile(r"day\s*of \d{4}-\d\d-\d\d"))


def test_help_says_what_a_word_means_and_is_reached_by_keys(page: Page, server: WebServer) -> None:
    page.goto("/cases")
    expect(page.get_by_role("heading", level=1)).to_have_text("Cases")
    page.keyboard.press("?")
    page.get_by_role("dialog").get_by_role("link", name=re.compile("what the words mean")).click()
    page.get_by_label("Find a word").fill("exlet")
    words = page.get_by_role("region", name="Words")
    expect(words.get_by_role("rowheader").first).to_have_text("exlet")
    page.goto("/help?word=nothing-like-it")
    expect(page.get_by_text("No word here has")).to_be_visible()
    expect(page.get_by_text(f"mendflow cases --server {server.url}")).to_be_visible()


def test_a_storage_element_is_added_and_removed(page: Page, server: WebServer) -> None:
    page.goto("/data?view=storage")
    page.get_by_role("button", name="Add", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("disk")
    dialog.get_by_label("Address").fill(f"file://{server.folder}")
    confirm(page, "Add")
    expect(page.locator('[data-row="disk"]')).to_contain_text(str(server.folder))
    page.locator('[data-row="disk"]').get_by_role("button", name="Remove …").click()
    confirm(page, "Remove")
    expect(page.get_by_text("No storage element yet")).to_be_visible()


def test_a_result_and_the_name_of_a_file_are_forgotten(page: Page, server: WebServer) -> None:
    server.deploy("cached", "name: cached\njobs:\n  once: {run: echo once, cache: true}\n")
    server.ended("cached")
    path = server.folder / "stars.csv"
    path.write_bytes(b"x,flux\n")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    server.ask("POST", "/data/storage", {"name": "shelf", "url": f"file://{server.folder}"})
    replicas = [{"element": "shelf", "path": "stars.csv"}]
    stars = {"name": "/sky/stars.csv", "sha256": digest, "bytes": 7, "replicas": replicas}
    server.ask("POST", "/data/files", stars)
    page.goto("/data?view=results&flow=cached")
    expect(page.get_by_role("grid", name="Earlier results")).to_contain_text("once")
    page.get_by_role("button", name="Forget …").click()
    confirm(page, "Forget")
    expect(page.get_by_text("No result of this flow")).to_be_visible()
    page.goto("/data?view=files")
    page.get_by_role("row").filter(has_text="sky/stars.csv").click()
    page.get_by_role("button", name="Forget …").click()
    confirm(page, "Forget")
    expect(page.get_by_text("No logical file yet")).to_be_visible()
    assert path.exists()
    server.ask("DELETE", "/data/storage/shelf")


def test_a_domain_is_invited_and_the_invitation_withdrawn(page: Page, server: WebServer) -> None:
    page.goto("/domains")
    page.get_by_role("link", name="Invite").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Invite", exact=True)).to_be_disabled()
    dialog.get_by_label("Its name").fill("south")
    dialog.get_by_label("Flows that it may run here").fill("quick, survey")
    dialog.get_by_role("button", name="Invite", exact=True).click()
    expect(dialog).to_contain_text("Give this to the administrator of south")
    token = dialog.locator(".secret-once code").inner_text()
    assert len(token) > 20
    confirm(page, "I have it")
    page.reload()
    page.get_by_role("link", name="south").click()
    details = page.get_by_role("complementary", name="Domain south")
    expect(details).to_contain_text("quick, survey")
    assert token not in page.content()
    details.get_by_role("button", name="Withdraw …").click()
    confirm(page, "Disconnect")
    expect(page.get_by_text("Not connected with another domain")).to_be_visible()


def test_an_invitation_is_accepted_and_the_domain_disconnected(page: Page, server: WebServer, tmp_path: Path) -> None:
    here = server.ask("GET", "/domains")["name"]
    with serving(tmp_path, domain="far") as far:
        token = far.ask("POST", f"/domains/{here}/invite", {"rights": {"flows": ["*"]}})["token"]
        page.goto("/domains")
        page.get_by_role("link", name="Accept an invitation").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Its name").fill("far")
        dialog.get_by_label("Its addresses").fill(far.url)
        dialog.get_by_label("Token of the invitation").fill(token)
        confirm(page, "Connect")
        expect(page.locator('[data-row="far"]')).to_contain_text("connected")
        far.wait_for("/domains", lambda found: [each["state"] for each in found["domains"]] == ["connected"])
        page.get_by_role("link", name="far", exact=True).click()
        page.get_by_role("button", name="At once …").click()
        confirm(page, "Disconnect")
        expect(page.get_by_text("Not connected with another domain")).to_be_visible()


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("/data", "No logical file yet"),
        ("/data?view=sets", "No data set yet"),
        ("/data?view=results", "result"),
        ("/domains", "Not connected with another domain"),
        ("/domains?make=invite", "Invite"),
        ("/nowhere", "There is no such page"),
    ],
)
def test_a_page_without_content_says_what_to_do(page: Page, address: str, says: str) -> None:
    page.goto(address)
    expect(page.get_by_text(says).first).to_be_visible()
