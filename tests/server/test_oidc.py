"""Tokens of an OpenID Connect issuer, which runs here: what counts, and what does not."""  # SE-1

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from mendflow.address_guard import AddressGuard, allowed_address
from mendflow.client import Client
from mendflow.core.model.errors import Forbidden, InvalidRequest, TemporarilyUnavailable, Unauthorized
from mendflow.core.model.principals import Principal
from mendflow.server import oidc
from mendflow.server.access import AccessControl, check_binding
from mendflow.server.failed_attempts import FAILURES_MAX
from mendflow.server.oidc import OidcIssuer, OidcOptions, require_options
from tests.patience import until
from tests.server.conftest import Serving
from tests.server.conversation import job_flow
from tests.servers.issuer import EC, NEXT_RSA, RSA, Issuer, issuing

SMALL_RSA = rsa.generate_private_key(public_exponent=65537, key_size=1024)


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with issuing() as made:
        yield made


@pytest.fixture
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oidc, "REFETCH_S", 0.0)


@pytest.mark.parametrize("kid", ["one", "curve", "ed"])
async def test_a_token_counts_that_a_published_key_has_signed(issuer: Issuer, kid: str) -> None:
    assert await OidcIssuer(issuer.options()).check(issuer.token(kid)) == Principal("u-17", frozenset({"user"}))


async def test_keys_are_read_once_and_a_token_is_checked_once(issuer: Issuer) -> None:
    checks = OidcIssuer(issuer.options())
    token = issuer.token()
    sha256 = hashlib.sha256(token.encode()).hexdigest()
    assert checks.known(sha256) is None
    for _ in range(3):
        await checks.check(token)
        await checks.check(issuer.token("curve"))
    assert issuer.asked == 1
    assert checks.known(sha256) is not None


def unsigned(token: str, **header: Any) -> str:
    claims = token.split(".")[1]
    head = base64.urlsafe_b64encode(json.dumps({"typ": "JWT", **header}).encode()).decode().rstrip("=")
    return f"{head}.{claims}."


def with_public_key_as_password(token: str, key: rsa.RSAPrivateKey) -> str:
    """Signed by HMAC, with the published key as the password."""
    encoding, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    password = key.public_key().public_bytes(encoding, form)
    signed = unsigned(token, alg="HS256", kid="one").rstrip(".")
    mark = hmac.new(password, signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{base64.urlsafe_b64encode(mark).decode().rstrip('=')}"


async def test_what_does_not_count(issuer: Issuer, no_waits: None) -> None:
    checks = OidcIssuer(issuer.options())
    now = int(time.time())
    whole = issuer.token()
    wrong = {
        "for somebody else": issuer.token(aud="another"),
        "for nobody": issuer.token(aud=None),
        "of another issuer": issuer.token(iss="https://evil.example"),
        "expired": issuer.token(exp=now - 3600),
        "without an end": issuer.token(exp=None),
        "not yet": issuer.token(nbf=now + 3600),
        "without a person": issuer.token(sub=None),
        "another key under a known name": issuer.token("one", key=NEXT_RSA),
        "another method under a known name": issuer.token("one", key=EC),
        "an unknown key": issuer.token("nobody", key=NEXT_RSA),
        "a path for a key": issuer.token("../../../../dev/null", key=NEXT_RSA),
        "an address for a key": issuer.token("http://127.0.0.1/keys", key=NEXT_RSA),
        "without a signature": unsigned(whole, alg="none"),
        "without a signature, in capitals": unsigned(whole, alg="NONE", kid="one"),
        "an empty signature": unsigned(whole, alg="RS256", kid="one"),
        "with the public key as a password": with_public_key_as_password(whole, RSA),
        "changed": f"{whole[:-8]}AAAAAAAA",
        "a number for a key": unsigned(whole, alg="RS256", kid=7),
        "no token at all": "a.b.c",
        "too long": whole + "A" * oidc.TOKEN_CHARS_MAX,
    }
    for what, token in wrong.items():
        with pytest.raises(Unauthorized) as refused:
            await checks.check(token)
        assert token not in refused.value.message, what
    assert await checks.check(whole)


async def test_clocks_may_differ_a_little(issuer: Issuer) -> None:
    checks, now = OidcIssuer(issuer.options()), int(time.time())
    assert await checks.check(issuer.token(exp=now - oidc.LEEWAY_S // 2))
    assert await checks.check(issuer.token(nbf=now + oidc.LEEWAY_S // 2))
    with pytest.raises(Unauthorized, match="expired: sign in again"):
        await checks.check(issuer.token(exp=now - oidc.LEEWAY_S * 4))


async def test_a_key_without_a_name_counts_if_it_is_the_only_one(issuer: Issuer, no_waits: None) -> None:
    checks = OidcIssuer(issuer.options())
    assert await checks.check(issuer.token(None))
    issuer.keys["two"] = NEXT_RSA
    again = OidcIssuer(issuer.options())
    with pytest.raises(Unauthorized, match="no key"):
        await again.check(issuer.token(None))


async def test_a_short_key_is_not_used(issuer: Issuer) -> None:
    issuer.keys["one"] = SMALL_RSA
    with pytest.raises(Unauthorized, match="no key"):
        await OidcIssuer(issuer.options()).check(issuer.token("one"))


async def test_the_issuer_may_change_its_keys(issuer: Issuer, no_waits: None) -> None:
    checks = OidcIssuer(issuer.options())
    old = issuer.token("one")
    await checks.check(old)
    issuer.keys = {"two": NEXT_RSA}
    assert await checks.check(issuer.token("two"))
    assert checks.known(hashlib.sha256(old.encode()).hexdigest()) is None, "its key was withdrawn"
    with pytest.raises(Unauthorized):
        await checks.check(old)


async def test_unknown_keys_do_not_make_the_server_ask_the_issuer_each_time(issuer: Issuer) -> None:
    checks = OidcIssuer(issuer.options())
    for number in range(20):
        with pytest.raises(Unauthorized):
            await checks.check(issuer.token(f"unknown-{number}", key=NEXT_RSA))
    assert issuer.asked == 1


async def test_keys_of_before_serve_while_the_issuer_is_away(
    issuer: Issuer, no_waits: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = OidcIssuer(issuer.options())
    await checks.check(issuer.token())
    issuer.away = True
    monkeypatch.setattr(oidc, "KEYS_S", -1.0)
    assert await checks.check(issuer.token())
    monkeypatch.setattr(oidc, "KEYS_S_MAX", -1.0)
    with pytest.raises(TemporarilyUnavailable, match="cannot be asked for its keys"):
        await checks.check(issuer.token())


async def test_nobody_waits_for_a_slow_issuer_while_its_keys_serve(
    issuer: Issuer, serving: Serving, no_waits: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = await serving(AccessControl(issuer=OidcIssuer(issuer.options())))
    async with Client(served.url, issuer.token()) as ann:
        await ann.cases()
        monkeypatch.setattr(oidc, "KEYS_S", -1.0)
        issuer.answers.clear()
        for _ in range(3):
            assert await ann.cases() == []
        async with Client(served.url, issuer.token("curve")) as bob:
            assert await bob.cases() == []
        await until(lambda: issuer.asked == 2)
        issuer.answers.set()


async def test_whoever_waited_for_an_issuer_that_failed_is_told_so(issuer: Issuer) -> None:
    checks = OidcIssuer(issuer.options())
    issuer.away = True
    issuer.answers.clear()
    asked = [asyncio.create_task(checks.check(issuer.token())) for _ in range(3)]
    await until(lambda: issuer.asked == 1)
    issuer.answers.set()
    told = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(each) for each in told] == [TemporarilyUnavailable] * 3
    with pytest.raises(TemporarilyUnavailable):  # a moment later, without asking again
        await checks.check(issuer.token())
    assert issuer.asked == 1


async def test_a_key_that_is_not_known_is_no_wrong_one_while_the_issuer_is_away(issuer: Issuer, no_waits: None) -> None:
    checks = OidcIssuer(issuer.options())
    await checks.check(issuer.token())
    issuer.away = True
    with pytest.raises(TemporarilyUnavailable):
        await checks.check(issuer.token("two", key=NEXT_RSA))


async def test_a_slow_issuer_is_asked_again_only_some_time_after_it_has_answered(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(oidc, "time", SimpleNamespace(monotonic=lambda: now[0]))
    checks = OidcIssuer(issuer.options())
    issuer.answers.clear()
    asked = asyncio.create_task(checks.check(issuer.token()))
    await until(lambda: issuer.asked == 1)
    now[0] += oidc.REFETCH_S + 1
    issuer.answers.set()
    await asked
    with pytest.raises(Unauthorized, match="no key"):
        await checks.check(issuer.token("unknown", key=NEXT_RSA))
    assert issuer.asked == 1


async def test_an_issuer_that_says_it_is_another_is_not_believed(issuer: Issuer) -> None:
    issuer.says_it_is = "https://evil.example"
    with pytest.raises(TemporarilyUnavailable):
        await OidcIssuer(issuer.options()).check(issuer.token())


@pytest.mark.parametrize(
    ("more", "claims", "principal"),
    [
        ({}, {"groups": ["staff", "admin"]}, Principal("u-17", frozenset({"user"}))),
        ({"mapping": {}}, {"groups": ["admin", "user"]}, Principal("u-17", frozenset())),
        ({"mapping": {}}, {"groups": ["mendflow:admin"]}, Principal("u-17", frozenset({"admin"}))),
        (
            {"mapping": {}},
            {"groups": ["mendflow:genomics:viewer", "mendflow:genomics:author", "mendflow:x:boss"]},
            Principal("u-17", frozenset({"user"}), {"genomics": "author"}),
        ),
        (
            {"mapping": {"lab": "genomics:viewer"}, "roles": "realm_access.roles"},
            {"realm_access": {"roles": ["lab"]}},
            Principal("u-17", frozenset({"reader"}), {"genomics": "viewer"}),
        ),
        ({"name": "email"}, {"email": "ann@example.org"}, Principal("ann@example.org", frozenset({"user"}))),
        ({}, {"groups": "staff"}, Principal("u-17", frozenset({"user"}))),
        ({}, {"groups": "guests staff"}, Principal("u-17", frozenset())),
        ({}, {"groups": ["guests staff"]}, Principal("u-17", frozenset())),
        ({"mapping": {"team admin": "reader"}}, {"groups": "team admin"}, Principal("u-17", frozenset({"reader"}))),
        ({"mapping": {}}, {"groups": "team mendflow:admin"}, Principal("u-17", frozenset())),
        ({"roles": "scope"}, {"scope": "openid staff"}, Principal("u-17", frozenset({"user"}))),
        ({"roles": "scope", "mapping": {}}, {"scope": "openid mendflow:user"}, Principal("u-17", frozenset({"user"}))),
        (
            {"roles": "realm_access.scope"},
            {"realm_access": {"scope": "openid staff"}},
            Principal("u-17", frozenset()),
        ),
        ({}, {"groups": {"staff": True}}, Principal("u-17", frozenset())),
        ({"roles": "", "mapping": {}}, {}, Principal("u-17", frozenset())),
    ],
)
async def test_what_claims_mean(
    issuer: Issuer, more: dict[str, Any], claims: dict[str, Any], principal: Principal
) -> None:
    assert await OidcIssuer(issuer.options(**more)).check(issuer.token(**claims)) == principal


@pytest.mark.parametrize("name", ["", "a b", "x\r\ny", 7, None])
async def test_a_name_that_cannot_be_used_is_refused(issuer: Issuer, name: object) -> None:
    with pytest.raises(Unauthorized, match="no usable name"):
        await OidcIssuer(issuer.options(name="nick")).check(issuer.token(nick=name))


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        (OidcOptions(issuer="http://login.example.org", audience="m"), "https"),
        (OidcOptions(issuer="login.example.org", audience="m"), "https"),
        (OidcOptions(issuer="https://login.example.org", audience=""), "--oidc-audience"),
        (OidcOptions(issuer="https://l.example", audience="m", roles="g", mapping={"x": "A B"}), "neither a role"),
        (OidcOptions(issuer="https://l.example", audience="m", roles="g", mapping={"x": "lab:boss"}), "PROJECT:ROLE"),
        (OidcOptions(issuer="https://l.example", audience="m", mapping={"x": "user"}), "--oidc-roles"),
    ],
)
def test_options_that_could_not_work_are_refused(options: OidcOptions, wrong: str) -> None:
    with pytest.raises(InvalidRequest, match=wrong):
        require_options(options)


async def test_people_who_signed_in_elsewhere_use_a_server(serving: Serving, issuer: Issuer) -> None:
    served = await serving(AccessControl(issuer=OidcIssuer(issuer.options())))
    check_binding("0.0.0.0", [], issuer=True)
    async with Client(served.url, issuer.token()) as ann, Client(served.url) as stranger:
        await ann.deploy(job_flow())
        assert (await ann.start("one")).owner == "u-17"
        with pytest.raises(Forbidden):
            await ann.tokens()
        with pytest.raises(Unauthorized):
            await stranger.cases()
    async with Client(served.url, issuer.token(groups=[])) as nobody:
        with pytest.raises(Forbidden):
            await nobody.cases()


async def test_who_fails_too_often_makes_the_server_check_no_more_signatures(
    serving: Serving, issuer: Issuer, http: aiohttp.ClientSession
) -> None:
    served = await serving(AccessControl(issuer=OidcIssuer(issuer.options())))
    known = issuer.token()
    async with Client(served.url, known) as ann:
        await ann.cases()
        refusals: list[int] = []
        while 429 not in refusals:  # failures come back while a slow machine asks
            wrong = {"authorization": f"Bearer {issuer.token(aud='another')}"}
            async with http.get(f"{served.url}/api/v1/cases", headers=wrong) as response:
                refusals.append(response.status)
        assert len(refusals) > FAILURES_MAX
        assert await ann.cases() == [], "whoever was known stays so"


async def test_keys_are_read_at_no_private_address_that_the_issuer_makes_up(  # SE-5
    issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever gets hold of the issuer's description must not have the server call what only it can reach."""
    issuer.keys_at = issuer.url.replace("127.0.0.1", "localhost") + "/keys"
    with pytest.raises(TemporarilyUnavailable):
        await OidcIssuer(issuer.options()).check(issuer.token("one"))
    assert "localhost is a private address" in caplog.text
    checks = OidcIssuer(issuer.options(), guard=AddressGuard(allowed=(allowed_address("localhost"),)))
    assert (await checks.check(issuer.token("one"))).name == "u-17"
