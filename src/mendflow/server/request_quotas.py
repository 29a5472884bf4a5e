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
from mendflow.services.base.buckets import Bucket, BucketTable

REQUESTS_PER_S: Final = 100
BURST_S: Final = 5
LOOP_SHARE: Final = 0.15
"""The share of the event loop's time that the requests of one principal may take."""

LOOP_BURST_S: Final = 2.0
HEALTH_PATH: Final = f"{API}/health"
"""Whoever watches over the server asks here, and would restart a server that does not answer."""


class RequestQuotas:
    """The buckets of all principals. With 0 requests a second nobody is bounded."""

    def __init__(self, requests_per_s: float = REQUESTS_PER_S) -> None:
        self._per_s = requests_per_s
        self._requests = BucketTable(lambda now: Bucket(requests_per_s, max(1.0, requests_per_s * BURST_S), now))
        self._busy = BucketTable(lambda now: Bucket(LOOP_SHARE, LOOP_BURST_S, now))

    def counts(self, caller: Principal, path: str) -> bool:
        return bool(self._per_s) and not caller.roles & {ADMIN, PILOT} and path != HEALTH_PATH

    def take(self, caller: Principal, address: str) -> Bucket:
        """Count one request; the answer is the bucket that its time is taken from. Raises if one is empty."""
        now = time.monotonic()
        key = f"name {caller.name}" if caller.name else f"address {address_group(address)}"
        requests, busy = self._requests.of(key, now), self._busy.of(key, now)
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


class Timed:
    """Awaits a coroutine, and takes the time that its steps keep the loop busy from a bucket."""

    def __init__(self, inner: Coroutine[Any, Any, None], bucket: Bucket) -> None:
        self._inner, self._bucket = inner, bucket

    def __await__(self) -> Generator[Any, Any, None]:
        steps = self._inner.__await__()
        give, value = steps.send, None
        while True:
            begun = time.thread_time()
            try:
                waited_for = give(value)
            except StopIteration:
                return
            finally:
                self._bucket.take(time.thread_time() - begun)
            try:
                give, value = steps.send, (yield waited_for)
            except BaseException as error:  # noqa: BLE001 - it is the inner one's to handle
                give, value = steps.throw, error
