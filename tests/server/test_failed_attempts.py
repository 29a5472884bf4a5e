"""Wrong tokens: slowed down per address, counted, logged once in a while; right ones are never slowed down."""  # SE-3

import logging

import aiohttp
import pytest

from mendflow.core.model.errors import TooManyRequests
from mendflow.server import failed_attempts
from mendflow.server.access import AccessControl, single_token
from mendflow.server.failed_attempts import ADDRESSES_MAX, FAILURES_MAX, RETURN_S, AttemptThrottle
from tests.server.conftest import DomainUnderTest, Serving


class Attempts(AttemptThrottle):
    def __init__(self) -> None:
        self.now = 1000.0
        self.counted: list[str] = []
        super().__init__(self.counted.append, clock=lambda: self.now)

    @property
    def remembered(self) -> int:
        return len(self._failures)


def fail(attempts: Attempts, times: int, address: str = "10.0.0.7") -> None:
    for _ in range(times):
        attempts.note(address, "unknown")


def test_who_fails_too_often_waits_until_a_failure_has_come_back() -> None:
    attempts = Attempts()
    fail(attempts, FAILURES_MAX)
    with pytest.raises(TooManyRequests) as refused:
        attempts.note("10.0.0.7", "unknown")
    assert refused.value.fields["retry_after_s"] == RETURN_S
    with pytest.raises(TooManyRequests):
        attempts.check("10.0.0.7")
    fail(attempts, 1, "10.0.0.8")
    attempts.now += RETURN_S
    fail(attempts, 1)
    with pytest.raises(TooManyRequests):
        fail(attempts, 1)
    attempts.now += FAILURES_MAX * RETURN_S
    fail(attempts, FAILURES_MAX)
    assert attempts.counted.count("throttled") == 3


def test_a_network_of_ipv6_counts_as_one_address() -> None:
    attempts = Attempts()
    for number in range(FAILURES_MAX):
        fail(attempts, 1, f"2001:db8::{number:x}")
    with pytest.raises(TooManyRequests):
        fail(attempts, 1, "2001:db8::ffff:1")
    fail(attempts, 1, "2001:db8:0:1::1")


def test_no_more_addresses_are_remembered_than_a_bound() -> None:
    attempts = Attempts()
    for number in range(ADDRESSES_MAX + 50):
        fail(attempts, 1, f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert attempts.remembered == ADDRESSES_MAX


def test_the_log_names_the_address_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    attempts = Attempts()
    with caplog.at_level(logging.WARNING, "mendflow.server"):
        fail(attempts, 5)
        fail(attempts, 1, "10.0.0.8")
        assert len(caplog.records) == 1
        attempts.now += failed_attempts.LOG_EVERY_S
        fail(attempts, 1)
    assert len(caplog.records) == 2
    assert "refused 6 requests from 2 addresses, most from 10.0.0.7" in caplog.text


def test_no_more_is_logged_when_somebody_asks_from_ever_more_addresses(caplog: pytest.LogCaptureFixture) -> None:
    attempts = Attempts()
    with caplog.at_level(logging.WARNING, "mendflow.server"):
        for number in range(3 * ADDRESSES_MAX):
            fail(attempts, 1, f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
        attempts.now += failed_attempts.LOG_EVERY_S
        fail(attempts, 1)
    of_these = [each for each in caplog.records if each.name == failed_attempts.log.name and "refused" in each.message]
    assert len(of_these) == 2
    assert f"refused {3 * ADDRESSES_MAX} requests from {ADDRESSES_MAX} addresses or more" in caplog.text
    assert len(attempts._unlogged) <= ADDRESSES_MAX


async def test_a_server_answers_429_and_still_takes_the_right_token(
    serving: Serving, domain: DomainUnderTest, http: aiohttp.ClientSession
) -> None:
    failures = AttemptThrottle(domain._server.counts.access_refused.add)
    served = await serving(AccessControl(single_token("the-right-one"), failures=failures))

    async def ask(token: str) -> aiohttp.ClientResponse:
        async with http.get(f"{served.url}/api/v1/cases", headers={"Authorization": f"Bearer {token}"}) as response:
            await response.read()
            return response

    seen = [(await ask("wrong")).status for _ in range(FAILURES_MAX)]
    assert set(seen) == {401}
    while (answer := await ask("wrong")).status == 401:  # failures come back while a slow machine asks
        pass
    assert answer.status == 429 and int(answer.headers["Retry-After"]) >= 1
    assert (await answer.json())["code"] == "too-many-requests"
    assert (await ask("the-right-one")).status == 200
    async with http.get(f"{served.url}/metrics", headers={"Authorization": "Bearer the-right-one"}) as response:
        numbers = await response.text()
    assert 'mendflow_access_refused_total{reason="unknown"} ' in numbers
    assert 'mendflow_access_refused_total{reason="throttled"} ' in numbers


async def test_who_sends_no_token_is_not_counted(serving: Serving, http: aiohttp.ClientSession) -> None:
    served = await serving(AccessControl(single_token("the-right-one")))
    for _ in range(FAILURES_MAX + 5):
        async with http.get(f"{served.url}/api/v1/cases") as response:
            assert response.status == 401
