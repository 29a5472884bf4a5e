"""Browsers that sign in at an OpenID Connect issuer, which runs here, and what hostile ones try."""  # SE-1 UI-1

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import aiohttp
import msgspec
import pytest
import yarl

from mendflow.core.model.audit import AuditQuery
from mendflow.core.model.errors import Forbidden, InvalidRequest
from mendflow.server import issuer_sign_in
from mendflow.server.access import AccessControl, RequestOrigin
from mendflow.server.app import create_app
from mendflow.server.issuer_sign_in import BEGUN_COOKIE, BEGUN_MS, Begun, IssuerSignIn
from mendflow.server.issuer_sign_in import issuer_sign_in as made_for
from mendflow.server.oidc import OidcClient, OidcIssuer, OidcOptions, require_options
from mendflow.server.runner import HttpServer, serve
from mendflow.server.sign_in import COOKIE, SignIn
from mendflow.services.audit.audit_log import AuditLog
from mendflow.services.base.clock import wall_ms
from mendflow.services.cluster.browser_sessions import CODE_KIND, SESSION_KIND, USED_KIND
from tests.server.conftest import DomainUnderTest
from tests.servers.issuer import CLIENT, NEXT_RSA, Issuer, issuing

DONE = "/sign-in/issuer/done"


class Answer:
    def __init__(self, status: int, location: str, text: str, cookies: list[str]) -> None:
        self.status, self.location, self.text, self.cookies = status, location, text, cookies


class Visitor:
    """A browser that follows no redirect by itself, and keeps its cookies where a test can look at them."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.jar: dict[str, str] = {}
        self._http = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())

    async def __aenter__(self) -> "Visitor":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.close()

    async def open(self, address: str) -> Answer:
        """An address; of the server, if it is a path. Only the server gets its cookies."""
        is_own = address.startswith(("/", self.url))
        sent = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.jar.items())} if is_own else {}
        whole = f"{self.url}{address}" if address.startswith("/") else address
        async with self._http.get(yarl.URL(whole, encoded=True), headers=sent, allow_redirects=False) as response:
            cookies = response.headers.getall("Set-Cookie", [])
            for cookie in cookies if is_own else ():
                name, _, value = cookie.partition(";")[0].partition("=")
                self.jar[name] = value
                if not value:
                    del self.jar[name]
            return Answer(response.status, response.headers.get("Location", ""), await response.text(), cookies)

    async def begin(self, wanted: str = "") -> str:
        """The address of the issuer that the server leads to."""
        answer = await self.open(f"/sign-in/issuer?{urlencode({'next': wanted})}")
        assert answer.status == 303, answer.text
        return answer.location

    async def way_back(self, there: str, who: str = "ann") -> str:
        """The address that the issuer leads back to."""
        answer = await self.open(f"{there}&as={who}")
        assert answer.status == 303, answer.text
        return answer.location

    async def sign_in(self, wanted: str = "") -> Answer:
        return await self.open(await self.way_back(await self.begin(wanted)))

    async def me(self) -> Any:
        async with self._http.get(
            f"{self.url}/api/v1/me", headers={"Cookie": f"{COOKIE}={self.jar.get(COOKIE, '')}"}
        ) as response:
            return await response.json() if response.status == 200 else response.status


class Place:
    """A server where browsers sign in at the issuer."""

    def __init__(self, domain: DomainUnderTest, issuer: Issuer, stack: AsyncExitStack) -> None:
        self._domain, self._issuer, self._stack = domain, issuer, stack
        self.access = AccessControl()

    async def serve(self, options: OidcOptions | None = None, *, url: str = "") -> HttpServer:
        server = self._domain._server
        log = AuditLog(server.store, lambda: "alone", server.clock.now)
        self.access = AccessControl(issuer=OidcIssuer(options or self._issuer.with_client()))
        app = create_app(self._domain, access=self.access, let_go=self._domain.let_go, audit=log, url=url)
        served = await serve(app)
        self._stack.push_async_callback(log.stop)
        self._stack.push_async_callback(served.stop)
        log.start()
        self._issuer.leads_to.add((url or served.url) + DONE)
        return served

    async def visitor(self, options: OidcOptions | None = None) -> Visitor:
        return await self.another((await self.serve(options)).url)

    async def another(self, url: str) -> Visitor:
        return await self._stack.enter_async_context(Visitor(url))

    async def stored(self, *kinds: str) -> int:
        store = self._domain._server.store
        return len([each for kind in kinds async for each in store.scan(kind)])

    async def told(self) -> list[tuple[str, str, str]]:
        entries = (await self._domain.find_audit(AuditQuery(limit=100))).rows[::-1]
        return [(each.who, each.operation, each.outcome) for each in entries]


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with issuing() as made:
        yield made


@pytest.fixture
async def place(domain: DomainUnderTest, issuer: Issuer) -> AsyncIterator[Place]:
    async with AsyncExitStack() as stack:
        yield Place(domain, issuer, stack)


async def test_who_signs_in_at_the_issuer_has_a_session_here(place: Place, issuer: Issuer) -> None:
    ann = await place.visitor()
    there = await ann.begin("/cases?state=failed")
    asked = {name: value[0] for name, value in parse_qs(urlsplit(there).query).items()}
    assert there.startswith(f"{issuer.url}/authorize?")
    assert asked["redirect_uri"] == ann.url + DONE and asked["client_id"] == CLIENT
    assert asked["code_challenge_method"] == "S256" and asked["response_type"] == "code"
    assert len({asked["state"], asked["nonce"], asked["code_challenge"]}) == 3
    assert await place.stored(SESSION_KIND, CODE_KIND, USED_KIND) == 0, "who only begins leaves nothing in the store"
    answer = await ann.open(await ann.way_back(there))
    assert (answer.status, answer.location) == (303, "/cases?state=failed")
    (session,) = (each for each in answer.cookies if each.startswith(f"{COOKIE}="))
    assert "HttpOnly; SameSite=Strict" in session
    assert re.search(r"Max-Age=(43200|431\d\d);", session), "twelve hours"
    assert BEGUN_COOKIE not in ann.jar
    me = await ann.me()
    assert (me["name"], me["roles"], me["signed_in_by"]) == ("u-17", ["user"], "session")
    assert ("u-17", "sign_in", "done") in await place.told()


async def test_whom_another_issuer_has_named_signs_in_again(place: Place) -> None:
    ann = await place.visitor()
    await ann.sign_in()
    assert (await ann.me())["name"] == "u-17"
    now = place.access.issuer
    assert now is not None
    now.options = msgspec.structs.replace(now.options, issuer="https://another.example")
    assert await ann.me() == 401


async def test_two_sign_ins_have_nothing_in_common(place: Place) -> None:
    ann = await place.visitor()
    first, second = [parse_qs(urlsplit(await ann.begin()).query) for _ in range(2)]
    for name in ("state", "nonce", "code_challenge"):
        assert first[name] != second[name]


# The state


async def test_a_way_back_counts_once(place: Place, issuer: Issuer) -> None:
    ann = await place.visitor()
    there = await ann.begin()
    begun = dict(ann.jar)
    back = await ann.way_back(there)
    assert (await ann.open(back)).status == 303
    assert (await ann.open(back)).status == 401, "its cookie is gone"
    thief = await place.another(ann.url)
    thief.jar = dict(begun)
    assert (await thief.open(back)).status == 401, "the issuer takes its code once"
    thief.jar = dict(begun)
    again = await thief.open(await thief.way_back(there))
    assert again.status == 401 and "was finished already" in again.text, "also with a new code of the issuer"
    assert await thief.me() == 401


async def test_only_the_browser_that_began_is_signed_in(place: Place) -> None:
    ann = await place.visitor()
    back = await ann.way_back(await ann.begin())
    victim = await place.another(ann.url)
    answer = await victim.open(back)
    assert answer.status == 401 and "has begun no sign-in" in answer.text and COOKIE not in victim.jar
    await victim.begin()
    kept = dict(victim.jar)
    assert (await victim.open(back)).status == 401, "the state is that of another sign-in"
    assert victim.jar == kept, "what it has begun itself goes on"
    assert (await ann.open(back)).status == 303


async def test_what_a_browser_has_cannot_be_changed_or_made_up(place: Place) -> None:
    ann = await place.visitor()
    back = await ann.way_back(await ann.begin("/cases"))
    whole = ann.jar[BEGUN_COOKIE]
    at, chance, wanted, mark = whole.split(".")
    for changed in (
        "",
        "x",
        "...",
        f"{int(at) + 1}.{chance}.{wanted}.{mark}",
        f"{at}.{chance}.Ly9ldmlsLmV4YW1wbGU=.{mark}",
        f"{at}.{chance[:-1]}.{wanted}.{mark}",
        f"{at}.{chance}.{wanted}.{'0' * 64}",
        f"{at}.{chance}.{wanted}",
        f"{at}.{chance}.%%%.{mark}",
        f"{whole}; {BEGUN_COOKIE}={whole}",
        f"{whole}{'x' * 3000}",
    ):
        ann.jar = {BEGUN_COOKIE: changed}
        assert (await ann.open(back)).status == 401, changed[:80]
    for address in (DONE, f"{DONE}?code=x", f"{back}&state=y", f"{DONE}?{'state=a&' * 300}"):
        ann.jar = {BEGUN_COOKIE: whole}
        assert (await ann.open(address)).status == 401, address[:80]
    ann.jar = {BEGUN_COOKIE: whole}
    assert (await ann.open(back)).status == 303


async def test_who_comes_back_too_late_begins_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = await place.visitor()
    back = await ann.way_back(await ann.begin())
    monkeypatch.setattr(issuer_sign_in, "wall_ms", lambda: wall_ms() + BEGUN_MS + 1)
    answer = await ann.open(back)
    assert answer.status == 401 and "ten minutes" in answer.text and 'href="/sign-in"' in answer.text


async def test_within_a_machine_a_sign_in_is_for_the_account_that_began(
    domain: DomainUnderTest, issuer: Issuer
) -> None:
    access = AccessControl(issuer=OidcIssuer(issuer.with_client()))
    pages = made_for(SignIn(access, domain.browser_sessions))
    assert isinstance(pages, IssuerSignIn)
    ticket = await pages._ticket(Begun(wall_ms(), "chance", "/"), RequestOrigin("127.0.0.1", 1000))
    assert await pages._read(ticket, RequestOrigin("127.0.0.1", 1000)) is not None
    assert await pages._read(ticket, RequestOrigin("127.0.0.1", 1001)) is None


async def test_any_server_on_the_store_takes_up_what_another_began(place: Place) -> None:
    outside = "https://flows.example.org"
    first, second = await place.serve(url=outside), await place.serve(url=outside)
    ann = await place.another(first.url)
    there = await ann.begin("/cases")
    assert list(ann.jar) == [f"__Host-{BEGUN_COOKIE}"]
    back = await ann.way_back(there)
    assert back.startswith(f"{outside}{DONE}?")
    ann.url = second.url
    answer = await ann.open(back.removeprefix(outside))
    assert (answer.status, answer.location) == (303, "/cases")
    assert all("; Secure" in each for each in answer.cookies) and len(answer.cookies) == 2
    assert (await ann.me())["name"] == "u-17"


# What the issuer says


async def test_a_code_of_another_sign_in_is_worth_nothing(place: Place) -> None:
    """Somebody who got hold of a code puts it into a sign-in of his own."""
    ann = await place.visitor()
    code = parse_qs(urlsplit(await ann.way_back(await ann.begin())).query)["code"][0]
    thief = await place.another(ann.url)
    state = parse_qs(urlsplit(await thief.begin()).query)["state"][0]
    answer = await thief.open(f"{DONE}?{urlencode({'code': code, 'state': state})}")
    assert answer.status == 401 and "does not know the code" in answer.text
    assert await thief.me() == 401


@pytest.mark.parametrize(
    ("says", "told"),
    [
        ({"nonce": "another"}, "not about this sign-in"),
        ({"nonce": None}, "not about this sign-in"),
        ({"aud": "another-client"}, "does not count here"),
        ({"aud": "mendflow"}, "does not count here"),
        ({"aud": [CLIENT, "another"]}, "another client"),
        ({"aud": [CLIENT, "another"], "azp": "another"}, "another client"),
        ({"azp": "another"}, "another client"),
        ({"iss": "https://evil.example"}, "does not count here"),
        ({"exp": 1}, "expired"),
        ({"sub": "a b"}, "no usable name"),
        ({"sub": None}, "does not count here"),
    ],
)
async def test_what_was_not_made_for_this_sign_in_signs_nobody_in(
    place: Place, issuer: Issuer, says: dict[str, Any], told: str
) -> None:
    issuer.says = says
    ann = await place.visitor()
    answer = await ann.sign_in()
    assert answer.status == 401 and told in answer.text
    assert await ann.me() == 401 and await place.stored(SESSION_KIND, USED_KIND) == 0
    issuer.says = {"aud": [CLIENT, "another"], "azp": CLIENT}
    assert (await ann.sign_in()).status == 303


async def test_what_another_key_has_signed_signs_nobody_in(place: Place, issuer: Issuer) -> None:
    issuer.signs_with = NEXT_RSA
    ann = await place.visitor()
    assert (await ann.sign_in()).status == 401 and await ann.me() == 401


async def test_an_answer_in_the_name_of_another_issuer_is_refused(place: Place) -> None:
    ann = await place.visitor()
    back = await ann.way_back(await ann.begin())
    answer = await ann.open(re.sub("iss=[^&]*", urlencode({"iss": "https://evil.example"}), back))
    assert answer.status == 401 and "another was asked" in answer.text


async def test_roles_that_the_issuer_tells_only_when_asked(place: Place, issuer: Issuer) -> None:
    issuer.says, issuer.knows = {"groups": None}, {"groups": ["staff"]}
    ann = await place.visitor()
    await ann.sign_in()
    assert (await ann.me())["roles"] == ["user"]
    issuer.knows["sub"] = "somebody-else"
    answer = await (await place.another(ann.url)).sign_in()
    assert answer.status == 401 and "two things" in answer.text


async def test_who_has_no_role_is_told_so(place: Place, issuer: Issuer) -> None:
    issuer.says = {"groups": ["guests"]}
    ann = await place.visitor()
    answer = await ann.sign_in()
    assert answer.status == 403 and "u-17" in answer.text and "role here" in answer.text
    assert await ann.me() == 401


async def test_who_refuses_at_the_issuer_is_told_so_and_no_page_of_theirs_gets_in(place: Place) -> None:
    ann = await place.visitor()
    answer = await ann.open(await ann.way_back(await ann.begin("/cases"), "nobody"))
    assert answer.status == 401 and "access_denied: &lt;b&gt;not today&lt;/b&gt;" in answer.text
    assert 'href="/sign-in?next=%2Fcases"' in answer.text and BEGUN_COOKIE not in ann.jar


async def test_an_issuer_that_is_away_is_said_to_be_so(place: Place, issuer: Issuer) -> None:
    issuer.away = True
    ann = await place.visitor()
    answer = await ann.open("/sign-in/issuer?next=/cases")
    assert answer.status == 503 and "cannot be asked just now" in answer.text and issuer.url in answer.text
    assert BEGUN_COOKIE not in ann.jar


async def test_an_issuer_that_goes_away_meanwhile_is_said_to_be_so(place: Place, issuer: Issuer) -> None:
    ann = await place.visitor()
    back = await ann.way_back(await ann.begin())
    issuer.away = True
    answer = await ann.open(back)
    assert answer.status == 503 and "Try again in a moment" in answer.text and await ann.me() == 401


# Where it leads


@pytest.mark.parametrize(
    "wanted", ["//evil.example", "/\\evil.example", "https://evil.example/", "javascript:alert(1)", "/\r\nX: y", ""]
)
async def test_nobody_is_led_to_another_site(place: Place, wanted: str) -> None:
    ann = await place.visitor()
    answer = await ann.sign_in(wanted)
    assert (answer.status, answer.location) == (303, "/")


async def test_who_signs_out_is_signed_out_here_and_may_be_there(place: Place, issuer: Issuer) -> None:
    ann = await place.visitor()
    await ann.sign_in()
    page = {"Origin": ann.url, "Mendflow-Request": "web", "Cookie": f"{COOKIE}={ann.jar[COOKIE]}"}
    async with ann._http.delete(f"{ann.url}/api/v1/session", headers=page) as response:
        assert response.status == 204
    assert await ann.me() == 401
    answer = await ann.open("/sign-in/issuer/end")
    assert answer.status == 303
    assert (await ann.open(answer.location)).location == f"{ann.url}/sign-in"
    assert issuer.ended == [CLIENT]


# The client


@pytest.mark.parametrize("way", ["client_secret_basic", "client_secret_post"])
async def test_a_client_with_a_secret_shows_it_as_the_issuer_wants(
    place: Place, issuer: Issuer, tmp_path: Path, way: str
) -> None:
    issuer.secret, issuer.secret_by = "s:e c/ret", way
    file = tmp_path / "secret"
    file.touch(0o600)
    file.write_text("wrong\n")
    ann = await place.visitor(issuer.with_client(secret_file=str(file)))
    answer = await ann.sign_in()
    assert answer.status == 503 and "invalid_client" in answer.text and "wrong" not in answer.text
    file.write_text(f"{issuer.secret}\n")
    assert (await ann.sign_in()).status == 303, "without a restart"
    file.unlink()
    answer = await ann.sign_in()
    assert answer.status == 503 and str(file) not in answer.text


def test_a_secret_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("x" * 30)
    file.chmod(0o644)
    client = OidcClient(id=CLIENT, secret_file=str(file))
    options = OidcOptions(issuer="https://l.example", audience="m", client=client)
    with pytest.raises(Forbidden, match="chmod 600"):
        require_options(options)
    file.chmod(0o600)
    require_options(options)
    file.write_text(" \n")
    with pytest.raises(InvalidRequest, match="is empty"):
        require_options(options)
    with pytest.raises(InvalidRequest, match="openid"):
        require_options(OidcOptions(issuer="https://l.example", audience="m", client=OidcClient(id="x", scopes="a b")))


async def test_where_no_client_is_named_nobody_is_led_away(place: Place, issuer: Issuer) -> None:
    ann = await place.visitor(issuer.options())
    for path in ("/sign-in/issuer", DONE, "/sign-in/issuer/end"):
        assert (await ann.open(path)).status not in (302, 303)
    answer = await ann.open("/api/v1/session")
    assert '"issuer":""' in answer.text
    with_client = await place.visitor()
    assert issuer.url in (await with_client.open("/api/v1/session")).text


async def test_who_fails_too_often_makes_the_server_ask_the_issuer_no_more(place: Place, issuer: Issuer) -> None:
    issuer.says = {"nonce": "another"}
    ann = await place.visitor()
    statuses: list[int] = []
    while 429 not in statuses:  # failures come back while a slow machine asks
        statuses.append((await ann.sign_in()).status)
    back = await ann.way_back(await ann.begin())
    assert (await ann.open(back)).status == 429
    assert parse_qs(urlsplit(back).query)["code"][0] in issuer.codes, "it was not shown to the issuer"
