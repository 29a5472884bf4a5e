"""An OpenID Connect issuer that runs here: it signs what a test wants, and lets people sign in, as strictly as the
standard says."""

import asyncio
import base64
import hashlib
import secrets
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple
from urllib.parse import unquote, urlencode

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from mendflow.server.oidc import OidcClient, OidcOptions

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
NEXT_RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()
ALGORITHM = {"RSA": "RS256", "EC": "ES256", "OKP": "EdDSA"}
CLIENT = "mendflow-web"

PAGE = """<!doctype html><html lang="en"><title>Issuer</title><link rel="icon" href="data:,"><h1>Who are you?</h1>
<p><a href="{ann}">Ann</a> <a href="{nobody}">Refuse</a></p></html>"""


def public(key: PrivateKey, kid: str) -> dict[str, Any]:
    if isinstance(key, rsa.RSAPrivateKey):
        words = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    elif isinstance(key, ec.EllipticCurvePrivateKey):
        words = jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    else:
        words = jwt.algorithms.OKPAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return {**words, "kid": kid, "use": "sig"}


class Code(NamedTuple):
    """What the issuer remembers of a code that it gave."""

    person: str
    challenge: str
    nonce: str
    back_to: str


class Issuer:
    """An issuer that signs what a test wants, and publishes the keys that a test wants. `says` are claims that it puts
    into what it signs for a browser, in place of its own; `knows` are those that it tells only when asked."""

    def __init__(self) -> None:
        self.keys: dict[str, PrivateKey] = {"one": RSA, "curve": EC, "ed": ED}
        self.url = ""
        self.says_it_is = ""
        self.keys_at = ""
        self.asked = 0
        self.away = False
        self.answers = asyncio.Event()
        self.answers.set()
        self.secret = ""
        self.secret_by = "client_secret_basic"
        self.leads_to: set[str] = set()  # where it leads back to; empty: to nobody
        self.codes: dict[str, Code] = {}
        self.says: dict[str, Any] = {}
        self.signs_with: PrivateKey | None = None
        self.knows: dict[str, Any] = {}
        self.ended: list[str] = []

    # What it publishes

    async def describe(self, _: web.Request) -> web.Response:
        self.asked += 1
        await self.answers.wait()
        if self.away:
            return web.Response(status=500)
        places = {"authorization": "authorize", "token": "token", "userinfo": "userinfo", "end_session": "end"}
        return web.json_response(
            {
                "issuer": self.says_it_is or self.url,
                "jwks_uri": self.keys_at or f"{self.url}/keys",
                **{f"{name}_endpoint": f"{self.url}/{path}" for name, path in places.items()},
                "token_endpoint_auth_methods_supported": [self.secret_by],
            }
        )

    async def publish(self, _: web.Request) -> web.Response:
        return web.json_response({"keys": [public(key, kid) for kid, key in self.keys.items()]})

    def token(self, kid: str | None = "one", *, key: PrivateKey | None = None, **claims: Any) -> str:
        now = int(time.time())
        usual = {"iss": self.url, "aud": "mendflow", "sub": "u-17", "iat": now, "exp": now + 300, "groups": ["staff"]}
        signing = key or self.keys[kid or "one"]
        algorithm = ALGORITHM[public(signing, "")["kty"]]
        words = {name: value for name, value in {**usual, **claims}.items() if value is not None}
        return jwt.encode(words, signing, algorithm=algorithm, headers={"kid": kid} if kid is not None else None)

    def options(self, **more: Any) -> OidcOptions:
        usual = {"issuer": self.url, "audience": "mendflow", "roles": "groups", "mapping": {"staff": "user"}}
        return OidcOptions(**{**usual, **more})

    def with_client(self, *, secret_file: str = "", **more: Any) -> OidcOptions:
        return self.options(client=OidcClient(id=CLIENT, secret_file=secret_file), **more)

    # People who sign in

    async def authorize(self, request: web.Request) -> web.Response:
        """A page where somebody says who it is; with `as` in the address it is said already."""
        asked = request.query
        if asked["client_id"] != CLIENT or asked["redirect_uri"] not in self.leads_to:
            return web.Response(status=400, text="no client of mine, or not its address")
        if asked["response_type"] != "code" or "openid" not in asked["scope"].split():
            return web.Response(status=400, text="not what I do")
        if asked["code_challenge_method"] != "S256" or len(asked["code_challenge"]) != 43:
            return web.Response(status=400, text="PKCE is needed")
        if "as" not in asked:
            ways = {who: f"authorize?{urlencode({**asked, 'as': who})}" for who in ("ann", "nobody")}
            return web.Response(text=PAGE.format(**ways), content_type="text/html")
        back = {"state": asked["state"]}
        if asked["as"] == "nobody":
            back |= {"error": "access_denied", "error_description": "<b>not today</b>"}
        else:
            code = secrets.token_urlsafe(16)
            self.codes[code] = Code("u-17", asked["code_challenge"], asked["nonce"], asked["redirect_uri"])
            back |= {"code": code, "iss": self.url}
        return web.Response(status=303, headers={"Location": f"{asked['redirect_uri']}?{urlencode(back)}"})

    async def exchange(self, request: web.Request) -> web.Response:
        if self.away:
            return web.Response(status=502, text="<h1>bad gateway</h1>")
        form = await request.post()
        if form["client_id"] != CLIENT or not self._is_secret_right(request, str(form.get("client_secret", ""))):
            return web.json_response({"error": "invalid_client"}, status=401)
        found = self.codes.pop(str(form["code"]), None)
        digest = hashlib.sha256(str(form["code_verifier"]).encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if found is None or found.challenge != challenge or found.back_to != form["redirect_uri"]:
            return web.json_response({"error": "invalid_grant"}, status=400)
        claims = {"aud": CLIENT, "sub": found.person, "nonce": found.nonce, **self.says}
        id_token = self.token("one", key=self.signs_with, **claims)
        return web.json_response({"id_token": id_token, "access_token": f"of-{found.person}", "token_type": "Bearer"})

    def _is_secret_right(self, request: web.Request, posted: str) -> bool:
        if not self.secret:
            return not posted and "Authorization" not in request.headers
        if self.secret_by == "client_secret_post":
            return posted == self.secret
        pair = base64.b64decode(request.headers.get("Authorization", "").removeprefix("Basic ")).decode()
        client, _, secret = pair.partition(":")
        return unquote(client) == CLIENT and unquote(secret) == self.secret and not posted

    async def tell(self, request: web.Request) -> web.Response:
        person = request.headers["Authorization"].removeprefix("Bearer of-")
        return web.json_response({"sub": person, **self.knows})

    async def end(self, request: web.Request) -> web.Response:
        self.ended.append(request.query["client_id"])
        return web.Response(status=303, headers={"Location": request.query["post_logout_redirect_uri"]})


@asynccontextmanager
async def issuing(host: str = "127.0.0.1") -> AsyncIterator[Issuer]:
    made = Issuer()
    app = web.Application()
    app.router.add_get("/lab/.well-known/openid-configuration", made.describe)
    app.router.add_get("/lab/keys", made.publish)
    app.router.add_get("/lab/authorize", made.authorize)
    app.router.add_post("/lab/token", made.exchange)
    app.router.add_get("/lab/userinfo", made.tell)
    app.router.add_get("/lab/end", made.end)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://{host}:{runner.addresses[0][1]}/lab"
    try:
        yield made
    finally:
        await runner.cleanup()


@contextmanager
def issuing_beside(host: str) -> Iterator[Issuer]:
    """The same, beside a test that does not await. To a browser, `localhost` is another site than `127.0.0.1`."""
    ready, over = threading.Event(), asyncio.Event()
    found: list[tuple[Issuer, asyncio.AbstractEventLoop]] = []

    async def run() -> None:
        async with issuing(host) as made:
            found.append((made, asyncio.get_running_loop()))
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    assert ready.wait(60)
    made, loop = found[0]
    try:
        yield made
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
