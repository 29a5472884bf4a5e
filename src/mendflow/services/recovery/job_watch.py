"""Watches for conditions that produce no event: a job that runs longer than expected, one that no pilot can take, one
that breaks a constraint while it runs.

Such conditions last, and are checked periodically. So each is reported once for each attempt and each rule that holds:
a rule that warns and its refinement that acts are applied one after the other, and neither twice."""

import asyncio
import logging
from collections.abc import Callable
from itertools import count
from typing import Final

import msgspec

from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.ids import CaseId, Instant, JobId, item_name
from mendflow.core.model.jobs import Job, JobState, Resources
from mendflow.core.model.repair import ExceptionEvent, ExceptionType
from mendflow.core.model.values import Value
from mendflow.core.recovery.ids import flow_job_id, generation_of, serial_of
from mendflow.core.scheduling.queue import WaitingGroup
from mendflow.services.base.background_tasks import BackgroundTasks, cancel_tasks
from mendflow.services.base.contracts import Clock
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.exception_facts import job_facts_of
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.intercepted_types import InterceptedFlows, InterceptedTypes, RulesChanged
from mendflow.services.cases.interception_points import InterceptionPoints
from mendflow.services.cases.live_case import LiveCase
from mendflow.services.cases.timers import Timers
from mendflow.services.recovery.exception_service import ExceptionService
from mendflow.services.scheduling.facts import AttemptHeartbeats, FarWaits
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.services.scheduling.waiting_reasons import WaitingReasons

log = logging.getLogger("mendflow.recovery")

CHECK_MS: Final = 5_000
NO_FLOW: Final = ""
ALIKE_JOBS_MAX: Final = 100
"""Of waiting jobs with the same needs, how many are checked each time."""

ABLE_CHECK_EVERY: Final = 6
"""Jobs that a pilot could take wait for their turn, and are checked only once in this many times."""


class ExceptionMonitor:
    def __init__(
        self,
        *,
        service: ExceptionService,
        manager: FlowManager,
        meta: PilotScheduler,
        interception_points: InterceptionPoints,
        ledger: Ledger,
        clock: Clock,
        hub: Hub,
        check_ms: int = CHECK_MS,
        is_pilot_coming: Callable[[Resources], bool] | None = None,
    ) -> None:
        self._service = service
        self._manager = manager
        self._meta = meta
        self._interception_points = interception_points
        self._ledger = ledger
        self._clock = clock
        self._check_ms = check_ms
        self._hub = hub
        self._timers = Timers(clock, self._on_timeout)
        self._looking: set[JobId] = set()
        self._task: asyncio.Task[None] | None = None
        self._background = BackgroundTasks(ledger)
        self._on_the_way = is_pilot_coming  # whether a pilot has been submitted that could take such a job
        self._violations = False  # whether any flow has rules for what happens while a job runs
        hub.subscribe(RulesChanged, lambda change: self._rules_changed(change.watched))
        hub.subscribe(AttemptHeartbeats, self._heartbeats)

    def _rules_changed(self, watched: InterceptedFlows) -> None:
        self._violations = any(ExceptionType.VIOLATION in types for types in (*watched.values(), watched[NO_FLOW]))

    def _heartbeats(self, heard: AttemptHeartbeats) -> None:
        for job in heard.jobs if self._violations else ():
            self.job_reported(job)

    def start(self) -> None:
        for job in self._meta.jobs.values():
            self.job_moved(job)
        self._timers.start()
        self._task = asyncio.create_task(self._watch_queue(), name="watches")

    async def stop(self) -> None:
        await self._timers.stop()
        await cancel_tasks(self._task)
        await self._background.stop()

    # A job that runs longer than expected

    def job_moved(self, job: Job) -> None:
        """The state of a job has changed. A job with an expected run time is watched from its start."""
        if job.spec.expected_ms and job.state is JobState.RUNNING and job.history:
            self._timers.set(CaseId(job.id), job.fence, job.history[-1].granted_at + job.spec.expected_ms)

    async def _on_timeout(self, id: CaseId, fence: int) -> None:
        job = self._meta.jobs.get(JobId(id))
        live = self._case_with_rules(job, ExceptionType.TIMEOUT) if job is not None else None
        if job is None or live is None or job.state is not JobState.RUNNING or job.fence != fence:
            return
        event = self._event(job, live, ExceptionType.TIMEOUT, {"timed_out": job.spec.item}, fence)
        with self._ledger.atomic():
            await self._service.tell(event)
            await self._interception_points.notify_parallel_items(live, job.spec.item, f"{job.id}:{fence}")

    # A job that breaks a constraint while it runs

    def job_reported(self, id: JobId) -> None:
        """A pilot has reported on a running job."""
        job = self._meta.jobs.get(id)
        if job is None or id in self._looking or self._case_with_rules(job, ExceptionType.VIOLATION) is None:
            return
        self._looking.add(id)
        self._background.start(self._check_violation(job))

    async def _check_violation(self, job: Job) -> None:
        try:
            live, running = self._case_with_rules(job, ExceptionType.VIOLATION), self._meta.running(job.id)
            if live is None or running is None:
                return
            measures: Value = msgspec.to_builtins(running.measures)
            facts = {"measures": {**_NO_MEASURES, **measures}, "values": running.values}
            with self._ledger.atomic():
                await self._service.tell_lasting(self._event(job, live, ExceptionType.VIOLATION, facts, job.fence))
        finally:
            self._looking.discard(job.id)

    # A job that nobody can take

    async def _watch_queue(self) -> None:
        for number in count(1):
            await self._clock.sleep(self._check_ms)
            try:
                await self._look_at_queue(number)
            except StoreUnavailable:
                return  # everything is loaded again
            except Exception:  # an error of one look must not stop those that follow
                log.exception("the rules could not be asked about waiting jobs; trying again")

    async def _look_at_queue(self, number: int) -> None:
        if any(ExceptionType.UNAVAILABLE in types for types in self._types()):
            for waiting in map(self._with_pilots_coming, self._meta.waiting()):
                if not waiting.has_pilot or number % ABLE_CHECK_EVERY == 0:
                    await self._tell_waiting(waiting)
            far = self._hub.provider(FarWaits)
            for job, since in far.stuck_jobs() if far is not None else ():
                await self._tell_stuck(job, since)

    async def _tell_stuck(self, job: Job, since: Instant) -> None:
        """A job that waits in another domain, where nobody can take it."""
        live, now = self._case_with_rules(job, ExceptionType.UNAVAILABLE), self._clock.now()
        if live is None:
            return
        waits_ms = max(0, now - job.available_at)
        facts: dict[str, Value] = {"able": False, "unable_ms": max(0, now - since), "waiting_ms": waits_ms}
        with self._ledger.atomic():
            await self._service.tell_lasting(self._event(job, live, ExceptionType.UNAVAILABLE, {}, job.fence, facts))

    def _with_pilots_coming(self, waiting: WaitingGroup) -> WaitingGroup:
        """If a pilot was submitted that can take the job, the job counts as waiting for its turn, however long that
        takes."""
        comes = not waiting.has_pilot and self._on_the_way is not None and self._on_the_way(waiting.needs)
        return msgspec.structs.replace(waiting, has_pilot=True) if comes else waiting

    async def _tell_waiting(self, waiting: WaitingGroup) -> None:
        """The longest wait first. If no rule holds for an item, none is asked for items of the same task that have
        waited less: a loop may have a great many."""
        in_vain, why = set[tuple[CaseId, str]](), ""
        like = [self._meta.jobs[id] for id in self._meta.queue.similar_jobs(waiting.first, ALIKE_JOBS_MAX)]
        for job in sorted(like, key=lambda each: each.available_at):
            live, alike = self._case_with_rules(job, ExceptionType.UNAVAILABLE), (job.case, item_name(job.spec.item))
            if live is None or alike in in_vain or job.id not in self._meta.jobs:
                continue
            why = why or self._why(job.id)  # jobs of like needs wait for the same
            now = self._clock.now()
            unable_ms = max(0, now - max(waiting.unable_since, job.created_at)) if not waiting.has_pilot else 0
            facts: dict[str, Value] = {
                "able": waiting.has_pilot,
                "unable_ms": unable_ms,
                "waiting_ms": max(0, now - job.available_at),
                "why": why,
            }
            event = self._event(job, live, ExceptionType.UNAVAILABLE, {}, job.fence, facts)
            with self._ledger.atomic():
                if not await self._service.tell_lasting(event):
                    in_vain.add(alike)

    def _why(self, job: JobId) -> str:
        """What the job asks for and what there is, as a sentence that is true of all jobs like it."""
        reasons = self._hub.provider(WaitingReasons)
        told = reasons.of(job, is_of_many=True) if reasons is not None else None
        return told.sentence if told is not None else ""

    # All of them

    def _types(self) -> list[InterceptedTypes]:
        watched = self._service.rules.types_by_flow
        return [*watched.values(), watched[""]]

    def _case_with_rules(self, job: Job, type: ExceptionType) -> LiveCase | None:
        """The job's case, if it has rules of this type."""
        live = self._manager.live.get(job.case)
        return live if live is not None and type in self._service.rules.types_by_flow[live.document.flow] else None

    def _event(
        self,
        job: Job,
        live: LiveCase,
        type: ExceptionType,
        facts: dict[str, Value],
        fence: int,
        more: dict[str, Value] | None = None,
    ) -> ExceptionEvent:
        last = job.history[-1] if job.history else None
        where: dict[str, Value] = {"pilot": last.pilot, "host": last.host, "site": last.site} if last else {}
        about: dict[str, Value] = {
            **job_facts_of(job.spec),
            **where,
            "id": flow_job_id(job.id),
            "attempts": job.tries,
            "failures": job.failures,
            "losses": job.losses,
            "generation": generation_of(job.id),
            "log_tail": self._meta.log_tail(job.id),
            **(more or {}),
        }
        if isinstance(measures := facts.get("measures"), dict):
            about |= {name: measures[name] for name in ("peak_bytes", "cpu_ms", "ran_ms")}
            about["memory_now_bytes"] = measures["memory_bytes"]
        return ExceptionEvent(
            id=f"{job.id}:{fence}/{type.value}",
            type=type,
            case=job.case,
            flow=live.document.flow,
            item=job.spec.item,
            task=item_name(job.spec.item),
            serial=serial_of(job.id),
            facts={"job": about, **facts},
            job=flow_job_id(job.id),
        )


_NO_MEASURES: Final[dict[str, Value]] = {"peak_bytes": 0, "cpu_ms": 0, "ran_ms": 0, "memory_bytes": 0}
