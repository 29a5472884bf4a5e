"""How much of a server one principal may take: so many requests a second, and a share of the event loop.

Both are buckets that fill up steadily and hold a few seconds' worth. A request takes one from the first before it is
answered; from the second it takes the time that it kept the loop busy, when it is over. Whoever has emptied one is told
when to come back, and is kept waiting for the answer for a moment: a program that asks again at once, whatever it is
told, then asks once a second on each connection, and not as often as it can. Whoever sends no token is counted by its
address. Administrators, pilots, what other servers forward and the question whether the server is alive are not
counted."""

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Generator
from contextlib import asynccontextmanager
from typing import Any, Final

from mendflow.core.model.errors import TooManyRequests
from mendflow.core.model.principals import ADMIN, PILOT, Principal
from mendflow.operations.subjects import LISTED
from mendflow.operations.table import API, find_operation
from mendflow.server.failed_attempts import address_group
from mendflow.services.base.buckets import Bucket, BucketTable

REQUESTS_PER_S: Final = 100
BURST_S: Final = 5
LOOP_SHARE: Final = 0.15
"""The share of the event loop's time that the requests of one principal may take."""

LOOP_BURST_S: Final = 2.0
LISTS_AT_ONCE: Final = 3
"""So many lists and searches of one principal are answered at once, and the others in their order: all of them read
much, and stores do that one after the other."""

_STREAMS: Final = frozenset({"all_events", "metrics", "stats"})

HELD_S: Final = 1.0
HELD_MAX: Final = 500
"""So long, and so many at once, those who are refused are kept waiting."""

HEALTH_PATH: Final = f"{API}/health"
"""Whoever watches over the server asks here, and would restart a server that does not answer."""


class RequestQuotas:
    """The buckets of all principals. With 0 requests a second nobody is bounded."""

    def __init__(self, requests_per_s: float = REQUESTS_PER_S) -> None:
        self._per_s = requests_per_s
        self._requests = BucketTable(lambda now: Bucket(requests_per_s, max(1.0, requests_per_s * BURST_S), now))
        self._busy = BucketTable(lambda now: Bucket(LOOP_SHARE, LOOP_BURST_S, now))
        self._held = 0
        self._turns: dict[str, asyncio.Semaphore] = {}  # of those who have asked for lists by now
        self._asking: Counter[str] = Counter()

    def counts(self, caller: Principal, path: str) -> bool:
        return bool(self._per_s) and not caller.roles & {ADMIN, PILOT} and path != HEALTH_PATH

    def take(self, caller: Principal, address: str) -> Bucket:
        """Count one request; the answer is the bucket that its time is taken from. Raises if one is empty."""
        now = time.monotonic()
        key = _key(caller, address)
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

    @asynccontextmanager
    async def turn(self, caller: Principal, address: str, method: str, path: str) -> AsyncIterator[None]:
        """Wait until no more than some lists of the same principal are being made."""
        if not _is_list(method, path):
            yield
            return
        key = _key(caller, address)
        turns = self._turns.setdefault(key, asyncio.Semaphore(LISTS_AT_ONCE))
        self._asking[key] += 1
        try:
            async with turns:
                yield
        finally:
            self._asking[key] -= 1
            if not self._asking[key]:
                del self._asking[key], self._turns[key]

    async def hold(self) -> None:
        """Keep somebody waiting who is about to be refused."""
        if self._held >= HELD_MAX:
            return
        self._held += 1
        try:
            await asyncio.sleep(HELD_S)
        finally:
            self._held -= 1


def _key(caller: Principal, address: str) -> str:
    return f"name {caller.name}" if caller.name else f"address {address_group(address)}"


def _is_list(method: str, path: str) -> bool:
    operation = find_operation(method, path)
    return (
        operation is not None
        and operation.subject is LISTED
        and not operation.audited
        and not operation.waits
        and operation.name not in _STREAMS
    )


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
