"""A lean simulated pilot: it uses the product's exchange, and simulated attempts instead of processes.

It wakes up when an attempt ends, when an answer arrives, and for its heartbeat. An answer takes some time, and no
request is sent meanwhile, so that it requests exactly what it has room for."""

from collections import deque
from collections.abc import Callable

from mendflow.core.model.ids import JobId, PilotId
from mendflow.core.model.jobs import Measurements
from mendflow.core.model.sync import (
    Assignment,
    AttemptControl,
    AttemptOrder,
    AttemptReport,
    AttemptStatus,
    SyncAnswer,
    SyncRequest,
)
from mendflow.core.scheduling import prefetch
from mendflow.sim.grid.attempts import AttemptLocation, SimulatedAttempt
from mendflow.sim.grid.capacity import capacity_of
from mendflow.sim.grid.context import GridContext
from mendflow.sim.grid.scene import SiteScene

_NO_MEASURES = Measurements()
LEFT = "left"


class LeanPilot:
    """`submission` is its name in the batch system, `secret` what it got under that name; `ended` is called when it has
    left."""

    def __init__(
        self,
        context: GridContext,
        name: PilotId,
        site: SiteScene,
        host: str,
        *,
        submission: str = "",
        secret: str = "",
        ended: Callable[["LeanPilot"], None] | None = None,
    ) -> None:
        self.name = name
        self.host = host
        self.submission = submission
        self._secret = secret
        self._context = context
        self._site = site
        self._ended = ended
        self._cache = context.cache(name, host, site)
        if self._cache is not None:
            self._cache.changed = self._report_cache_change
        self._location = AttemptLocation(site, host, name, self._cache)
        self._capacity = capacity_of(site)
        self._attempts: dict[JobId, SimulatedAttempt] = {}
        self._ahead: deque[SimulatedAttempt] = deque()  # prefetched, not started
        self._reports: dict[JobId, AttemptReport] = {}
        self._serial = 0
        self._heard = 0
        self._reported_version = 0  # the cache version that the server knows once it has read the request in progress
        self._mean_ms: float | None = None
        self._is_exchanging = False  # a request that is answered at once is in progress
        self._idle_exit_s = site.idle_exit_s
        self._idle_since = 0.0
        self._is_leaving = ""
        self._ends_s = context.now_s + site.life_s if site.life_s else 0.0
        self._spoke_s = 0.0
        self._beat_s = context.scene.lease_ms / 3000
        before_beat_ms = context.scene.lease_ms * 3 // 10
        self._wait_ms = min(before_beat_ms, round(context.scene.hold_s * 1000)) or before_beat_ms

    def start(self) -> None:
        self._idle_since = self._context.now_s
        if self._ends_s:
            self._context.after(self._site.life_s, self.leave, "time")
        self._context.after(self._beat_s, self._beat)
        self._send_request()

    @property
    def site(self) -> str:
        return self._site.name

    # requests

    def _send_request(self) -> None:
        """Report what has ended and request jobs, unless an answer is in transit that may change both."""
        if self._is_exchanging or self._is_leaving == LEFT:
            return
        leaving, cache, context = bool(self._is_leaving), self._cache, self._context
        self._serial += 1
        self._spoke_s = now = context.now_s
        request = SyncRequest(
            pilot=self.name,
            serial=self._serial,
            host=self.host,
            site=self._site.name,
            capacity=self._capacity,
            want=0 if leaving else self._want(),
            heard=self._heard,
            ttl_ms=max(1, round((self._ends_s - now) * 1000)) if self._ends_s else 0,
            running=[AttemptStatus(each.job, each.fence, each.state, _NO_MEASURES) for each in self._attempts.values()],
            reports=list(self._reports.values()),
            leaving=leaving,
            leaves=self._is_leaving,
            wait_ms=0 if leaving else self._wait_ms,
            sent_at=round(now * 1000),
            cache=cache.news(self._reported_version) if cache is not None else None,
            cache_version=cache.version if cache is not None else 0,
            neighbours=cache.mark if cache is not None else 0,
            submission=self.submission,
            submission_secret=self._secret,
        )
        self._reported_version = request.cache_version
        self._is_exchanging = bool(request.reports) or leaving
        if leaving:
            self._end_all(LEFT)
        context.loop.create_task(self._exchange(request))

    async def _exchange(self, request: SyncRequest) -> None:
        context = self._context
        try:
            answer = await context.sync(request)
        except Exception as error:  # noqa: BLE001 - whatever it is, this world is not what it should be
            context.fail(error)
            return
        if request.serial == self._serial:
            self._is_exchanging = True
        context.after(context.scene.exchange_s, self._apply_answer, answer, request.leaving)

    def _report_cache_change(self) -> None:
        """Report new files, because jobs may wait for them. While it has a job itself, its next report is soon
        enough."""
        if not self._attempts:
            self._send_request()

    def _want(self) -> int:
        held = len(self._ahead)
        running = len(self._attempts) - held
        exchange_ms = self._context.scene.exchange_s * 1000
        free = self._site.slots - running
        return prefetch.jobs_wanted(
            slots=self._site.slots, free_slots=free, held=held, mean_ms=self._mean_ms, exchange_ms=exchange_ms
        )

    def _beat(self) -> None:
        """Send a heartbeat three times per lease."""
        if self._is_leaving:
            return
        left_s = self._spoke_s + self._beat_s - self._context.now_s
        if left_s <= 0:
            self._send_request()
            left_s = self._beat_s
        self._context.after(left_s, self._beat)

    # answers

    def _apply_answer(self, answer: SyncAnswer, goodbye: bool) -> None:
        if goodbye:
            self._leave_now()
        if self._is_leaving == LEFT:
            return
        if answer.lease_ms and answer.serial > self._heard:
            self._heard = answer.serial
            self._follow_orders(answer)
        if answer.serial == self._serial:
            self._is_exchanging = False
            if self._reports or self._is_leaving or self._context.scene.attentive or self._want() > 0:
                self._send_request()

    def _follow_orders(self, answer: SyncAnswer) -> None:
        if self._cache is not None:
            if answer.serial == self._serial:
                self._reported_version = answer.cache_seen
            if answer.neighbours is not None:
                self._cache.set_neighbours(answer.neighbours, answer.neighbours_mark)
            if answer.holders:
                self._cache.set_holders(answer.holders)
        for ref in (*answer.accepted, *answer.refused):
            self._reports.pop(ref.job, None)
        for ref in answer.lost:
            self._drop(ref.job, "lost")
        for order in answer.orders:
            self._follow(order)
        if answer.idle_exit_ms:
            self._idle_exit_s = answer.idle_exit_ms / 1000
        for assignment in answer.jobs:
            self._take(assignment)
        if not self._attempts:
            self._schedule_idle_exit()

    def _take(self, given: Assignment) -> None:
        attempt = SimulatedAttempt(self._context, self._location, given.job, given.fence, given.spec, self._over)
        self._attempts[given.job] = attempt
        self._ahead.append(attempt)
        self._fill()

    def _fill(self) -> None:
        """Start attempts in free slots."""
        while self._ahead and len(self._attempts) - len(self._ahead) < self._site.slots:
            self._ahead.popleft().begin()

    def _over(self, attempt: SimulatedAttempt) -> None:
        assert attempt.outcome is not None
        del self._attempts[attempt.job]
        self._reports[attempt.job] = AttemptReport(attempt.job, attempt.fence, attempt.outcome)
        measures = attempt.outcome.measures
        took_ms = measures.stage_in_ms + measures.ran_ms + measures.stage_out_ms
        self._mean_ms = prefetch.updated_mean_ms(self._mean_ms, took_ms)
        self._idle_since = self._context.now_s
        self._fill()
        self._send_request()

    def _follow(self, order: AttemptOrder) -> None:
        attempt = self._attempts.get(order.job)
        if attempt is None or attempt.fence != order.fence:
            return
        if order.control is AttemptControl.CANCEL:
            self._drop(order.job, "cancelled")
        elif order.control is AttemptControl.SUSPEND:
            attempt.suspend()
        else:
            attempt.resume()

    def _drop(self, job: JobId, why: str) -> None:
        attempt = self._attempts.pop(job, None)
        if attempt is None:
            return
        attempt.stop(why)
        if attempt in self._ahead:
            self._ahead.remove(attempt)
        self._idle_since = self._context.now_s
        self._fill()

    # leaving

    def _schedule_idle_exit(self) -> None:
        """Leave if no job comes for this long."""
        if self._idle_exit_s:
            self._context.after(self._idle_exit_s, self._leave_if_idle, self._idle_since)

    def _leave_if_idle(self, since: float) -> None:
        if since == self._idle_since and not self._attempts and not self._is_leaving:
            self.leave("idle")

    def leave(self, why: str) -> None:
        """End what runs and deregister. Running attempts are named once more, so that the server knows they had
        started."""
        if self._is_leaving:
            return
        self._is_leaving = why
        self._send_request()

    def _end_all(self, why: str) -> None:
        self._ahead.clear()
        for job in list(self._attempts):
            self._drop(job, why)

    def _leave_now(self) -> None:
        self._end_all(LEFT)
        self._is_leaving = LEFT
        self._context.caches.pop(self.name, None)
        if self._ended is not None:
            self._ended(self)

    def kill(self) -> None:
        """It is killed from outside, without a report."""
        if self._is_leaving != LEFT:
            self._leave_now()
