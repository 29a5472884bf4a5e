"""Who has signed in at the issuer: the code that it gave to a browser, exchanged for what it says of that person.

The exchange is between this server and the issuer. It shows that it is the one that began (PKCE): the issuer was given
the hash of a text, and is now given the text. What it answers counts if the issuer has signed it for this server
(audience) and for this very sign-in (nonce)."""

import base64
import hashlib
import hmac
import logging
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from mendflow.core.model.errors import Forbidden, RequestError, TemporarilyUnavailable, Unauthorized
from mendflow.core.model.principals import Principal
from mendflow.server.oidc import SECRET_FILE, OidcClient, OidcIssuer, claim
from mendflow.server.oidc_answers import (
    BY_HEADER,
    FETCH_S,
    IssuerAnswer,
    IssuerAway,
    IssuerDescription,
    ask_issuer,
    reading_issuer,
    require_protected,
)
from mendflow.server.outgoing import OutgoingCalls
from mendflow.server.private_files import read_secret

log = logging.getLogger("mendflow.server")

_WORD_CHARS_MAX: Final = 100


class SignInWords(NamedTuple):
    """What one sign-in is known by: `state` to the browser, `nonce` in what the issuer signs, `verifier` at the
    exchange."""

    state: str
    nonce: str
    verifier: str


class _Tokens(msgspec.Struct):
    id_token: str
    access_token: str = ""


class _Refusal(msgspec.Struct):
    error: str
    error_description: str = ""


class CodeExchange:
    """The way of a browser to the issuer and back, for one client of it."""

    def __init__(self, issuer: OidcIssuer, client: OidcClient) -> None:
        self._issuer, self._client = issuer, client
        self.name = issuer.options.issuer

    async def address(self, words: SignInWords, back_to: str) -> str:
        """Where the issuer signs somebody in, and then leads back."""
        described = await self._described()
        challenge = base64.urlsafe_b64encode(hashlib.sha256(words.verifier.encode()).digest()).decode().rstrip("=")
        asked = {
            "response_type": "code",
            "client_id": self._client.id,
            "redirect_uri": back_to,
            "scope": self._client.scopes,
            "state": words.state,
            "nonce": words.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return _with_query(described.authorization_endpoint, asked)

    async def end_address(self, back_to: str) -> str:
        """Where the issuer signs somebody out; empty if it has no such place."""
        described = await self._described()
        asked = {"client_id": self._client.id, "post_logout_redirect_uri": back_to}
        return _with_query(described.end_session_endpoint, asked) if described.end_session_endpoint else ""

    async def redeem(self, code: str, words: SignInWords, back_to: str) -> Principal:
        """Who the code is about; refuses one that is not for this sign-in."""
        described = await self._described()
        try:
            async with OutgoingCalls(self._issuer.guard, total_s=FETCH_S) as calls:
                with reading_issuer():
                    tokens = await self._exchange(calls, described, code, words, back_to)
                claims = await self._checked(tokens.id_token, words.nonce)
                with reading_issuer():
                    more = await self._asked_for_more(calls, described, tokens, claims)
        except IssuerAway as error:
            log.warning("the issuer %s did not answer a sign-in: %s", self.name, error)
            raise _away(self.name) from error
        principal = self._issuer.principal({**more, **claims})
        if not principal.roles and not principal.projects:
            raise Forbidden(
                f"the issuer {self.name} knows you as {principal.name!r}, and nothing that it says of you stands for a"
                " role here: ask whoever runs this server",
                reason="unknown",
            )
        return principal

    async def _described(self) -> IssuerDescription:
        try:
            described = await self._issuer.described()
            with reading_issuer():
                require_protected(described.authorization_endpoint, "authorization_endpoint")
                require_protected(described.token_endpoint, "token_endpoint")
        except (TemporarilyUnavailable, IssuerAway) as error:
            log.warning("nobody can sign in at the issuer %s: %s", self.name, error)
            raise _away(self.name) from error
        return described

    async def _exchange(
        self, calls: OutgoingCalls, described: IssuerDescription, code: str, words: SignInWords, back_to: str
    ) -> _Tokens:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": back_to,
            "code_verifier": words.verifier,
            "client_id": self._client.id,
        }
        headers: dict[str, str] = {}
        if self._client.secret_file:
            secret = self._secret()
            if BY_HEADER in described.token_endpoint_auth_methods_supported:
                pair = f"{quote(self._client.id, safe='')}:{quote(secret, safe='')}"
                headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
            else:
                form["client_secret"] = secret
        answer = await ask_issuer(calls, "POST", described.token_endpoint, headers, form)
        if answer.status in (400, 401):
            raise self._refused(answer)
        if answer.status != 200:
            raise ValueError(f"its token_endpoint answered {answer.status}")
        return msgspec.json.decode(answer.content, type=_Tokens)

    def _secret(self) -> str:
        try:
            return read_secret(self._client.secret_file, SECRET_FILE)
        except RequestError as error:
            log.warning("nobody can sign in at the issuer %s: %s", self.name, error)
            raise TemporarilyUnavailable(
                "this server cannot read the secret that it has at the issuer: ask whoever runs this server"
            ) from error

    def _refused(self, answer: IssuerAnswer) -> Exception:
        word = issuer_word(msgspec.json.decode(answer.content, type=_Refusal).error)
        if word == "invalid_grant":
            return Unauthorized(
                f"the issuer {self.name} does not know the code that it gave to your browser (any more): sign in again",
                reason="unknown",
            )
        log.warning("the issuer %s refuses this server (%s): look at --oidc-client and its secret", self.name, word)
        return TemporarilyUnavailable(
            f"the issuer {self.name} does not take this server for a client of its own ({word}): ask whoever runs this"
            " server"
        )

    async def _checked(self, id_token: str, nonce: str) -> dict[str, Any]:
        claims = await self._issuer.claims(id_token, self._client.id)
        several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if claims.get("azp", None if several else self._client.id) != self._client.id:
            raise Unauthorized(f"what {self.name} says was made for another client of it", reason="unknown")
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
            raise Unauthorized(f"what {self.name} says is not about this sign-in: sign in again", reason="unknown")
        return claims

    async def _asked_for_more(
        self, calls: OutgoingCalls, described: IssuerDescription, tokens: _Tokens, claims: dict[str, Any]
    ) -> dict[str, Any]:
        """What the issuer says only on demand, if something is missing that this server has to know."""
        options = self._issuer.options
        wanted = [each for each in (options.roles, options.name) if each]
        if all(claim(claims, each) is not None for each in wanted):
            return {}
        if not (described.userinfo_endpoint and tokens.access_token):
            return {}
        url = require_protected(described.userinfo_endpoint, "userinfo_endpoint")
        answer = await ask_issuer(calls, "GET", url, {"Authorization": f"Bearer {tokens.access_token}"})
        if answer.status != 200:
            raise ValueError(f"its userinfo_endpoint answered {answer.status}")
        more = msgspec.json.decode(answer.content, type=dict[str, Any])
        if more.get("sub") != claims["sub"]:
            raise Unauthorized(
                f"the issuer {self.name} says two things about who you are: sign in again", reason="unknown"
            )
        return more


def issuer_word(text: str) -> str:
    """A word of the issuer's, or of whoever made up an address of ours, as it may be shown."""
    return "".join(each for each in text[:_WORD_CHARS_MAX] if each.isprintable()) or "no reason given"


def _with_query(address: str, asked: dict[str, str]) -> str:
    return f"{address}{'&' if '?' in address else '?'}{urlencode(asked)}"


def _away(name: str) -> TemporarilyUnavailable:
    return TemporarilyUnavailable(
        f"the issuer {name} cannot be asked just now, so nobody can sign in there; the server's log says why. Try again"
        " in a moment, or sign in with a token"
    )
