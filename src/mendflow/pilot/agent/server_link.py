"""The exchange with the server: when to send a request, and what an answer means for the lease.

While the server holds one request open, news goes out at once on a second connection. While a request with reports is
in progress, further news is batched for the next. So a single job is reported without delay, and under load each
exchange carries everything since the last."""

import asyncio
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn, Protocol

import msgspec

from mendflow.core.model.data import CacheUpdate, Holder, Neighbour
from mendflow.core.model.sync import SYNC_VERSION, Capacity, SyncAnswer
from mendflow.pilot.agent.agent import Agent
from mendflow.pilot.agent.http import ExchangeClient, ServerAway, ServerRefused
from mendflow.pilot.slot.lease import boot_ms, wall_ms
from mendflow.pilot.slot.messages import RawRequest

log = logging.getLogger("mendflow.pilot")

SYNC_PATH = "/api/v1/pilots/sync"
FIRST_WAIT_MS = 1_000
WAIT_MS_MAX = 5_000
LINGER_MS = 3
GATHER_MS = 15
"""While enough work is queued, news is batched for this long."""

PATIENCE_MS = 10
"""The server answers a request with reports at once; after this long without an answer, another request may follow."""

MOVE_AFTER_MS = 1_000
"""Switch to another server when this one has been away for this long, or for a sixth of the lease."""

ANSWER_MS = 10_000
BACKOFF_MS_MAX = 1_000
REFUSED_MS_MAX = 5_000
"""A pilot that can find its server elsewhere treats a refusal as final only after this long."""

LIVE_MS = 300
"""A running job's reported values are sent this long after the last request, unless another request carries them
sooner."""

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(SyncAnswer)


def _advice(error: ServerRefused) -> str:
    """Advice to append: get a token, or one of another role; empty if the server's message says so already."""
    if error.status == 401:
        return ". Give the pilot a token of the role pilot, by MENDFLOW_TOKEN or --token-file FILE."
    if "the roles" in str(error):
        return ". A pilot needs a token of the role pilot: mendflow admin tokens create NAME --role pilot makes one."
    return ""


class PilotRefused(Exception):
    """The server refuses this pilot; retrying is useless."""


@dataclass(slots=True)
class PendingExchange:
    """A request in progress. A `quiet` one carries no report, and the server may hold it. Its answer renews only
    attempts that it names; an attempt that arrived after it was sent is leased from `counts_from` on."""

    serial: int
    sent_at: int
    counts_from: int
    want: int
    quiet: bool
    reports: frozenset[tuple[str, int]]
    cache_version: int = 0  # the cache version that the server knows once it has read this


class CacheReporter(Protocol):
    """What the server is told of the caches of the pilot and of its neighbours."""

    mark: int  # version of the list of neighbours that it knows

    @property
    def version(self) -> int: ...

    def news(self, seen: int) -> CacheUpdate | None:
        """The changes since that version; None if there are none."""
        ...

    def set_neighbours(self, neighbours: list[Neighbour], mark: int) -> None:
        """Set the pilots whose caches may be used."""
        ...

    def set_holders(self, holders: list[Holder]) -> None:
        """Set which pilots have the inputs of the jobs in the same answer."""
        ...


class OtherServers(Protocol):
    """The other servers that a pilot knows."""

    mark: int

    def set_urls(self, urls: list[str]) -> None:
        """Set the list of servers."""
        ...

    def move_on(self) -> bool:
        """Switch to the next server; False if there is no other."""
        ...


class ServerLink:
    def __init__(
        self,
        agent: Agent,
        exchanges: ExchangeClient,
        *,
        pilot: str,
        site: str,
        capacity: Capacity,
        first_serial: int,
        life_left_ms: Callable[[], int],
        find_server: Callable[[], bool] | None = None,
        others: OtherServers | None = None,
        host: str = "",
        storage: str = "",
        submission: str = "",
        submission_secret: str = "",
        unfit: str = "",
        caches: CacheReporter | None = None,
        boot_ms: Callable[[], int] = boot_ms,
        wall_ms: Callable[[], int] = wall_ms,
    ) -> None:
        """`find_server` looks where the server is now, and says whether it has moved. `host` is this machine if not
        given, and `boot_ms` its clock; `wall_ms` is the one that its slots measure jobs by. `storage`,
        `submission` with its secret, and `unfit` are what a pilot says of itself in each request."""
        self._boot_ms = boot_ms
        self._wall_ms = wall_ms
        self._agent = agent
        self._exchanges = exchanges
        self._pilot, self._site, self._capacity = pilot, site, capacity
        self._host = host or socket.gethostname()
        self._storage, self._unfit = storage, unfit
        self._submission, self._submission_secret = submission, submission_secret
        self._caches = caches
        self._cache_seen = 0
        self._serial = first_serial
        self._heard = 0
        self._life_left_ms = life_left_ms
        self._find_server = find_server
        self._others = others
        self._pending: list[PendingExchange] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._exchange_ms = 4.0
        self._lease_ms = 0
        self._answered_at = 0
        self._spoke_at = 0
        self._not_before = 0
        self._backoff_ms = 0
        self._refusal: PilotRefused | None = None
        self._said_away = False
        self.away_since = 0
        self.idle_exit_ms = 0  # in the unit that the server asks for; 0: as at the start

    async def run_exchanges(self) -> NoReturn:
        """Exchange requests until cancelled, or until the server refuses this pilot."""
        while True:
            if self._refusal is not None:
                raise self._refusal
            self._agent.changed.clear()
            delay_ms = self._delay_ms(self._boot_ms())
            if delay_ms == 0:
                self._send_request(leaving=False)
                await asyncio.sleep(0)
                continue
            changed = self._agent.changed
            alarm = None if delay_ms is None else asyncio.get_running_loop().call_later(delay_ms / 1000, changed.set)
            await changed.wait()
            if alarm is not None:
                alarm.cancel()

    def _delay_ms(self, now: int) -> int | None:
        """Milliseconds until the next request; None: not before something changes."""
        if now < self._not_before:
            return self._not_before - now
        if len(self._pending) >= 2:
            return None
        gathered_at = self._spoke_at + GATHER_MS if self._agent.is_well_supplied else now
        if not self._pending:
            if self._agent.attempts.reports or not self._agent.expects_reports_soon:
                return max(0, gathered_at - now)
            return max(0, self._answered_at + LINGER_MS - now)
        exchange = self._pending[0]
        if not self._has_news(exchange):
            live = self._agent.has_live_news or (
                self._caches is not None and self._caches.version != self._reported_version
            )
            return max(0, self._spoke_at + LIVE_MS - now) if live else None
        return max(0, (gathered_at if exchange.quiet else exchange.sent_at + PATIENCE_MS) - now)

    def _has_news(self, exchange: PendingExchange) -> bool:
        """Whether there is news that the request in progress does not carry."""
        if any(key not in exchange.reports for key in self._agent.attempts.reports):
            return True
        if self._agent.has_new_state or self._agent.live_logs.has_parts:
            return True
        if exchange.want == 0:
            return self._agent.jobs_wanted(self._exchange_ms) > 0
        return self._agent.wants_no_more and self._agent.jobs_wanted(self._exchange_ms) == 0

    def _send_request(self, *, leaving: bool, why: str = "") -> "asyncio.Task[None]":
        attempts = self._agent.attempts
        self._serial += 1
        request = RawRequest(
            pilot=self._pilot,
            serial=self._serial,
            host=self._host,
            site=self._site,
            capacity=self._capacity,
            want=0 if leaving else self._agent.jobs_wanted(self._exchange_ms),
            ttl_ms=self._life_left_ms(),
            running=[] if leaving else attempts.heartbeats(),
            reports=list(attempts.reports.values()),
            leaving=leaving,
            wait_ms=0 if leaving else self._wait_ms(),
            heard=self._heard,
            version=SYNC_VERSION,
            taken=attempts.resources_in_use() if self._has_other_servers else None,
            knows=self._others.mark if self._others is not None else 0,
            sent_at=self._wall_ms(),
            storage=self._storage,
            submission=self._submission,
            submission_secret=self._submission_secret,
            unfit=self._unfit,
            paused=self._agent.paused_by,
            leaves=why,
            cache=self._cache_news(),
            cache_version=self._caches.version if self._caches is not None else 0,
            neighbours=self._caches.mark if self._caches is not None else 0,
            logs=self._agent.live_logs.take_parts(),
        )
        self._agent.has_new_state = self._agent.has_live_news = False
        reports = frozenset(attempts.reports)
        self._spoke_at = self._boot_ms()
        exchange = PendingExchange(self._serial, self._spoke_at, self._spoke_at, request.want, not reports, reports)
        exchange.cache_version = request.cache_version
        self._pending.append(exchange)
        task = asyncio.get_running_loop().create_task(
            self._exchange(exchange, _ENCODER.encode(request), request.wait_ms)
        )
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)
        return task

    @property
    def _reported_version(self) -> int:
        """The cache version that the server knows, or will know once it has read the request in progress."""
        return max((exchange.cache_version for exchange in self._pending), default=self._cache_seen)

    def _cache_news(self) -> CacheUpdate | None:
        return self._caches.news(self._reported_version) if self._caches is not None else None

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error(
                "background task %s failed: %s", getattr(task.get_coro(), "__qualname__", "?"), error, exc_info=error
            )
            self._on_failure(error, self._boot_ms())

    @property
    def _has_other_servers(self) -> bool:
        """Whether there are other servers to switch to and to get jobs from."""
        return self._others is not None and self._others.mark != 0

    def _wait_ms(self) -> int:
        """How long the server may hold its answer: a third of the lease, so that two requests in a row may be lost;
        less if there is time to switch to another server."""
        if not self._lease_ms:
            return FIRST_WAIT_MS
        return min(self._lease_ms // (6 if self._has_other_servers else 3), WAIT_MS_MAX)

    def _patience_ms(self) -> int:
        """How long an answer may take beyond the time that it is held."""
        if not self._lease_ms:
            return ANSWER_MS
        return min(
            ANSWER_MS, max(self._lease_ms // 6, 500) if self._has_other_servers else max(self._lease_ms // 3, 1_000)
        )

    async def _exchange(self, exchange: PendingExchange, body: bytes, wait_ms: int) -> None:
        try:
            answer = _DECODER.decode(await self._exchanges.post(body, (wait_ms + self._patience_ms()) / 1000))
        except (ServerAway, ServerRefused, msgspec.MsgspecError) as error:
            self._on_failure(error, min(self._boot_ms(), exchange.sent_at + wait_ms))
            self._agent.attempts.resend_all()
        else:
            self._on_answer(exchange, answer)
        finally:
            self._pending.remove(exchange)
            self._agent.changed.set()

    def _on_failure(self, error: BaseException, since: int) -> None:
        """Handle a missing answer, expected since `since`."""
        now = self._boot_ms()
        self.away_since = self.away_since or since
        if self._find_server is not None and self._find_server():
            self._backoff_ms, self._not_before = 0, now
            return
        final = (self._find_server is None and not self._has_other_servers) or now - self.away_since > REFUSED_MS_MAX
        if final and isinstance(error, ServerRefused) and error.status in (401, 403):
            self._refusal = PilotRefused(f"{error}{_advice(error)}")
        if self._backoff_ms and not self._said_away:  # a connection may well end; a server that is there takes the next
            self._said_away = True
            log.warning("the server is away (%s); jobs go on while their lease holds", error)
        self._backoff_ms = min(max(self._backoff_ms * 2, 50), BACKOFF_MS_MAX)
        self._not_before = now + self._backoff_ms
        self._move_on(now)

    def _move_on(self, now: int) -> None:
        """Try the next server if this one has been away long enough. Pauses grow from round to round; within a round
        there is no pause, because the lease runs on."""
        patience_ms = min(MOVE_AFTER_MS, self._lease_ms // 6) if self._lease_ms else MOVE_AFTER_MS
        if self._others is not None and now - self.away_since >= patience_ms and self._others.move_on():
            self._backoff_ms = min(self._backoff_ms, patience_ms // 2)
            self._not_before = min(self._not_before, now + self._backoff_ms)

    def _on_answer(self, exchange: PendingExchange, answer: SyncAnswer) -> None:
        if self._said_away:
            self._said_away = False
            log.warning("the server is back after %.1f s", (self._boot_ms() - self.away_since) / 1000)
        self.away_since = self._backoff_ms = self._not_before = 0
        if answer.servers and self._others is not None:
            self._others.set_urls(answer.servers)
        if exchange.serial < self._heard or not answer.lease_ms:
            if not answer.lease_ms:  # the server had read a later request and ignored this one
                self._agent.attempts.resend_all()
                self._agent.has_live_news = True
            self._agent.apply_late_answer(answer)
            return
        self._heard = exchange.serial
        if self._caches is not None:
            self._update_caches(self._caches, answer)
        self._answered_at = self._boot_ms()
        self._lease_ms = answer.lease_ms
        self.idle_exit_ms = answer.idle_exit_ms or self.idle_exit_ms
        self._renew(exchange, answer)
        if not exchange.quiet:
            self._exchange_ms += 0.2 * (min(self._answered_at - exchange.sent_at, 50) - self._exchange_ms)
        self._agent.apply_answer(answer)

    def _update_caches(self, caches: CacheReporter, answer: SyncAnswer) -> None:
        self._cache_seen = answer.cache_seen
        if answer.neighbours is not None:
            caches.set_neighbours(answer.neighbours, answer.neighbours_mark)
        if answer.holders:
            caches.set_holders(answer.holders)

    def _renew(self, exchange: PendingExchange, answer: SyncAnswer) -> None:
        """Renew the lease: one end for all attempts, no later than the earliest that was promised for any."""
        if not answer.unclaimed:
            self._agent.lease.renew(sent_at=exchange.counts_from, lease_ms=answer.lease_ms)
        if answer.jobs:
            for other in self._pending:
                other.counts_from = min(other.counts_from, exchange.sent_at)

    async def deregister(self, patience_ms: int, why: str) -> bool:
        """Send the last reports and the reason for leaving; False if no server could be reached."""
        give_up_at = self._boot_ms() + patience_ms
        while self._boot_ms() < give_up_at:
            heard = self._heard
            await asyncio.wait([self._send_request(leaving=True, why=why)], timeout=patience_ms / 1000)
            if self._heard > heard and not self._agent.attempts.reports:
                return True
            await asyncio.sleep(0.1)
        return not self._agent.attempts.all

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._exchanges.close()
