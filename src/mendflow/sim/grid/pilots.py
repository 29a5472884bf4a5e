"""A lean pilot: it speaks the product's exchange, and has courses of attempts instead of processes.

It wakes up when an attempt ends, when an answer comes, and for its heartbeat, and otherwise does nothing. An answer is
heard some time after it was given, and no request is sent meanwhile: so what it asks for is what it has room for."""

from collections import deque
from collections.abc import Callable

from mendflow.core.model.ids import JobId, PilotId
from mendflow.core.model.jobs import Measures
from mendflow.core.model.sync import Assignment, Beat, Control, Order, Report, SyncAnswer, SyncRequest
from mendflow.core.scheduling import batch
from mendflow.sim.grid.courses import Course, Spot
from mendflow.sim.grid.fitting import capacity_of
from mendflow.sim.grid.ground import Ground
from mendflow.sim.grid.scene import SiteScene

_NO_MEASURES = Measures()
LEFT = "left"


class LeanPilot:
    """`submission` is the name under which a batch system has it, `ended` is told when it has left."""

    def __init__(
        self,
        ground: Ground,
        name: PilotId,
        site: SiteScene,
        host: str,
        *,
        submission: str = "",
        ended: Callable[["LeanPilot"], None] | None = None,
    ) -> None:
        self.name = name
        self.host = host
        self.submission = submission
        self._ground = ground
        self._site = site
        self._ended = ended
        self._cache = ground.cache(name, host, site)
        if self._cache is not None:
            self._cache.changed = self._tell_of_cache
        self._spot = Spot(site, host, name, self._cache)
        self._capacity = capacity_of(site)
        self._courses: dict[JobId, Course] = {}
        self._ahead: deque[Course] = deque()  # fetched, and not begun
        self._reports: dict[JobId, Report] = {}
        self._serial = 0
        self._heard = 0
        self._cache_told = 0  # the version that the server knows once it has read what is on its way
        self._mean_ms: float | None = None
        self._talking = False  # a request is under way that is answered at once, or its answer is
        self._idle_exit_s = site.idle_exit_s
        self._idle_since = 0.0
        self._leaves = ""
        self._ends_s = ground.now_s + site.life_s if site.life_s else 0.0
        self._spoke_s = 0.0
        self._beat_s = ground.scene.lease_ms / 3000
        before_beat_ms = ground.scene.lease_ms * 3 // 10
        self._wait_ms = min(before_beat_ms, round(ground.scene.hold_s * 1000)) or before_beat_ms

    def start(self) -> None:
        self._idle_since = self._ground.now_s
        if self._ends_s:
            self._ground.after(self._site.life_s, self.leave, "time")
        self._ground.after(self._beat_s, self._beat)
        self._speak()

    @property
    def site(self) -> str:
        return self._site.name

    # speaking

    def _speak(self) -> None:
        """Say what has ended and what is wanted, unless an answer is on its way that may change both."""
        if self._talking or self._leaves == LEFT:
            return
        leaving, cache, ground = bool(self._leaves), self._cache, self._ground
        self._serial += 1
        self._spoke_s = now = ground.now_s
        request = SyncRequest(
            pilot=self.name,
            serial=self._serial,
            host=self.host,
            site=self._site.name,
            capacity=self._capacity,
            want=0 if leaving else self._want(),
            heard=self._heard,
            ttl_ms=max(1, round((self._ends_s - now) * 1000)) if self._ends_s else 0,
            running=[Beat(each.job, each.fence, each.state, _NO_MEASURES) for each in self._courses.values()],
            reports=list(self._reports.values()),
            leaving=leaving,
            leaves=self._leaves,
            wait_ms=0 if leaving else self._wait_ms,
            sent_at=round(now * 1000),
            cache=cache.news(self._cache_told) if cache is not None else None,
            cache_version=cache.version if cache is not None else 0,
            neighbours=cache.mark if cache is not None else 0,
            submission=self.submission,
        )
        self._cache_told = request.cache_version
        self._talking = bool(request.reports) or leaving
        if leaving:
            self._end_all(LEFT)
        ground.loop.create_task(self._exchange(request))

    async def _exchange(self, request: SyncRequest) -> None:
        ground = self._ground
        try:
            answer = await ground.sync(request)
        except Exception as error:  # noqa: BLE001 - whatever it is, this world is not what it should be
            ground.fail(error)
            return
        if request.serial == self._serial:
            self._talking = True
        ground.after(ground.scene.exchange_s, self._hear, answer, request.leaving)

    def _tell_of_cache(self) -> None:
        """Jobs may wait for what it has now. While it has one itself, its next report is soon enough."""
        if not self._courses:
            self._speak()

    def _want(self) -> int:
        held = len(self._ahead)
        running = len(self._courses) - held
        exchange_ms = self._ground.scene.exchange_s * 1000
        free = self._site.slots - running
        return batch.want(
            slots=self._site.slots, free_slots=free, held=held, mean_ms=self._mean_ms, exchange_ms=exchange_ms
        )

    def _beat(self) -> None:
        """Nobody is forgotten who speaks three times in a lease."""
        if self._leaves:
            return
        left_s = self._spoke_s + self._beat_s - self._ground.now_s
        if left_s <= 0:
            self._speak()
            left_s = self._beat_s
        self._ground.after(left_s, self._beat)

    # hearing

    def _hear(self, answer: SyncAnswer, goodbye: bool) -> None:
        if goodbye:
            self._go()
        if self._leaves == LEFT:
            return
        if answer.lease_ms and answer.serial > self._heard:
            self._heard = answer.serial
            self._obey(answer)
        if answer.serial == self._serial:
            self._talking = False
            if self._reports or self._leaves or self._ground.scene.attentive or self._want() > 0:
                self._speak()

    def _obey(self, answer: SyncAnswer) -> None:
        if self._cache is not None:
            if answer.serial == self._serial:
                self._cache_told = answer.cache_seen
            if answer.neighbours is not None:
                self._cache.hear(answer.neighbours, answer.neighbours_mark)
            if answer.holders:
                self._cache.hear_of(answer.holders)
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
        if not self._courses:
            self._stay_or_go()

    def _take(self, given: Assignment) -> None:
        course = Course(self._ground, self._spot, given.job, given.fence, given.spec, self._over)
        self._courses[given.job] = course
        self._ahead.append(course)
        self._fill()

    def _fill(self) -> None:
        """Begin what there is a slot for."""
        while self._ahead and len(self._courses) - len(self._ahead) < self._site.slots:
            self._ahead.popleft().begin()

    def _over(self, course: Course) -> None:
        assert course.outcome is not None
        del self._courses[course.job]
        self._reports[course.job] = Report(course.job, course.fence, course.outcome)
        measures = course.outcome.measures
        took_ms = measures.stage_in_ms + measures.ran_ms + measures.stage_out_ms
        self._mean_ms = batch.mean_after(self._mean_ms, took_ms)
        self._idle_since = self._ground.now_s
        self._fill()
        self._speak()

    def _follow(self, order: Order) -> None:
        course = self._courses.get(order.job)
        if course is None or course.fence != order.fence:
            return
        if order.control is Control.CANCEL:
            self._drop(order.job, "cancelled")
        elif order.control is Control.SUSPEND:
            course.suspend()
        else:
            course.resume()

    def _drop(self, job: JobId, why: str) -> None:
        course = self._courses.pop(job, None)
        if course is None:
            return
        course.stop(why)
        if course in self._ahead:
            self._ahead.remove(course)
        self._idle_since = self._ground.now_s
        self._fill()

    # leaving

    def _stay_or_go(self) -> None:
        """It has no job. If none comes for so long, it leaves."""
        if self._idle_exit_s:
            self._ground.after(self._idle_exit_s, self._look_at_the_clock, self._idle_since)

    def _look_at_the_clock(self, since: float) -> None:
        if since == self._idle_since and not self._courses and not self._leaves:
            self.leave("idle")

    def leave(self, why: str) -> None:
        """End what runs, and say goodbye. What is running is named once more, so that the server knows it had begun."""
        if self._leaves:
            return
        self._leaves = why
        self._speak()

    def _end_all(self, why: str) -> None:
        self._ahead.clear()
        for job in list(self._courses):
            self._drop(job, why)

    def _go(self) -> None:
        self._end_all(LEFT)
        self._leaves = LEFT
        self._ground.caches.pop(self.name, None)
        if self._ended is not None:
            self._ended(self)

    def kill(self) -> None:
        """It is ended from outside, and tells nobody."""
        if self._leaves != LEFT:
            self._go()
