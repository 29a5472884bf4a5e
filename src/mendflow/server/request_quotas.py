"""How much of a server one principal may take: so many requests a second, and a share of the event loop.

Both are buckets that fill up steadily and hold a few seconds' worth. A request takes one from the first before it is
answered; from the second it takes the time that it kept the loop busy, when it is over. Whoever has emptied one is told
when to come back. Whoever sends no token is counted by its address. Administrators, pilots, what other servers forward
and the question whether the server is alive are not counted."""

import math
import time
from collections.abc import Coroutine, Generator
from typing import Any, Final

from mendflow.core.model.errors import TooManyRequests
from mendflow.core.model.principals import ADMIN, PILOT, Principal
from mendflow.operations.table import API
from mendflow.server.failed_attempts import address_group

REQUESTS_PER_S: Final = 100
BURST_S: Final = 5
LOOP_SHARE: Final = 0.15
"""The share of the event loop's time that the requests of one principal may take."""

LOOP_BURST_S: Final = 2.0
PRINCIPALS_MAX: Final = 10_000
HEALTH_PATH: Final = f"{API}/health"
"""Whoever watches over the server asks here, and would restart a server that does not answer."""

Buckets = tuple["Bucket", "Bucket"]


class Bucket:
    """Holds at most `most`, and gets `rate` each second. It may go below zero, and is empty until it is above again."""

    __slots__ = ("_at", "_left", "_most", "_rate")

    def __init__(self, rate: float, most: float, now: float) -> None:
        self._rate, self._most, self._left, self._at = rate, most, most, now

    def wait_s(self, amount: float, now: float) -> float:
        """How long until it holds this much."""
        self._left = min(self._most, self._left + (now - self._at) * self._rate)
        self._at = now
        return max(0.0, (amount - self._left) / self._rate)

    def take(self, amount: float) -> None:
        self._left -= amount


class RequestQuotas:
    """The buckets of all principals. With 0 requests a second nobody is bounded."""

    def __init__(self, requests_per_s: float = REQUESTS_PER_S) -> None:
        self._per_s = requests_per_s
        self._by_name: dict[str, Buckets] = {}
        self._by_address: dict[str, Buckets] = {}

    def counts(self, caller: Principal, path: str) -> bool:
        return bool(self._per_s) and not caller.roles & {ADMIN, PILOT} and path != HEALTH_PATH

    def take(self, caller: Principal, address: str) -> Bucket:
        """Count one request; the answer is the bucket that its time is taken from. Raises if one is empty."""
        now = time.monotonic()
        if caller.name:
            requests, busy = self._of(self._by_name, caller.name, now)
        else:
            requests, busy = self._of(self._by_address, address_group(address), now)
        if wait_s := requests.wait_s(1, now):
            raise TooManyRequests(
                f"{caller.name or 'your address'} has sent more than {self._per_s:g} requests a second;"
                f" wait {wait_s:.1f} s, or ask for less",
                retry_after_s=math.ceil(wait_s),
            )
        if wait_s := busy.wait_s(0, now):
            raise TooManyRequests(
                f"the requests of {caller.name or 'your address'} have kept this server busy for more than"
                f" {LOOP_SHARE:.0%} of its time; wait {wait_s:.1f} s, or ask for less",
                retry_after_s=math.ceil(wait_s),
            )
        requests.take(1)
        return busy

    def _of(self, known: dict[str, Buckets], key: str, now: float) -> Buckets:
        found = known.get(key)
        if found is None:
            if len(known) >= PRINCIPALS_MAX:
                known.clear()
            per_s = self._per_s
            found = Bucket(per_s, max(1.0, per_s * BURST_S), now), Bucket(LOOP_SHARE, LOOP_BURST_S, now)
            known[key] = found
        return found


class Timed:
    """Awaits a coroutine, and takes the time that its steps keep the loop busy from a bucket."""

    def __init__(self, inner: Coroutine[Any, Any, None], bucket: Bucket) -> None:
        self._inner, self._bucket = inner, bucket

    def __await__(self) -> Generator[Any, Any, None]:
        steps = self._inner.__await__()
        give, value = steps.send, None
        while True:
            begun = time.perf_counter()
            try:
                waited_for = give(value)
            except StopIteration:
                return
            finally:
                self._bucket.take(time.perf_counter() - begun)
            try:
                give, value = steps.send, (yield waited_for)
            except BaseException as error:  # noqa: BLE001 - it is the inner one's to handle
                give, value = steps.throw, error
