"""The named limits of a server: its jobs take what they use before they are granted, and give it back when their
attempts have certainly ended.

What is in use stands in the store (limit_store.py). A hold outlives the server that wrote it: the pilot may still run
the job. So only the home of a job's case gives its hold back, because only that knows whether the attempt still runs:

- when the attempt was reported, or its lease is over;
- after a cancelled attempt, when its pilot no longer names it, or its lease would be over;
- when it finds a hold for a job that it does not run, for a whole lease: a server was killed between two writes.

The quotas of projects are limits too (quota_holds.py). Cases hold some of them in the same way, while they live."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound, StoreUnavailable
from mendflow.core.model.ids import CaseId, Instant, JobId, PilotId
from mendflow.core.model.jobs import Job, JobState
from mendflow.core.model.named_limits import (
    LimitDocument,
    LimitView,
    NamedLimits,
    limit_count_flaw,
    limit_name_flaw,
)
from mendflow.core.model.projects import is_quota_name, quota_name
from mendflow.core.model.sync import SyncRequest
from mendflow.core.scheduling.limit_decisions import Grantor, HoldRequest, why_limited
from mendflow.lazy import LazyModule
from mendflow.services.base.background_tasks import cancel_tasks
from mendflow.services.base.case_trees import CaseTrees, LiveCaseTable
from mendflow.services.base.cluster import first_case_of, root_of
from mendflow.services.base.contracts import Clock
from mendflow.services.base.homes import HomeRegistry
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.projects import kept_project
from mendflow.services.scheduling.case_quota import EndedCases, holds_enough, with_room, with_trees
from mendflow.services.scheduling.facts import JobMoved
from mendflow.services.scheduling.limit_demands import LimitDemands
from mendflow.services.scheduling.limit_store import LimitStore
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.services.scheduling.quota_holds import (
    SERVER_MARK,
    Kinds,
    names_of_job_quotas,
    quotas_set,
    uses_of,
    with_running,
)
from mendflow.stores.contract import Store

if TYPE_CHECKING:
    from mendflow.services.scheduling import limit_views
else:
    limit_views = LazyModule("mendflow.services.scheduling.limit_views")

log = logging.getLogger("mendflow.limits")

LOOK_EVERY_S: Final = 0.5
"""How often limits are read while jobs of this server wait for some."""
REST_S: Final = 5.0
"""How often while none waits."""


class CancelledAttempt(NamedTuple):
    """An attempt that its pilot has been told to stop, and may still be running until then, by the steady clock."""

    pilot: PilotId
    fence: int
    serial: int
    until: Instant


class EndedHold(NamedTuple):
    """The attempt of a job under this fence uses its limits no longer, or was never granted."""

    job: Job
    fence: int


class LimitService:
    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        meta: PilotScheduler,
        homes: HomeRegistry,
        live: CaseTrees | None = None,
    ) -> None:
        """`live` are the cases of this server."""
        self.store = LimitStore(store, ledger)
        self._ledger = ledger
        self._clock = clock
        self._meta = meta
        self._homes = homes
        self._live: CaseTrees = live if live is not None else LiveCaseTable()
        self.kinds: Kinds = {}
        self._ended_cases = EndedCases(self._live)
        self._lock = asyncio.Lock()
        self._changes = asyncio.Event()
        self._taking: set[JobId] = set()
        self._ended: dict[JobId, EndedHold] = {}
        self._cancelled: dict[JobId, CancelledAttempt] = {}
        self._orphans: dict[tuple[JobId, int], Instant] = {}  # holds whose attempt we do not know, since when
        self._demands = LimitDemands(self.store, meta.queue, homes, clock)
        self._has_read = False
        self._task: asyncio.Task[None] | None = None
        meta.hub.subscribe(JobMoved, self._job_moved)

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="limits")

    async def stop(self) -> None:
        await cancel_tasks(self._task)

    def grantor(self) -> Grantor:
        return Grantor(self._homes.server, self._meta.leases.lease_ms)

    async def read_shared(self) -> None:
        """Another server may have set a quota, or this one begins: no job is granted before it is known."""
        async with self._lock:
            await self.store.read_all()
            self._has_read = True
            self._show_levels()
        self._changes.set()

    # Granting

    def uses(self, job: Job) -> NamedLimits:
        """The named limits that a job uses while it runs, and the quotas of its project."""
        return uses_of(job, self.kinds) if self.kinds else job.spec.limits.named

    async def take(self, jobs: Sequence[Job]) -> frozenset[JobId]:
        """Those of these jobs that may start now: they hold what they use. Whoever asks says `granted` afterwards."""
        wanted = [
            HoldRequest(job=job.id, fence=job.fence + 1, named=self.uses(job), since=job.created_at) for job in jobs
        ]
        grantor = self.grantor()
        async with self._lock:
            self._taking.update(job.id for job in jobs)
            try:
                granted = await self.store.take(wanted, grantor, self._clock.now())
            except Conflict as error:
                log.warning("jobs wait on: %s", error.message)
                granted = frozenset()
            self._show_levels()
            for job in jobs:
                if job.id not in granted:
                    self._hide_levels(job)
        return granted

    def granted(self, jobs: Sequence[Job]) -> None:
        """These were taken for, and those that are not running were not granted after all."""
        for job in jobs:
            self._taking.discard(job.id)
            if job.state is not JobState.RUNNING:
                self._give_back(job, job.fence + 1)

    # What happens to jobs

    def _job_moved(self, fact: JobMoved) -> None:
        job = fact.job
        if not (self.kinds or job.spec.limits.named) or not self.uses(job):
            return
        if job.state is JobState.AVAILABLE and not job.fence:
            self._changes.set()  # it begins to wait
        elif job.state is not JobState.RUNNING and job.id not in self._taking:
            last = job.history[-1] if job.history else None
            if last is not None and last.end == "cancelled":
                until = self._meta.steady_ms_now() + max(self._meta.leases.lease_ms, last.lease_ms)
                self._cancelled[job.id] = CancelledAttempt(last.pilot, last.fence, last.serial, until)
            self._give_back(job, job.fence)

    def _give_back(self, job: Job, fence: int) -> None:
        self._ended[job.id] = EndedHold(job, fence)
        self._changes.set()

    def pilot_heard(self, pilot: PilotId, request: SyncRequest) -> None:
        """What a pilot does not name, and was told of, it does not run."""
        if not self._cancelled:
            return
        named = {(each.job, each.fence) for each in request.running}
        for id, attempt in list(self._cancelled.items()):
            if attempt.pilot == pilot and request.heard >= attempt.serial and (id, attempt.fence) not in named:
                del self._cancelled[id]
                self._changes.set()

    def why(self, job: Job) -> tuple[str, bool]:
        """Why the limits that a job uses let it wait, and whether only an administrator can change that."""

        def is_own(id: JobId) -> bool:  # jobs of other projects are not named to whoever waits
            return (other := self._meta.jobs.get(id)) is not None and other.spec.project == job.spec.project

        uses = self.uses(job)
        return why_limited(uses, self.store.documents, is_own) if uses else ("", False)

    # What happens to cases

    async def take_case(self, case: CaseId, project: str) -> LimitDocument | None:
        """Let the tree of a new case hold one more of the quota of its project; if it may not, that quota as it is."""
        if "cases" not in self.kinds.get(project, ()):
            return None
        tree, grantor = first_case_of(case), self.grantor()

        def changed(document: LimitDocument) -> LimitDocument:
            least = self._live.begun_in_tree(case) + 1
            most = max(least, self._live.in_tree(case))
            return with_room(document, tree, least=least, most=most, grantor=grantor, now=self._clock.now())

        document = await self.change_quota(quota_name(project, "cases"), changed)
        return None if holds_enough(document, tree, self._live.begun_in_tree(case) + 1) else document

    def case_ended(self, case: CaseId, project: str) -> None:
        """The case is over, or did not begin."""
        if "cases" in self.kinds.get(project, ()):
            self._ended_cases.add(case, project)
            self._changes.set()

    async def change_quota(self, name: str, new: Callable[[LimitDocument], LimitDocument]) -> LimitDocument:
        async with self._lock:
            changed = await self.store.change(name, new)
            self._show_levels()
        return changed

    # In the background

    async def _run(self) -> None:
        while True:
            try:
                await self._look()
            except StoreUnavailable as error:
                self._ledger.give_up(error.message)
                return
            except Conflict as error:
                log.warning("%s", error.message)
            except Exception:  # without this loop no limit would ever be given back
                log.exception("the limits could not be looked after; trying again")
                await asyncio.sleep(LOOK_EVERY_S)
                continue
            try:
                await asyncio.wait_for(self._changes.wait(), self._pause_s())
            except TimeoutError:
                continue

    def _pause_s(self) -> float | None:
        if self._demands.said or self._cancelled or self._ended or self._ended_cases:
            return LOOK_EVERY_S
        return REST_S if self.store.documents else None

    async def _look(self) -> None:
        self._changes.clear()
        await self._ledger.settled()
        async with self._lock:
            await self._give_back_ended()
            await self._give_back_cases()
            demands = self._demands.now()
            if self._has_read and not (demands or self._demands.said or self.store.documents):
                return
            await self.store.read_all()
            self._has_read = True
            self._note_quotas()
            await self._hold_unheld()
            await self._give_back_orphans()
            await self._demands.say(demands)
            self._show_levels()

    async def _give_back_ended(self) -> None:
        """Their ends are on disk. Whatever was granted anew meanwhile keeps what it holds."""
        now, steady = self._clock.now(), self._meta.steady_ms_now()
        for id, ended in list(self._ended.items()):
            job, fence = ended
            cancelled = self._cancelled.get(id)
            if cancelled is not None and steady < cancelled.until:
                continue  # its pilot may still run it
            self._cancelled.pop(id, None)
            if job.state is not JobState.RUNNING and id not in self._taking:
                await self.store.give_back(id, fence, [name for name, _ in self.uses(job)], now)
            if self._ended.get(id) is ended:  # not before it is written: otherwise the next look tries again
                del self._ended[id]

    async def _give_back_cases(self) -> None:
        for name, trees in self._ended_cases.trees().items():
            await self._hold_trees(name, trees)
            self._ended_cases.written(name, trees)

    async def _hold_trees(self, name: str, trees: Mapping[CaseId, int]) -> None:
        grantor, now = self.grantor(), self._clock.now()
        await self.store.change(name, lambda document: with_trees(document, trees, grantor, now))

    async def _hold_unheld(self) -> None:
        """A quota that was set a moment ago counts what runs and lives already."""
        if not self.kinds:
            return
        grantor, now = self.grantor(), self._clock.now()
        held = [id for pilot in self._meta.pilots.values() for id in pilot.held]
        jobs = [job for id in held if (job := self._meta.jobs.get(id)) is not None and job.spec.project in self.kinds]
        jobs = [job for job in jobs if job.state is JobState.RUNNING]
        for project, kinds in self.kinds.items():
            own = [job for job in jobs if job.spec.project == project]
            for name in names_of_job_quotas(project, self.kinds) if own else ():

                def running(document: LimitDocument, own: list[Job] = own) -> LimitDocument:
                    return with_running(document, own, self.kinds, grantor, now)

                await self.store.change(name, running)
            if "cases" in kinds:
                await self._hold_trees(quota_name(project, "cases"), self._live.trees(project))

    async def _give_back_orphans(self) -> None:
        """Holds of jobs that we decide about, and do not run; and of cases that no server has any more."""
        now, steady, found = self._clock.now(), self._meta.steady_ms_now(), set()
        for name, document in list(self.store.documents.items()):
            for job, hold in document.holds.items():
                if self._is_in_use(job) or job.startswith(SERVER_MARK):
                    continue
                key = (job, hold.fence)
                found.add(key)
                since = self._orphans.setdefault(key, steady)
                if steady - since < max(hold.lease_ms, self._meta.leases.lease_ms):
                    continue
                if self._homes.mine(root_of(job)) or not await self._homes.home_of(root_of(job), afresh=True):
                    log.info("limit %s: job %s, which does not run, gives back what it held", name, job)
                    await self.store.give_back(job, hold.fence, [name], now)
                else:
                    self._orphans[key] = steady  # its home knows, or whoever takes it over
        self._orphans = {key: since for key, since in self._orphans.items() if key in found}

    def _is_in_use(self, id: JobId) -> bool:
        job = self._meta.jobs.get(id)
        running = job is not None and job.state is JobState.RUNNING
        counted = running or id in self._taking or id in self._ended or self._homes.is_loading(id)
        return counted or self._live.in_tree(CaseId(id)) > 0

    # What is free

    def _show_levels(self) -> None:
        """Tell the queue what is free, and wake pilots if that is more than before."""
        levels = self._meta.queue.limits
        before = levels.free
        self._note_quotas()
        levels.free = {name: each.free for name, each in self.store.documents.items() if each.count is not None}
        if any(free > max(0, before.get(name, 0)) for name, free in levels.free.items()):
            self._meta.idle.wake()

    def _note_quotas(self) -> None:
        """Whoever set or removed a quota: the jobs that wait here ask for those that are set now."""
        kinds = quotas_set(self.store.documents.values())
        if kinds != self.kinds:
            changed = {each for each in {*kinds, *self.kinds} if kinds.get(each) != self.kinds.get(each)}
            self.kinds = kinds
            self._meta.queue_again(changed)

    def _hide_levels(self, job: Job) -> None:
        """A job was refused although all that it uses looks free: no other is tried before limits are read again."""
        levels, named = self._meta.queue.limits, self.uses(job)
        if levels.room(1).fits(named):
            for name, _ in named:
                levels.free[name] = 0

    # For people

    async def all(self) -> list[LimitView]:
        async with self._lock:
            await self.store.read_all()
        return self.views()

    def views(self) -> list[LimitView]:
        """The limits as they were last read, without the quotas of projects."""
        return [self._view(each) for name, each in self.store.documents.items() if not is_quota_name(name)]

    async def view(self, name: str) -> LimitView:
        limit_views.demand_no_quota(name)
        async with self._lock:
            return self._view(await self.store.get(name))

    async def set(self, name: str, count: int, *, who: str, project: str = "") -> LimitView:
        """Set how much there is of a limit. If that is less than is used, nothing is stopped, and nothing starts until
        enough was given back. One that is set stays in its project; refused if that is another than the given one."""
        if flaw := limit_name_flaw(name) or limit_count_flaw(count):
            raise InvalidRequest(flaw, field="count" if not limit_name_flaw(name) else "name")
        return await self._change(
            name,
            lambda before: replace(
                before,
                count=count,
                project=kept_project(f"limit {name}", before.project if before.count is not None else None, project),
                set_by=who,
                set_at=self._clock.now(),
            ),
        )

    async def remove(self, name: str) -> LimitView:
        """Nobody has set the limit any more: jobs that use it wait, and those that run go on."""
        limit_views.demand_no_quota(name)
        async with self._lock:
            found = await self.store.get(name)
        if found.count is None:
            raise NotFound(f"nobody has set the limit {name}")
        return await self._change(name, lambda before: replace(before, count=None, set_by="", set_at=0))

    async def _change(self, name: str, new: Callable[[LimitDocument], LimitDocument]) -> LimitView:
        async with self._lock:
            await self.store.read([name])
            changed = await self.store.change(name, new)
            self._show_levels()
        return self._view(changed)

    def _view(self, document: LimitDocument) -> LimitView:
        return limit_views.view_of(document, self._clock.now())
