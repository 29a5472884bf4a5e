"""`mendflow ui` and `mendflow run --ui`: the web app is opened, signed in, for whoever may and nobody else."""  # UI-1

import asyncio
import json
import os
import signal
import sys
import urllib.error
import urllib.request
import webbrowser
from typing import Any

import pytest

from mendflow.cli import web_pages
from mendflow.cli.web_pages import case_path, open_private, page_url
from tests.cli.conftest import Shell
from tests.patience import PATIENCE_S

TOKEN = "a-token-that-nobody-guesses-42"
HELLO = "name: hello\njobs:\n  say: {run: echo hello}\n"
BROWSER = """
import http.cookiejar, json, sys, urllib.error, urllib.request
jar = http.cookiejar.CookieJar()
opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
opener.addheaders = [("Sec-Fetch-Site", "none"), ("Accept", "text/html")]
try:
    answer = opener.open(sys.argv[1])
except urllib.error.HTTPError as error:
    answer = error
url = answer.geturl()
server = "/".join(url.split("/")[:3])
me = json.load(opener.open(server + "/api/v1/me"))
found = {"begun": sys.argv[1], "url": url, "cookies": [each.name for each in jar], "me": me}
open(sys.argv[2], "w").write(json.dumps(found))
"""


class Desk:
    """A browser that goes where it is sent, and notes where it came to and who it was there."""

    def __init__(self, shell: Shell) -> None:
        script = shell.write("browser.py", BROWSER)
        self._note = shell.folder / "seen.json"
        shell.environment["BROWSER"] = f"{sys.executable} {script} %s {self._note}"
        self._shell = shell

    def seen(self) -> Any:
        self._shell.until(lambda: self._note.exists() and self._note.read_text())
        return json.loads(self._note.read_text())


def served(shell: Shell, *words: str) -> str:
    shell.start("serve", "--port", "0", "--data-dir", "server", *words)
    file = shell.folder / "server" / "server.json"
    shell.until(file.exists)
    url: str = json.loads(file.read_text())["url"]
    return url


@pytest.mark.full
def test_a_server_with_tokens_is_opened_signed_in_and_the_code_is_in_no_command_line(shell: Shell) -> None:  # UI-1
    desk = Desk(shell)
    shell.environment["MENDFLOW_TOKEN"] = TOKEN
    url = served(shell)
    done = shell.apart("ui", "--server", url)
    assert done.returncode == 0 and f"the web app: {url}/" in done.stderr
    seen = desk.seen()
    assert seen["begun"].startswith("http://127.0.0.1:") and not seen["begun"].startswith(url)
    assert "code" not in seen["begun"]
    assert (seen["url"], seen["cookies"]) == (f"{url}/", ["mendflow_session"])
    assert (seen["me"]["name"], seen["me"]["signed_in_by"]) == ("admin", "session")


@pytest.mark.full
def test_without_a_browser_the_address_is_printed_and_signs_in_once(shell: Shell) -> None:
    shell.environment["MENDFLOW_TOKEN"] = TOKEN
    url = served(shell)
    found = shell.json("ui", "--server", url)
    assert found["url"] == f"{url}/" and found["sign_in_url"].startswith(f"{url}/sign-in?code=")
    shell.environment["SSH_CONNECTION"] = "10.0.0.1 50000 10.0.0.2 22"
    done = shell("ui", "--server", url, "--no-browser")
    assert f"within a minute and once: {url}/sign-in?code=" in done.stdout
    assert "ssh -L " in done.stderr
    refused = shell("ui", "--server", url, MENDFLOW_TOKEN="another-token-that-is-unknown-7")
    assert refused.returncode and "does not know that token" in " ".join(refused.stderr.split())


@pytest.mark.full
def test_a_server_of_ones_own_needs_no_sign_in(shell: Shell) -> None:
    desk = Desk(shell)
    url = served(shell)
    shell.environment["MENDFLOW_DATA_DIR"] = "server"
    assert shell.json("ui") == {"url": f"{url}/", "sign_in_url": ""}
    assert shell.apart("ui").returncode == 0
    seen = desk.seen()
    assert (seen["begun"], seen["cookies"], seen["me"]["signed_in_by"]) == (f"{url}/", [], "socket")


@pytest.mark.full
def test_a_folder_without_a_server_is_served_until_it_is_interrupted(shell: Shell) -> None:
    nothing = shell("ui", "last", "--no-browser")
    assert nothing.returncode and "mendflow run FLOW" in nothing.stderr
    empty = shell.start("ui", "--no-browser", "--jobs", "1")
    assert empty.stdout is not None
    assert "written and started on the page" in empty.stdout.readline()
    assert "open this in a browser: http" in empty.stdout.readline()
    shell.write("hello.yaml", HELLO)
    first = shell.json("start", "hello.yaml")
    assert "completed in" in shell.ok("watch", first["id"], "--quiet"), "an empty folder is served, too"
    empty.send_signal(signal.SIGINT)
    assert empty.wait(PATIENCE_S) == 0
    case = json.loads(shell.ok("run", "hello.yaml", "--quiet", "--json"))["id"]
    ui = shell.start("ui", "last", "--no-browser", "--jobs", "1")
    assert ui.stdout is not None
    assert f"/cases/{case}" in ui.stdout.readline()
    begun = shell.json("start", "hello.yaml")
    assert "completed in" in shell.ok("watch", begun["id"], "--quiet"), "what is started there runs"
    refused = shell("run", "hello.yaml")
    assert refused.returncode and "mendflow start FLOW gives it the flow" in " ".join(refused.stderr.split())
    ui.send_signal(signal.SIGINT)
    assert ui.wait(PATIENCE_S) == 0
    assert [each["id"] for each in shell.json("cases")] == [begun["id"], case, first["id"]]


@pytest.mark.full
def test_who_did_what_is_on_record_while_the_web_app_is_served(shell: Shell) -> None:  # SE-4
    shell.ok("limits", "set", "licence-x", "1")
    assert shell.json("admin", "audit", "verify") == [], "there is no record yet that could lack anything"
    ui = shell.start("ui", "--no-browser", "--jobs", "1")
    shell.until((shell.folder / ".mendflow" / "server.json").exists)
    shell.ok("limits", "set", "licence-x", "2")
    [entry] = shell.json("admin", "audit")
    assert (entry["operation"], entry["object"]) == ("set_limit", "licence-x")
    assert "1 entry, whole; the last is" in shell.ok("admin", "audit", "verify")
    ui.send_signal(signal.SIGINT)
    assert ui.wait(PATIENCE_S) == 0
    shell.ok("limits", "set", "licence-x", "3")
    told = " ".join(shell.ok("admin", "audit", "verify").split())
    assert "none was cut or changed" in told and "Not all that was done is in it: once a server was used here" in told


@pytest.mark.full
def test_a_run_is_shown_in_the_browser_and_stays_until_it_is_interrupted(shell: Shell) -> None:  # UI-1
    desk = Desk(shell)
    shell.write("hello.yaml", HELLO)
    run = shell.start("run", "hello.yaml", "--quiet", "--jobs", "1", "--ui")
    seen = desk.seen()
    assert "/cases/hello-" in seen["url"] and seen["me"]["installation"] is True
    shell.until(lambda: shell.json("cases")[0]["status"] == "completed")
    server = seen["url"].partition("/cases/")[0]
    with urllib.request.urlopen(f"{server}/api/v1/cases/last") as answer:
        assert json.load(answer)["status"] == "completed"
    run.send_signal(signal.SIGINT)
    assert run.stdout is not None
    told = run.stdout.read()
    assert run.wait(PATIENCE_S) == 0
    assert "completed in" in told and "until you press Ctrl-C" in told


@pytest.mark.full
def test_serve_says_where_the_web_app_is(shell: Shell) -> None:
    server = shell.start("serve", "--port", "0", "--data-dir", "server")
    assert server.stdout is not None
    first, second = server.stdout.readline(), server.stdout.readline()
    url = first.split()[2]
    assert f"the web app is at {url}; mendflow ui opens it" in second


async def test_the_address_that_signs_in_is_given_to_one_browser_of_this_account(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[str] = []

    def note(url: str) -> bool:
        opened.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", note)
    asking = asyncio.create_task(open_private("http://server.example/sign-in?code=x"))
    while not opened:
        await asyncio.sleep(0.01)
    assert "code" not in opened[0]

    class Still(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: Any, **__: Any) -> None:
            return None

    def fetch(host: str = "") -> tuple[int, str]:
        asked = urllib.request.Request(opened[0], headers={"Host": host} if host else {})
        try:
            urllib.request.build_opener(Still).open(asked)
        except urllib.error.HTTPError as error:
            return error.code, error.headers.get("Location", "")
        raise AssertionError("it answered with something else")

    with monkeypatch.context() as other_account:
        other_account.setattr(web_pages, "account_of_transport", lambda _: os.geteuid() + 1)
        assert await asyncio.to_thread(fetch) == (403, "")
    port = opened[0].rstrip("/").rpartition(":")[2]
    for foreign in ("evil.example", f"evil.example:{port}", "127.0.0.1"):
        assert await asyncio.to_thread(fetch, foreign) == (403, ""), "a name that leads to this machine"
    assert await asyncio.to_thread(fetch) == (303, "http://server.example/sign-in?code=x")
    assert await asking is True


async def test_no_browser_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_pages, "BROWSER_S", 0.05)
    monkeypatch.setattr(webbrowser, "open", lambda url: True)
    assert await open_private("http://server.example/") is False
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    assert await open_private("http://server.example/") is False


def test_a_browser_in_the_terminal_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"):
        monkeypatch.delenv(name, raising=False)
    assert web_pages.can_open_browser() is (sys.platform in ("darwin", "win32"))
    monkeypatch.setenv("DISPLAY", ":0")
    assert web_pages.can_open_browser()


def test_addresses_of_pages() -> None:
    assert page_url("http://127.0.0.1:8642/", case_path("ode:a/b c")) == "http://127.0.0.1:8642/cases/ode%3Aa%2Fb%20c"
