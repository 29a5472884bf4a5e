"""Addresses that sign a browser in by being opened: `/sign-in?code=CODE&next=/cases/x`, which `mendflow ui` opens.

Only what a person has opened counts, as the browser says (`Sec-Fetch-Site: none`): a page of another site could lead
somebody to an address with a code of its own, and have him work in its name from then on."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlencode

from mendflow.core.model.errors import RequestError, Unauthorized
from mendflow.lazy import lazy_pattern
from mendflow.server.access import origin_of
from mendflow.server.request_audit import note
from mendflow.server.sign_in import SignIn, header
from mendflow.server.web_app import send_page, send_redirect

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


def own_path(wanted: str) -> str:
    """Where to go on from here: only to pages of this server."""
    return wanted if _OWN_PATH.fullmatch(wanted) else "/"


class SignInPage:
    def __init__(self, sign_in: SignIn) -> None:
        self._sign_in = sign_in

    def answers(self, scope: HTTPScope) -> bool:
        return scope["path"] == SIGN_IN_PATH and scope["method"] == "GET" and b"code=" in scope["query_string"]

    async def __call__(self, scope: HTTPScope, _receive: Receive, send: Send) -> None:
        note(operation="sign_in")
        query = parse_qs(scope["query_string"].decode("latin-1"))
        code, wanted = (query.get(name, [""])[0] for name in ("code", "next"))
        try:
            demand_opened_by_person(scope)
            signed_in = await self._sign_in.begin(scope, origin_of(scope), token="", code=code)
        except RequestError as error:
            await send_refusal(scope, send, error)
            return
        note(who=signed_in.caller.name)
        await send_redirect(scope, send, own_path(wanted), signed_in.cookie)


def demand_opened_by_person(scope: HTTPScope) -> None:
    """A browser says so to servers that it trusts: over TLS, or on its own machine."""
    if header(scope["headers"], b"sec-fetch-site") not in (b"", b"none"):
        raise Unauthorized(
            "A page of another site has led you here to sign you in. If you want that, copy the address, and open it"
            " yourself; a code holds for a minute."
        )


async def send_refusal(scope: HTTPScope, send: Send, error: RequestError, wanted: str = "/", *cookies: str) -> None:
    """Why nobody was signed in, and the way back to the page where one can."""
    text = error.message[:1].upper() + error.message[1:]
    again = SIGN_IN_PATH if wanted == "/" else f"{SIGN_IN_PATH}?{urlencode({'next': wanted})}"
    page = REFUSED.format(reason=html.escape(text), again=html.escape(again))
    await send_page(scope, send, error.status, page, *cookies)
