"""The web app's files, as they were built, and its one page for every address that people see.

The files are the same for everybody and hold nothing of anybody, so they are given without a token; what the page shows
it asks the API for. A file is found by its name among those that were there when the folder was read: no path can lead
out of it. Files whose names have a hash of their content never change, and a browser asks for them once. The page may
load and call nothing but this server, and no script that stands in it."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import time
from base64 import b64encode
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from mendflow.server.sign_in import header

if TYPE_CHECKING:
    from litestar.types import HTTPScope, Message, Send

WEB_FILES: Final = Path(__file__).parent / "web_files"
INDEX: Final = "index.html"
PAGES: Final = "pages"
"""The folder of pages for some addresses: `pages/cases/_.html` is for every case."""
ANY_WORD: Final = "_"
WORDS_MAX: Final = 4
ASSETS: Final = "assets"
"""The folder of files whose names have a hash of their content."""

NOT_PAGES: Final = frozenset({"api", "soap", "metrics"})
"""What addresses begin with that are not the app's."""

LOOK_EVERY_S: Final = 1.0
GZIP_LEVEL: Final = 6
GZIP_BYTES_MIN: Final = 1024
BUILT_BESIDE: Final = {".br": "br", ".gz": "gzip"}
"""Files that the build may have compressed, the better way first."""

CSP: Final = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self';"
    " worker-src 'self' blob:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
API_CSP: Final = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
"""For every other answer: what users have sent could be taken for a page, and then must not do anything."""

_COMMON: Final = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "mjs": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "json": "application/json",
    "map": "application/json",
    "webmanifest": "application/manifest+json",
    "svg": "image/svg+xml",
    "png": "image/png",
    "jpg": "image/jpeg",
    "webp": "image/webp",
    "ico": "image/x-icon",
    "woff2": "font/woff2",
    "wasm": "application/wasm",
    "txt": "text/plain; charset=utf-8",
}
_PACKED_TYPES: Final = frozenset(
    {"html", "js", "mjs", "css", "json", "map", "webmanifest", "svg", "txt", "wasm", "ico"}
)

STYLE_HERE: Final = "<style></style>"
_RULES: Final = (
    ":root{color-scheme:light dark}"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:34rem;margin:12vh auto;padding:0 1.5rem}"
    "h1{font-size:1.35rem;line-height:1.25}"
    "pre{padding:.6rem .8rem;border:1px solid #8886;border-radius:6px;overflow:auto}"
    "p{overflow-wrap:anywhere}"
)
STYLE: Final = f"<style>{_RULES}</style>"
STYLED_CSP: Final = CSP.replace(
    "style-src 'self'", f"style-src 'sha256-{b64encode(hashlib.sha256(_RULES.encode()).digest()).decode()}'"
)
"""Pages that the server writes itself have this one style in them, and no other."""

SUBMITTED: Final = "document.forms[0].submit()"
SUBMITTED_CSP: Final = STYLED_CSP.replace(
    "script-src 'self'", f"script-src 'sha256-{b64encode(hashlib.sha256(SUBMITTED.encode()).digest()).decode()}'"
)
"""For a page whose form is sent by itself: it has this one script in it, and no other."""

_NOT_THERE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>mendflow: the web app is not built</title>
<style></style>
<h1>The web app is not built</h1>
{what_to_do}
<p>Then reload this page; the server need not be restarted.</p>
<p>The <a href="/api/v1/docs">API</a> and all commands work without it.</p>
</html>
"""
BUILD_COMMAND: Final = "python tools/build_web.py"


def is_checkout(web_files: Path) -> bool:
    """Whether these files are built beside their sources, and not put there by an installation."""
    return (web_files.parents[3] / "tools" / "build_web.py").exists()


def not_there(web_files: Path) -> str:
    """The page in place of an app that nobody has built."""
    if is_checkout(web_files):
        return _NOT_THERE.format(
            what_to_do="<p>This server runs from a checkout, where the files of the web app have to be built once."
            f" With Node.js 20 or later:</p>\n<pre>{BUILD_COMMAND}</pre>"
        )
    return _NOT_THERE.format(
        what_to_do="<p>This installation was made of a checkout in which the web app could not be built. Install"
        " Node.js 20 or later, and then mendflow anew, in the checkout:</p>\n"
        "<pre>pip install --force-reinstall --no-deps .</pre>"
    )


def what_is_missing(web_files: Path) -> str:
    """The same for a terminal; empty if the app is there."""
    if (web_files / INDEX).exists():
        return ""
    how = f"{BUILD_COMMAND} builds it" if is_checkout(web_files) else "its address says how to get it"
    return f"the web app is not built: {how}"


class AppFile:
    """One file, with its compressed forms as far as they were needed."""

    def __init__(self, name: str, content: bytes, packed: dict[str, bytes]) -> None:
        self.suffix = name.rpartition(".")[2].lower()
        self.is_immutable = name.startswith(f"{ASSETS}/")
        self.digest = hashlib.sha256(content).hexdigest()[:32]
        self._content, self._packed = content, packed

    async def body(self, accepted: frozenset[str]) -> tuple[bytes, str]:
        """The content, and how it is compressed for who takes that."""
        if self.suffix not in _PACKED_TYPES or len(self._content) < GZIP_BYTES_MIN:
            return self._content, ""
        way = next((each for each in BUILT_BESIDE.values() if each in accepted and each in self._packed), "")
        if way or "gzip" not in accepted:
            return (self._packed[way], way) if way else (self._content, "")
        self._packed["gzip"] = await asyncio.to_thread(gzip.compress, self._content, GZIP_LEVEL, mtime=0)
        return self._packed["gzip"], "gzip"


class _Found(NamedTuple):
    files: dict[str, AppFile]
    state: tuple[int, ...]


class WebApp:
    """The app in a folder, as it is by now: whoever builds it anew need not restart the server."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found = _Found({}, ())
        self._look_at = 0.0
        self._reading = asyncio.Lock()

    async def answer(self, scope: HTTPScope, send: Send) -> bool:
        """Answer a request for a page or a file of the app; false if it is for something else."""
        if scope["method"] not in ("GET", "HEAD"):
            return False
        words = [word for word in scope["path"].split("/") if word]
        if words and words[0] in NOT_PAGES:
            return False
        files = await self._files()
        found = files.get(scope["path"].removeprefix("/"))
        if found is not None:
            await _send_file(scope, send, found)
        elif words and words[0] == ASSETS:
            await _send(scope, send, 404, {"content-type": _TYPES["txt"]}, b"there is no such file; reload the page\n")
        elif not _wants_page(scope):
            return False
        elif INDEX in files:
            await _send_file(scope, send, _page(files, words))
        else:
            await send_page(scope, send, 503, not_there(self._folder))
        return True

    async def _files(self) -> dict[str, AppFile]:
        if time.monotonic() >= self._look_at:
            async with self._reading:
                if time.monotonic() >= self._look_at:
                    await self._look()
        return self._found.files

    async def _look(self) -> None:
        """Read the files again if the page is another one."""
        state = _state(self._folder / INDEX)
        if state != self._found.state:
            self._found = _Found(await asyncio.to_thread(_read, self._folder) if state else {}, state)
        self._look_at = time.monotonic() + LOOK_EVERY_S


def _state(path: Path) -> tuple[int, ...]:
    """What changes when a file is written anew; empty if there is none."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _read(folder: Path) -> dict[str, AppFile]:
    """All files in the folder, by their paths. A link that leads out of it is left out."""
    root = folder.resolve()
    paths = [path for path in sorted(root.rglob("*")) if path.is_file() and path.resolve().is_relative_to(root)]
    contents = {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}
    return {
        name: AppFile(name, content, _built_beside(name, contents))
        for name, content in contents.items()
        if not name.endswith(tuple(BUILT_BESIDE))
    }


def _built_beside(name: str, contents: dict[str, bytes]) -> dict[str, bytes]:
    return {way: contents[name + suffix] for suffix, way in BUILT_BESIDE.items() if name + suffix in contents}


def _page(files: dict[str, AppFile], words: list[str]) -> AppFile:
    """The page for an address: the app's one page, for most addresses with the names of the files that are needed there
    first."""
    choices = [(word, ANY_WORD) for word in words] if len(words) <= WORDS_MAX else []
    names = (f"{PAGES}/{'/'.join(choice)}.html" for choice in product(*choices)) if words else (f"{PAGES}/{INDEX}",)
    return next((files[name] for name in names if name in files), files[INDEX])


def _wants_page(scope: HTTPScope) -> bool:
    """Whether a person looks: a program that asks for an address of the app is told that there is nothing."""
    return scope["path"] == "/" or b"text/html" in header(scope["headers"], b"accept")


async def _send_file(scope: HTTPScope, send: Send, file: AppFile) -> None:
    coding = header(scope["headers"], b"accept-encoding").decode("latin-1")
    body, way = await file.body(frozenset(_accepted(coding)))
    etag = f'"{file.digest}{f"-{way}" if way else ""}"'
    headers = {
        "content-type": _TYPES.get(file.suffix, "application/octet-stream"),
        "cache-control": "public, max-age=31536000, immutable" if file.is_immutable else "no-cache",
        "etag": etag,
        "vary": "Accept-Encoding",
        **({"content-encoding": way} if way else {}),
    }
    known = [
        each.strip().removeprefix("W/")
        for each in header(scope["headers"], b"if-none-match").decode("latin-1").split(",")
    ]
    is_known = etag in known or "*" in known
    await _send(scope, send, 304 if is_known else 200, headers, b"" if is_known else body)


def _accepted(coding: str) -> list[str]:
    """The ways of compression that a browser takes."""
    words = [each.strip().lower().partition(";") for each in coding.split(",")]
    return [way.strip() for way, _, weight in words if weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00")]


async def _send(
    scope: HTTPScope,
    send: Send,
    status: int,
    headers: dict[str, str],
    body: bytes,
    cookies: Iterable[str] = (),
) -> None:
    whole = {**_COMMON, **headers}
    if status != 304:
        whole["content-length"] = str(len(body))
    sent = [(name.encode(), value.encode()) for name, value in whole.items()]
    sent += [(b"set-cookie", cookie.encode()) for cookie in cookies if cookie]
    await send(cast("Message", {"type": "http.response.start", "status": status, "headers": sent}))
    content = body if scope["method"] != "HEAD" else b""
    await send(cast("Message", {"type": "http.response.body", "body": content, "more_body": False}))


async def send_page(scope: HTTPScope, send: Send, status: int, text: str, *cookies: str, csp: str = STYLED_CSP) -> None:
    """A page that is made for one answer, with the style of such pages."""
    headers = {"content-type": _TYPES["html"], "cache-control": "no-store", "content-security-policy": csp}
    await _send(scope, send, status, headers, text.replace(STYLE_HERE, STYLE).encode(), cookies)


async def send_redirect(scope: HTTPScope, send: Send, to: str, *cookies: str) -> None:
    await _send(scope, send, 303, {"location": to, "cache-control": "no-store"}, b"", cookies)


_SHIELD: Final = [(b"x-content-type-options", b"nosniff"), (b"content-security-policy", API_CSP.encode())]


def shielded(send: Send) -> Send:
    """Keeps a browser from taking an answer of the API for a page of this server, with what a user put there."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            has = {name.lower() for name, _ in headers}
            message["headers"] = headers + [each for each in _SHIELD if each[0] not in has]
        await send(message)

    return sending
