"""How much of a server one principal may take: so many requests a second, and shares of the event loop and of reading.

These are buckets that fill up steadily and hold a few seconds' worth. A request takes one from the first before it is
answered; from the others it takes the time that it kept the loop busy, and that the store's threads read for it.
Whoever has emptied one is told
when to come back, and is kept waiting for the answer for a moment: a program that asks again at once, whatever it is
told, then asks once a second on each connection, and not as often as it can. Whoever sends no token is counted by its
address. Administrators, pilots, what other servers forward and the question whether the server is alive are not
counted."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Coroutine, Generator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from mendflow.core.model.errors import TooManyRequests
from mendflow.core.model.principals import ADMIN, PILOT, Principal
from mendflow.keyed_semaphore import KeyedSemaphore
from mendflow.operations.subjects import LISTED
from mendflow.operations.table import API, SPECIAL, find_operation
from mendflow.server.failed_attempts import address_group
from mendflow.services.base.buckets import Bucket, BucketTable
from mendflow.services.base.reading_cost import tell_cost_of_reading

REQUESTS_PER_S: Final = 100
BURST_S: Final = 5
LOOP_SHARE: Final = 0.1
"""The share of the event loop's time that the requests of one principal may take."""

READING_SHARE: Final = 0.1
"""The share of one processor's time that reading for one principal may take, where the store reads in this process."""

BUSY_BURST_S: Final = 2.0
LISTS_AT_ONCE: Final = 8
"""So many lists and searches of one principal are answered at once, and the others in their order: all of them read
much into memory. They become fewer as its buckets get emptier, and are one when a bucket is half empty: otherwise
whoever keeps it empty would wait until some of it has come back, and take it with all of them in one moment."""

REQUESTS_AT_ONCE: Final = 16
"""The same of all other requests, but for those that wait for something to happen: what one takes is known when it is
answered, and hundreds that come at once would all be admitted before."""

_STREAMS: Final = frozenset({"metrics", "stats", *(each.name for each in SPECIAL)})
"""Streams, files and archives last as long as whoever reads or sends them takes."""

HELD_S: Final = 1.0
HELD_MAX: Final = 500
"""So long, and so many at once, those who are refused are kept waiting."""

HEALTH_PATH: Final = f"{API}/health"
"""Whoever watches over the server asks here, and would restart a server that does not answer."""


class RequestBuckets(NamedTuple):
    """Where the time that a request takes is taken from."""

    busy: Bucket
    reading: Bucket


_PAYING: ContextVar[RequestBuckets | None] = ContextVar("request_buckets", default=None)


class RequestQuotas:
    """The buckets of all principals. With 0 requests a second nobody is bounded."""

    def __init__(self, requests_per_s: float = REQUESTS_PER_S) -> None:
        self._per_s = requests_per_s
        self._requests = BucketTable(lambda now: Bucket(requests_per_s, max(1.0, requests_per_s * BURST_S), now))
        self._busy = BucketTable(lambda now: Bucket(LOOP_SHARE, BUSY_BURST_S, now))
        self._reading = BucketTable(lambda now: Bucket(READING_SHARE, BUSY_BURST_S, now))
        self._held = 0
        self._lists = KeyedSemaphore(LISTS_AT_ONCE)
        self._others = KeyedSemaphore(REQUESTS_AT_ONCE)

    def counts(self, caller: Principal, path: str) -> bool:
        return bool(self._per_s) and not caller.roles & {ADMIN, PILOT} and path != HEALTH_PATH

    def take(self, caller: Principal, address: str) -> RequestBuckets:
        """Count one request. Raises if one of the buckets is empty."""
        now = time.monotonic()
        key = _key(caller, address)
        requests = self._requests.of(key, now)
        buckets = RequestBuckets(self._busy.of(key, now), self._reading.of(key, now))
        if wait_s := requests.wait_s(1, now):
            raise TooManyRequests(
                f"{caller.name or 'your address'} has sent more than {self._per_s:g} requests a second;"
                f" wait {wait_s:.1f} s, or ask for less",
                retry_after_s=math.ceil(wait_s),
            )
        self._demand_share(caller, key, now)
        requests.take(1)
        return buckets

    def _demand_share(self, caller: Principal, key: str, now: float) -> None:
        busy, reading = self._busy.of(key, now), self._reading.of(key, now)
        for bucket, what, share in ((busy, "busy", LOOP_SHARE), (reading, "reading", READING_SHARE)):
            if wait_s := bucket.wait_s(0, now):
                raise TooManyRequests(
                    f"the requests of {caller.name or 'your address'} have kept this server {what} for more than"
                    f" {share:.0%} of its time; wait {wait_s:.1f} s, or ask for less",
                    retry_after_s=math.ceil(wait_s),
                )

    @asynccontextmanager
    async def turn(self, caller: Principal, address: str, method: str, path: str) -> AsyncIterator[None]:
        """Wait until no more than some requests of the same principal are being answered, and fewer lists. Raises if it
        has used up its share meanwhile."""
        operation = find_operation(method, path)
        if operation is None or operation.waits or operation.name in _STREAMS:
            yield
            return
        key = _key(caller, address)
        is_list = operation.subject is LISTED and not operation.audited
        async with self._lists.of(key, lambda: self._lists_at_once(key)) if is_list else self._others.of(key):
            self._demand_share(caller, key, time.monotonic())
            yield

    def _lists_at_once(self, key: str) -> int:
        now = time.monotonic()
        filled = min(self._busy.of(key, now).filled(now), self._reading.of(key, now).filled(now))
        return 1 + int((LISTS_AT_ONCE - 1) * max(0.0, 2 * filled - 1))

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


class Timed:
    """Awaits a coroutine, and takes the time that its steps keep the loop busy from a bucket, and the time that a store
    reads for it from another."""

    def __init__(self, inner: Coroutine[Any, Any, None], buckets: RequestBuckets) -> None:
        self._inner, self._buckets = inner, buckets

    def __await__(self) -> Generator[Any, Any, None]:
        before, paying = tell_cost_of_reading(self._buckets.reading.take), _PAYING.set(self._buckets)
        try:
            yield from self._steps()
        finally:
            tell_cost_of_reading(before)
            _PAYING.reset(paying)

    def _steps(self) -> Generator[Any, Any, None]:
        steps, bucket = self._inner.__await__(), self._buckets.busy
        give, value = steps.send, None
        while True:
            begun = time.thread_time()
            try:
                waited_for = give(value)
            except StopIteration:
                return
            finally:
                bucket.take(time.thread_time() - begun)
            try:
                give, value = steps.send, (yield waited_for)
            except BaseException as error:  # noqa: BLE001 - it is the inner one's to handle
                give, value = steps.throw, error


async def paid_alike(inner: Coroutine[Any, Any, None]) -> None:
    """For a task that a request starts and waits for: its time is taken from the same buckets."""
    buckets = _PAYING.get()
    await (inner if buckets is None else Timed(inner, buckets))
