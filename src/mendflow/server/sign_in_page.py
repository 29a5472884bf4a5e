"""Addresses that sign a browser in by being opened: `/sign-in?code=CODE&next=/cases/x`, which `mendflow ui` opens.

A page of another site could lead somebody to an address with a code of its own, and have him work in its name from then
on. To servers that it trusts, over TLS or on its own machine, a browser says who has led to them (`Sec-Fetch-Site`). To
others it may say nothing, and then it does not send its session along (`SameSite`), so that nobody is signed in as it
seems. So these get a page first, whose form the browser sends from here: with the session, and with the server's own
address (`Origin`). Whoever is signed in by another account is asked, and so is whoever another site has led here."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import parse_qs, urlencode

from mendflow.core.model.errors import RequestError, Unauthorized
from mendflow.lazy import lazy_pattern
from mendflow.server.access import origin_of
from mendflow.server.error_bodies import for_clients
from mendflow.server.request_audit import note
from mendflow.server.request_body import read_body
from mendflow.server.sign_in import CodeSignIn, SignIn, header
from mendflow.server.web_app import SUBMITTED, SUBMITTED_CSP, send_page, send_redirect

if TYPE_CHECKING:
    from litestar.types import HTTPScope, Receive, Send

SIGN_IN_PATH: Final = "/sign-in"
_OWN_PATH: Final = lazy_pattern(r"/(?![/\\])[!-\[\]-~]{0,1000}")
"""A path of this server, and not one that a browser would take for the address of another."""

REFUSED: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>mendflow: not signed in</title>
<style></style>
<h1>You are not signed in</h1>
<p>{reason}</p>
<p><a href="{again}">Sign in</a></p>
</html>
"""

FORM_BYTES_MAX: Final = 8_192
ASKED: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>mendflow: sign in</title>
<style></style>
<h1>Sign in as {name}?</h1>
<p>{reason}</p>
<form method="post" action="/sign-in">
<input type="hidden" name="code" value="{code}">
<input type="hidden" name="next" value="{next}">
<input type="hidden" name="sure" value="{sure}">
<button>Sign in as {name}</button>
</form>
{script}
</html>
"""


def own_path(wanted: str) -> str:
    """Where to go on from here: only to pages of this server."""
    return wanted if _OWN_PATH.fullmatch(wanted) else "/"


class _Words(NamedTuple):
    """What an address, or the form of a page, says. `sure`: somebody was asked, and wants it."""

    code: str
    next: str
    sure: bool = False


class SignInPage:
    def __init__(self, sign_in: SignIn) -> None:
        self._sign_in = sign_in

    def answers(self, scope: HTTPScope) -> bool:
        if scope["path"] != SIGN_IN_PATH:
            return False
        return scope["method"] == "POST" or (scope["method"] == "GET" and b"code=" in scope["query_string"])

    async def __call__(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        try:
            words = await self._words(scope, receive)
            if await self._asked_first(scope, send, words):
                return
            note(operation="sign_in")
            signed_in = await self._sign_in.begin(scope, origin_of(scope), token="", code=words.code)
        except RequestError as error:
            note(operation="sign_in")
            await send_refusal(scope, send, error)
            return
        note(who=signed_in.caller.name)
        await send_redirect(scope, send, own_path(words.next), signed_in.cookie)

    async def _words(self, scope: HTTPScope, receive: Receive) -> _Words:
        """Refused if another site has sent them."""
        if scope["method"] == "GET":
            demand_opened_by_person(scope)
            code, wanted, _ = _read(scope["query_string"])
            return _Words(code, wanted)
        self._sign_in.demand_own_origin(scope["headers"], required=True)
        return _read(await read_body(receive, FORM_BYTES_MAX))

    async def _asked_first(self, scope: HTTPScope, send: Send, words: _Words) -> bool:
        """Answer by a page that asks, or by one that sends what it was given from here, where that is needed."""
        found = await self._sign_in.foreseen(scope, origin_of(scope), words.code) if not words.sure else None
        if found is None:
            return False
        is_typed = scope["method"] == "GET"
        if found.replaces or (is_typed and self._sign_in.comes_from_elsewhere(scope["headers"])):
            await send_page(scope, send, 200, _asking(found, words))
            return True
        if is_typed and not header(scope["headers"], b"sec-fetch-site"):
            await send_page(scope, send, 200, _sending(found, words), csp=SUBMITTED_CSP)
            return True
        return False


def _read(query: bytes) -> _Words:
    given = parse_qs(query.decode("latin-1"))
    code, wanted, sure = (given.get(name, [""])[0] for name in ("code", "next", "sure"))
    return _Words(code, wanted, bool(sure))


def _asking(found: CodeSignIn, words: _Words) -> str:
    now = f"This browser is signed in as {found.replaces}, and no longer would be. " if found.replaces else ""
    reason = (
        f"{now}If you have not asked for this yourself, as by mendflow ui, close this page: what you do then would be"
        f" done in the name of {found.name}."
    )
    return _page(found, words, reason, sure="1")


def _sending(found: CodeSignIn, words: _Words) -> str:
    return _page(found, words, "The web app opens in a moment.", script=f"<script>{SUBMITTED}</script>")


def _page(found: CodeSignIn, words: _Words, reason: str, *, sure: str = "", script: str = "") -> str:
    texts = {"name": found.name, "reason": reason, "code": words.code, "next": own_path(words.next), "sure": sure}
    return ASKED.format(**{name: html.escape(text) for name, text in texts.items()}, script=script)


def demand_opened_by_person(scope: HTTPScope) -> None:
    """A browser says so to servers that it trusts: over TLS, or on its own machine."""
    if header(scope["headers"], b"sec-fetch-site") not in (b"", b"none"):
        raise Unauthorized(
            "A page of another site has led you here to sign you in. If you want that, copy the address, and open it"
            " yourself; a code holds for a minute."
        )


async def send_refusal(scope: HTTPScope, send: Send, error: RequestError, wanted: str = "/", *cookies: str) -> None:
    """Why nobody was signed in, and the way back to the page where one can."""
    message = for_clients(error).message
    text = message[:1].upper() + message[1:]
    again = SIGN_IN_PATH if wanted == "/" else f"{SIGN_IN_PATH}?{urlencode({'next': wanted})}"
    page = REFUSED.format(reason=html.escape(text), again=html.escape(again))
    await send_page(scope, send, error.status, page, *cookies)
