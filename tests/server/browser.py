"""What a browser sends: its cookies by itself, where a request comes from, and nothing that a page did not ask for."""

from types import TracebackType
from typing import Any, NamedTuple

import aiohttp
import yarl

from mendflow.server.sign_in import COOKIE


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    text: str
    json: Any = None


class Browser:
    """One browser at a server. It takes the cookies that it is given; `page` are the headers that a page of the server
    itself makes it send."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.page = {"Origin": url, "Sec-Fetch-Site": "same-origin", "Mendflow-Request": "web"}
        self.cookie = ""
        self.set_cookie = ""
        self._http = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False)

    async def __aenter__(self) -> "Browser":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.close()

    async def ask(self, method: str, path: str, json: Any = None, **headers: str) -> Answer:
        """`headers` take the place of those of a page; an empty one is not sent."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {**(self.page if method != "GET" else {"Sec-Fetch-Site": "same-origin"}), **given}
        if self.cookie:
            sent["Cookie"] = f"{COOKIE}={self.cookie}"
        sent = {name: value for name, value in sent.items() if value}
        async with self._http.request(
            method,
            yarl.URL(f"{self.url}{path}", encoded=True),
            json=json,
            headers=sent,
            allow_redirects=False,
            skip_auto_headers=("Accept-Encoding", "Accept"),
        ) as response:
            body = await response.read()
            if (set_cookie := response.headers.get("Set-Cookie")) is not None:
                self.set_cookie = set_cookie
                self.cookie = set_cookie.partition(";")[0].removeprefix(f"{COOKIE}=")
            is_json = response.headers.get("Content-Type", "").startswith("application/json")
            found = {name.lower(): value for name, value in response.headers.items()}
            return Answer(
                response.status, found, body.decode("latin-1"), await response.json() if is_json and body else None
            )

    async def api(self, method: str, path: str, json: Any = None, **headers: str) -> Answer:
        return await self.ask(method, f"/api/v1{path}", json, **headers)

    async def sign_in(self, token: str = "", *, code: str = "") -> Answer:
        return await self.api("POST", "/session", {"token": token} if token else {"code": code})
