"""How much of a server one principal may take: so many requests a second, and shares of the event loop and of reading.

These are buckets that fill up steadily and hold a few seconds' worth. A request takes one from the first before it is
answered; from the others it takes the time that it kept the loop busy, and that the store's threads read for it.
Whoever has emptied one is told when to come back, and is kept waiting for the answer for a moment: a program that asks
again at once, whatever it is told, then asks once a second on each connection, and not as often as it can. What is sent
or received in parts waits between them. Whoever sends no token is counted by its address. Pilots have a wider
share and are not refused. Administrators and what other servers forward are not counted; the question whether the
server is alive is never refused."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, NamedTuple

from litestar.types import HTTPReceiveMessage, Message, Receive, Send, WebSocketReceiveMessage

from mendflow.core.model.errors import TooManyRequests
from mendflow.core.model.principals import ADMIN, PILOT, Principal
from mendflow.keyed_semaphore import KeyedSemaphore
from mendflow.operations.subjects import LISTED
from mendflow.operations.table import API, find_operation
from mendflow.server.failed_attempts import address_group
from mendflow.server.local_callers import ANONYMOUS
from mendflow.services.base.buckets import Bucket, BucketTable
from mendflow.services.base.reading_cost import tell_cost_of_reading
from mendflow.services.base.request_turns import hold_turn

REQUESTS_PER_S: Final = 100
BURST_S: Final = 5
LOOP_SHARE: Final = 0.1
"""The share of the event loop's time that the requests of one principal may take."""

READING_SHARE: Final = 0.1
"""The share of one processor's time that reading for one principal may take, where the store reads in this process."""

BUSY_BURST_S: Final = 2.0
ADDRESS_BURST_S: Final = 0.5
"""The same for an address whose callers are not known: pages take little."""

PILOT_SHARE: Final = 0.5
"""The same for a pilot, beside the messages in which it gets and reports jobs. Pilots are not refused: they wait."""

BODY_BYTE_S: Final = 60e-9
"""What a byte of a body in JSON or XML counts for: it is decoded, checked, stored with indexes, and encoded again when
somebody looks, most of it later or by others than the request."""

BODY_PAID_BYTES_MAX: Final = 16 << 20
"""What is longer is refused, and the rest of it is read and thrown away."""

LISTS_AT_ONCE: Final = 8
"""So many lists and searches of one principal are answered at once, and the others in their order: all of them read
much into memory."""

REQUESTS_AT_ONCE: Final = 16
"""The same of all other requests, but for those that wait for something to happen: what one takes is known when it is
answered, and hundreds that come at once would all be admitted before. Both become fewer as the principal's buckets get
emptier, and are one when a bucket is half empty: otherwise whoever keeps it empty would wait until some of it has come
back, and take it with all of them in one moment."""

FILES_AT_ONCE: Final = 16
"""So many files of one principal are stored at once, however little of its buckets is left: each may take hours."""

HELD_S: Final = 1.0
HELD_MAX: Final = 500
"""So long, and so many at once, those who are refused are kept waiting."""

REST_S_MAX: Final = 1.0
"""A request that waits between its parts looks again so often."""

PILOT_WAIT_S: Final = 20.0
"""So long a pilot waits for its answer at most: after a minute it would ask again."""

HEALTH_PATH: Final = f"{API}/health"
HEALTH_HELD_S: Final = 0.25
"""Whoever watches over the server asks here, and would restart a server that does not answer within a second."""

ADDRESS: Final = "address "


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
        self._of_names = BucketTable(lambda now: _new_shares(now, BUSY_BURST_S))
        self._of_addresses = BucketTable(
            lambda now: _new_shares(now, ADDRESS_BURST_S)
        )  # apart: of these there may be any number
        self._of_pilots = BucketTable(lambda now: Bucket(PILOT_SHARE, BUSY_BURST_S, now))
        self._held = 0
        self._lists = KeyedSemaphore(partial(self._at_once, LISTS_AT_ONCE))
        self._others = KeyedSemaphore(partial(self._at_once, REQUESTS_AT_ONCE))
        self._files = KeyedSemaphore(FILES_AT_ONCE)
        self._resting = KeyedSemaphore(1)

    def counts(self, caller: Principal, path: str) -> bool:
        return not self.is_free(caller) and path != HEALTH_PATH

    def is_free(self, caller: Principal) -> bool:
        """Whether it is not bounded, whatever it asks."""
        return not self._per_s or bool(caller.roles & {ADMIN, PILOT})

    def of_address(self, address: str) -> RequestBuckets:
        """What is taken from before it is known who asks."""
        return self._shares(_key(ANONYMOUS, address), time.monotonic())

    async def wait_unknown(self, address: str, path: str) -> None:
        """Let somebody wait for the answer who has not shown who it is, and has used up its share."""
        if self._per_s and self._debt_s(_key(ANONYMOUS, address)):
            await self.hold(HEALTH_HELD_S if path == HEALTH_PATH else None)

    async def answer_pilot(
        self,
        caller: Principal,
        receive: Receive,
        send: Send,
        answer: Callable[[Receive, Send], Coroutine[Any, Any, None]],
    ) -> None:
        """Answer it when the pilots of this token have not used up their share, in their order, or after a while."""
        if not self._per_s:
            await answer(receive, send)
            return
        key, bucket = f"pilot {caller.name}", self._of_pilots.of(caller.name, time.monotonic())
        with suppress(TimeoutError):
            async with asyncio.timeout(PILOT_WAIT_S):
                await self._rest(key, partial(_debt_s, bucket))
        paced = self._paced(key, partial(_debt_s, bucket), receive, send)
        await Timed(answer(*paced), RequestBuckets(bucket, bucket))

    def take(self, caller: Principal, address: str) -> RequestBuckets:
        """Count one request. Raises if one of the buckets is empty."""
        now = time.monotonic()
        key = _key(caller, address)
        requests = self._requests.of(key, now)
        buckets = self._shares(key, now)
        if wait_s := requests.wait_s(1, now):
            raise TooManyRequests(
                f"{caller.name or 'your address'} has sent more than {self._per_s:g} requests a second;"
                f" wait {wait_s:.1f} s, or ask for less",
                retry_after_s=math.ceil(wait_s),
            )
        self._demand_share(caller, key, now)
        requests.take(1)
        return buckets

    def _shares(self, key: str, now: float) -> RequestBuckets:
        return (self._of_addresses if key.startswith(ADDRESS) else self._of_names).of(key, now)

    def _demand_share(self, caller: Principal, key: str, now: float) -> None:
        busy, reading = self._shares(key, now)
        for bucket, what, share in ((busy, "busy", LOOP_SHARE), (reading, "reading", READING_SHARE)):
            if wait_s := bucket.wait_s(0, now):
                raise TooManyRequests(
                    f"the requests of {caller.name or 'your address'} have kept this server {what} for more than"
                    f" {share:.0%} of its time; wait {wait_s:.1f} s, or ask for less",
                    retry_after_s=math.ceil(wait_s),
                )

    def paced(
        self, caller: Principal, address: str, method: str, path: str, receive: Receive, send: Send
    ) -> tuple[Receive, Send]:
        """For what is sent or received in parts: whoever has used up its share waits between them until some of it has
        come back, one request after the other. What is received is paid, but for files and archives, which are stored
        as they come."""
        operation = find_operation(method, path)
        key, is_paid = _key(caller, address), operation is None or not operation.stores_body
        pay = self._shares(key, time.monotonic()).reading.take
        return self._paced(key, partial(self._debt_s, key), receive, send, pay if is_paid else None)

    def _paced(
        self,
        key: str,
        debt_s: Callable[[], float],
        receive: Receive,
        send: Send,
        pay: Callable[[float], None] | None = None,
    ) -> tuple[Receive, Send]:
        received = 0

        async def paced_receive() -> HTTPReceiveMessage | WebSocketReceiveMessage:
            nonlocal received
            message = await receive()
            if message["type"] == "http.request" and received < BODY_PAID_BYTES_MAX:
                body = message.get("body", b"")
                if pay is not None:
                    received += len(body)
                    pay(len(body) * BODY_BYTE_S)
                if message.get("more_body"):
                    await self._rest(key, debt_s)
            return message

        async def paced_send(message: Message) -> None:
            await send(message)
            if message["type"] == "http.response.body" and message.get("more_body"):
                await self._rest(key, debt_s)

        return paced_receive, paced_send

    async def _rest(self, key: str, debt_s: Callable[[], float]) -> None:
        """Wait until what was taken too much has come back, one after the other."""
        if not debt_s():
            return
        async with self._resting.of(key):
            while wait_s := debt_s():
                await asyncio.sleep(min(wait_s, REST_S_MAX))

    def _debt_s(self, key: str) -> float:
        """How long until what was taken too much has come back."""
        return max(_debt_s(bucket) for bucket in self._shares(key, time.monotonic()))

    @asynccontextmanager
    async def turn(self, caller: Principal, address: str, method: str, path: str) -> AsyncIterator[None]:
        """Wait until no more than some requests of the same principal are being answered, and fewer lists. Raises if it
        has used up its share meanwhile. A SOAP request ends its turn when it waits for a reply."""
        operation = find_operation(method, path)
        if operation is not None and (operation.waits or operation.streams):
            yield
            return
        key = _key(caller, address)
        if operation is not None and operation.stores_body:
            async with self._files.of(key):
                yield
            return
        is_list = operation is not None and operation.subject is LISTED and not operation.audited
        async with hold_turn((self._lists if is_list else self._others).of(key)):
            self._demand_share(caller, key, time.monotonic())
            yield

    def _at_once(self, most: int, key: str) -> int:
        now = time.monotonic()
        filled = min(bucket.filled(now) for bucket in self._shares(key, now))
        return 1 + int((most - 1) * max(0.0, 2 * filled - 1))

    async def hold(self, seconds: float | None = None) -> None:
        """Keep somebody waiting who is about to be refused, or has not shown who it is."""
        if self._held >= HELD_MAX:
            return
        self._held += 1
        try:
            await asyncio.sleep(HELD_S if seconds is None else seconds)
        finally:
            self._held -= 1


def _debt_s(bucket: Bucket) -> float:
    return bucket.wait_s(0, time.monotonic())


def _new_shares(now: float, burst_s: float) -> RequestBuckets:
    return RequestBuckets(Bucket(LOOP_SHARE, burst_s, now), Bucket(READING_SHARE, burst_s, now))


def _key(caller: Principal, address: str) -> str:
    return f"name {caller.name}" if caller.name else f"{ADDRESS}{address_group(address)}"


class Timed:
    """Awaits a coroutine, and takes the time that its steps keep the loop busy from a bucket, and the time that a store
    reads for it from another. If `is_paid` is given, only steps are paid, and as long as it says so."""

    def __init__(
        self, inner: Coroutine[Any, Any, None], buckets: RequestBuckets, is_paid: Callable[[], bool] | None = None
    ) -> None:
        self._inner, self._buckets, self._is_paid = inner, buckets, is_paid

    def __await__(self) -> Generator[Any, Any, None]:
        if self._is_paid is not None:
            yield from self._steps()
            return
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
            is_paid = self._is_paid is None or self._is_paid()  # once it is not, it never is again
            begun = time.thread_time() if is_paid else 0.0
            try:
                waited_for = give(value)
            except StopIteration:
                return
            finally:
                if is_paid and (self._is_paid is None or self._is_paid()):
                    bucket.take(time.thread_time() - begun)
            try:
                give, value = steps.send, (yield waited_for)
            except BaseException as error:  # noqa: BLE001 - it is the inner one's to handle
                give, value = steps.throw, error


async def paid_alike(inner: Coroutine[Any, Any, None]) -> None:
    """For a task that a request starts and waits for: its time is taken from the same buckets."""
    buckets = _PAYING.get()
    await (inner if buckets is None else Timed(inner, buckets))
