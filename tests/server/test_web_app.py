"""The web app's files and its one page, as a server gives them to a browser."""  # UI-1

import asyncio
import gzip
import os
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from mendflow.server import web_app
from mendflow.server.access import AccessControl, single_token
from mendflow.server.runner import HttpServer
from mendflow.server.web_app import INDEX, WebApp, what_is_missing
from tests.server.browser import Browser
from tests.server.conftest import Serving

PAGE = "<!doctype html><title>mendflow</title><script type=module src=/assets/index-3f9a.js></script>" + " " * 2000
SCRIPT = "console.log('mendflow');" * 200
HTML = "text/html,application/xhtml+xml"


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of files as a build leaves them."""
    folder = tmp_path / "site" / "web_files"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text(PAGE)
    (folder / "favicon.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (folder / "assets" / "index-3f9a.js").write_text(SCRIPT)
    (folder / "assets" / "font-11.woff2").write_bytes(b"\0" * 5000)
    monkeypatch.setattr(web_app, "LOOK_EVERY_S", 0.0)
    return folder


@pytest.fixture
async def site(serving: Serving, built: Path) -> AsyncIterator[Browser]:
    served = await serving(AccessControl(single_token("a-token-of-somebody-else")))
    async with Browser(with_files(served, built).url) as browser:
        yield browser


def with_files(served: HttpServer, folder: Path) -> HttpServer:
    served.app.web = WebApp(folder)  # type: ignore[union-attr]  # the whole API is served here
    return served


@pytest.mark.parametrize("path", ["/", "/cases", "/cases/greet-1", "/failures/a%2Fb/teach", "/sign-in", "/x/../cases"])
async def test_every_address_of_the_app_is_its_page(site: Browser, path: str) -> None:
    answer = await site.ask("GET", path, Accept=HTML)
    assert (answer.status, answer.text) == (200, PAGE)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"


async def test_an_address_has_the_page_that_names_its_files(site: Browser, built: Path) -> None:
    for name in ("index", "cases", "cases/_", "failures/_/teach"):
        page = built / "pages" / f"{name}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f"<!doctype html>{name}")
    (built / "index.html").write_text(PAGE)
    pages = {"/": "index", "/cases": "cases", "/cases/greet-1": "cases/_", "/failures/ab/teach": "failures/_/teach"}
    for path, name in pages.items():
        assert (await site.ask("GET", path, Accept=HTML)).text == f"<!doctype html>{name}"
    for path in (
        "/rules",
        "/cases/a/b",
        "/failures/a",
        "/failures/a%2Fb/teach",
        "/a/b/c/d/e/f",
        "/pages",
        "/cases/%2e%2e/cases",
    ):
        assert (await site.ask("GET", path, Accept=HTML)).text == PAGE
    assert (await site.ask("GET", "/cases", Accept="application/json")).status == 401


async def test_the_page_may_load_and_call_nothing_but_this_server(site: Browser) -> None:
    for path in ("/", "/assets/index-3f9a.js"):
        headers = (await site.ask("GET", path, Accept=HTML)).headers
        assert headers["content-security-policy"] == (
            "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self';"
            " worker-src 'self' blob:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
        )
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"


async def test_files_with_a_hash_in_their_names_are_asked_for_once(site: Browser) -> None:
    answer = await site.ask("GET", "/assets/index-3f9a.js", Accept="*/*")
    assert (answer.status, answer.text) == (200, SCRIPT)
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    other = await site.ask("GET", "/favicon.svg", Accept="*/*")
    assert (other.headers["cache-control"], other.headers["content-type"]) == ("no-cache", "image/svg+xml")


async def test_text_is_compressed_for_who_takes_that(site: Browser) -> None:
    packed = await site.ask("GET", "/assets/index-3f9a.js", Accept_Encoding="br, gzip;q=0.8")
    assert packed.headers["content-encoding"] == "gzip" and packed.headers["vary"] == "Accept-Encoding"
    assert gzip.decompress(packed.text.encode("latin-1")).decode() == SCRIPT
    assert len(packed.text) < len(SCRIPT) / 10
    for not_wanted in ("identity", "gzip;q=0"):
        plain = await site.ask("GET", "/assets/index-3f9a.js", Accept_Encoding=not_wanted)
        assert "content-encoding" not in plain.headers and plain.text == SCRIPT
    font = await site.ask("GET", "/assets/font-11.woff2", Accept_Encoding="gzip")
    assert "content-encoding" not in font.headers, "it is compressed already"
    assert packed.headers["etag"] != plain.headers["etag"]


async def test_what_the_build_has_compressed_is_taken_as_it_is(site: Browser, built: Path) -> None:
    (built / "assets" / "index-3f9a.js.br").write_bytes(b"as brotli")
    (built / "index.html").write_text(PAGE + "!")
    answer = await site.ask("GET", "/assets/index-3f9a.js", Accept_Encoding="gzip, br")
    assert (answer.headers["content-encoding"], answer.text) == ("br", "as brotli")
    assert (await site.ask("GET", "/assets/index-3f9a.js.br", Accept="*/*")).status == 404


async def test_a_page_that_a_browser_has_is_not_sent_again(site: Browser) -> None:
    first = await site.ask("GET", "/", Accept=HTML)
    again = await site.ask("GET", "/cases", Accept=HTML, If_None_Match=f'W/"x", {first.headers["etag"]}')
    assert (again.status, again.text, again.headers["etag"]) == (304, "", first.headers["etag"])
    assert "content-security-policy" in again.headers


async def test_a_header_that_is_no_text_is_no_mistake_of_the_server(site: Browser) -> None:
    where = urlsplit(site.url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    writer.write(b'GET / HTTP/1.1\r\nHost: here\r\nIf-None-Match: "\xff"\r\nConnection: close\r\n\r\n')
    assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
    writer.close()


async def test_a_new_build_is_served_without_a_restart(site: Browser, built: Path) -> None:
    first = await site.ask("GET", "/", Accept=HTML)
    (built / "index.html").write_text("<!doctype html>new")
    (built / "assets" / "new-77.js").write_text("new()")
    answer = await site.ask("GET", "/", Accept=HTML, If_None_Match=first.headers["etag"])
    assert (answer.status, answer.text) == (200, "<!doctype html>new")
    assert (await site.ask("GET", "/assets/new-77.js")).text == "new()"


async def test_head_is_the_same_without_the_content(site: Browser) -> None:
    answer = await site.ask("HEAD", "/", Accept=HTML)
    assert (answer.status, answer.text, answer.headers["content-length"]) == (200, "", str(len(PAGE)))


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/assets/../../secret.txt",
        "/assets/..%2f..%2fsecret.txt",
        "/%2e%2e/secret.txt",
        "//secret.txt",
        "/assets/link-1.txt",
        "/assets/index-3f9a.js%00.txt",
        "/etc/passwd",
    ],
)
async def test_no_path_leads_out_of_the_folder(site: Browser, built: Path, path: str) -> None:
    (built.parent / "secret.txt").write_text("very secret")
    os.symlink(built.parent / "secret.txt", built / "assets" / "link-1.txt")
    (built / "index.html").write_text(PAGE)
    answer = await site.ask("GET", path, Accept=HTML)
    assert "very secret" not in answer.text and "root:" not in answer.text


async def test_programs_are_told_that_there_is_nothing(site: Browser) -> None:
    for accept in ("application/json", "*/*"):
        answer = await site.ask("GET", "/cases", Accept=accept)
        assert (answer.status, answer.json["code"]) == (401, "unauthorized")
    assert (await site.ask("GET", "/assets/gone-12.js", Accept=HTML)).status == 404
    assert (await site.ask("POST", "/cases", {}, Accept=HTML)).status == 401


@pytest.mark.parametrize(
    "path", ["/api/v1/nothing", "//api/v1/cases", "/api", "/metrics", "/soap/greet", "//metrics", "/api/v1/../x"]
)
async def test_what_is_not_the_apps_is_never_its_page(site: Browser, path: str) -> None:
    answer = await site.ask("GET", path, Accept=HTML)
    assert answer.text != PAGE and answer.status in (401, 404)


async def test_an_answer_of_the_api_can_do_nothing_in_a_browser(site: Browser) -> None:
    for path in ("/api/v1/health", "/api/v1/nothing", "/soap/greet?wsdl", "/metrics"):
        headers = (await site.ask("GET", path, Accept=HTML)).headers
        assert headers["x-content-type-options"] == "nosniff", path
        assert headers["content-security-policy"].startswith("default-src 'none'"), path
    docs = (await site.ask("GET", "/api/v1/docs")).headers["content-security-policy"]
    assert docs.startswith("default-src 'none'; style-src 'unsafe-inline'")


@pytest.mark.parametrize(
    ("of_checkout", "command"),
    [(True, "python tools/build_web.py"), (False, "pip install --force-reinstall --no-deps .")],
)
async def test_without_a_build_a_page_says_the_one_command(
    serving: Serving, tmp_path: Path, of_checkout: bool, command: str
) -> None:
    web_files = tmp_path / "src" / "mendflow" / "server" / "web_files"
    if of_checkout:
        (tmp_path / "tools").mkdir()
        (tmp_path / "tools" / "build_web.py").touch()
    served = with_files(await serving(), web_files)
    async with Browser(served.url) as browser:
        answer = await browser.ask("GET", "/cases", Accept=HTML)
        assert answer.status == 503
        assert f"<pre>{command}</pre>" in answer.text
        assert (await browser.api("GET", "/health")).status == 200
    assert what_is_missing(web_files).startswith("the web app is not built")
    web_files.mkdir(parents=True)
    (web_files / INDEX).touch()
    assert what_is_missing(web_files) == ""
