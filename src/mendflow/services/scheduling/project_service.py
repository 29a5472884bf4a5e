"""Projects as an administrator sets them: weights of the fair share, and quotas.

What jobs and cases hold of quotas stands in named limits (limit_service.py), whose counts are the quotas themselves.
Everything else stands in one document for each project, which is written last: it tells the other servers to read all
of it again."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from functools import cached_property
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound, QuotaExceeded, StoreUnavailable
from mendflow.core.model.ids import CaseId, Instant, JobId
from mendflow.core.model.jobs import Job, JobState
from mendflow.core.model.named_limits import LimitDocument, NamedLimits
from mendflow.core.model.principals import project_name_flaw
from mendflow.core.model.projects import (
    HELD_QUOTAS,
    FairShareSettings,
    ProjectDocument,
    ProjectSettings,
    ProjectView,
    QuotaKind,
    half_life_flaw,
    quota_name,
    settings_flaw,
)
from mendflow.core.scheduling.project_quotas import how_to_raise, quota_text, why_not_queued
from mendflow.lazy import LazyModule
from mendflow.services.base.background_tasks import cancel_tasks
from mendflow.services.base.cluster import Membership, first_case_of
from mendflow.services.base.contracts import TRIES, Clock
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.readable_documents import demand_readable, readable_by_id
from mendflow.services.scheduling.facts import JobMoved, JobQuotas
from mendflow.services.scheduling.limit_service import LimitService
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.services.scheduling.queue_admission import QueueAdmission
from mendflow.services.scheduling.quota_holds import SERVER_MARK, with_amount, without_servers
from mendflow.services.scheduling.stored_bytes import StoredBytes
from mendflow.services.scheduling.usage_service import UsageService
from mendflow.stores.contract import Store

if TYPE_CHECKING:
    from mendflow.services.scheduling import project_requests, project_views
else:
    project_requests = LazyModule("mendflow.services.scheduling.project_requests")
    project_views = LazyModule("mendflow.services.scheduling.project_views")

log = logging.getLogger("mendflow.projects")

PROJECT_KIND: Final = "project"
SHARE_KIND: Final = "fair-share"
SHARE_ID: Final = "settings"
LOOK_S: Final = 5.0
"""How often servers tell each other what was used."""
ADMIT_S: Final = 0.5
"""How often more of a quota of waiting jobs is asked for, where there is one."""
SPARE_PARTS: Final = 4
"""Beyond its waiting jobs a server holds this part of its equal part, so that the next ones need not wait for it."""

_decode = msgspec.json.Decoder(ProjectDocument).decode
_decode_share = msgspec.json.Decoder(FairShareSettings).decode


class ProjectService:
    """`count_bytes` finds how many bytes the stored files of a project take."""

    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        meta: PilotScheduler,
        limits: LimitService,
        membership: Membership,
        count_bytes: Callable[[str], Awaitable[int]],
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._meta = meta
        self._limits = limits
        self._membership = membership
        self.usage = UsageService(store=store, ledger=ledger, clock=clock, meta=meta, membership=membership)
        self._bytes = StoredBytes(limits, clock, membership, count_bytes)
        self._admission = QueueAdmission()
        self._documents: dict[str, ProjectDocument] = {}
        self.share = FairShareSettings()
        self._changes = asyncio.Event()
        self._settings_changed = asyncio.Event()
        self._is_loaded = False
        self._is_watching = False  # whether it matters what was used, or waits: not while there is one project
        self._task: asyncio.Task[None] | None = None
        meta.hub.provide(JobQuotas, self)
        meta.hub.subscribe(JobMoved, self._job_moved)

    async def read_shared(self) -> None:
        documents = await readable_by_id(self._store.scan(PROJECT_KIND), _decode)
        found = await self._store.get(SHARE_KIND, SHARE_ID)
        await self._limits.read_shared()
        self.share = _decode_share(found.body) if found is not None else FairShareSettings()
        self._use(documents)
        if not self._is_loaded:
            await self.usage.load()
            self._is_loaded = True
        self._is_watching = self._is_active()
        self._changes.set()
        self._settings_changed.set()

    def _use(self, documents: dict[str, ProjectDocument]) -> None:
        self._documents = documents
        settings = {name: each.settings for name, each in documents.items()}
        self._meta.queue_again(self.usage.shares.use_settings(settings, self.share.half_life_ms))

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="projects")

    async def stop(self) -> None:
        await cancel_tasks(self._task)

    # Jobs

    def uses(self, job: Job) -> NamedLimits:
        return self._limits.uses(job)

    def admits(self, job: Job) -> bool:
        admission = self._admission
        if not admission.allowed or admission.admits(job):
            return True
        self._changes.set()
        return False

    def _job_moved(self, fact: JobMoved) -> None:
        job = fact.job
        has_begun = self.usage.job_moved(job)
        if not self._is_watching:
            if has_begun and self.usage.is_shared:
                self._is_watching = True
                self._changes.set()
            return
        self._changes.set()
        if job.state is JobState.COMPLETED:
            self._bytes.job_ended(job)
        if self._admission.allowed and (job.state is not JobState.AVAILABLE or job.suspended):
            self._admission.left(job)
            self._admit(job.spec.project)

    def _admit(self, project: str) -> None:
        for job in self._admission.next(project):
            if self._meta.jobs.get(job.id) is job and job.state is JobState.AVAILABLE and not job.suspended:
                self._meta.enqueue(job)
            else:
                self._admission.left(job)

    def jobs_outside(self) -> dict[str, list[Job]]:
        """By project: the jobs that are not in the queue yet, because of its quota of waiting jobs."""
        return self._admission.outside()

    def why_not_queued(self, job: Job) -> str:
        """Why a job is not in the queue yet; empty if it is, or for another reason."""
        if not self._admission.is_outside(job):
            return ""
        document = self._quota(job.spec.project, "waiting-jobs")
        return why_not_queued(job.spec.project, document.count or 0 if document is not None else 0)

    def others_first(self, job: Job) -> int:
        """How many projects, or users of its own, go before a waiting job because they have had less of their share."""
        return len(self._meta.queue.accounts_first(job.id, self._clock.now()))

    # Cases

    async def admit(self, case: CaseId, project: str) -> None:
        if project not in self._limits.kinds:
            return
        is_called = first_case_of(case) != case
        if not is_called:  # one that has begun goes on with what it calls
            self._demand(project, "waiting-jobs", lambda document: document.count != 0)
            self._demand(project, "stored-bytes", lambda document: document.free > 0)
        full = await self._limits.take_case(case, project)
        if full is not None:
            raise _exceeded(project, "cases", full, is_called=is_called)

    def dismiss(self, case: CaseId, project: str) -> None:
        self._limits.case_ended(case, project)

    def _demand(self, project: str, kind: QuotaKind, has_room: Callable[[LimitDocument], bool]) -> None:
        document = self._quota(project, kind)
        if document is not None and not has_room(document):
            raise _exceeded(project, kind, document)

    def _quota(self, project: str, kind: QuotaKind) -> LimitDocument | None:
        document = self._limits.store.documents.get(quota_name(project, kind))
        return document if document is not None and document.count is not None else None

    # Requests

    @cached_property
    def _requests(self) -> "project_requests.ProjectRequests":
        return project_requests.ProjectRequests()

    def count_request(self, project: str) -> None:
        """Refused if members of the project have sent too many: all servers together answer its quota."""
        document = self._documents.get(project)
        per_s = document.settings.quotas.requests_per_s if document is not None else None
        if per_s is not None:
            servers = 1 + len(self._membership.live_servers())
            self._requests.take(project, per_s / servers, self._meta.steady_ms_now() / 1000)

    # In the background

    def _is_active(self) -> bool:
        """Whether it matters what was used, or what waits outside."""
        return bool(self._documents or self._limits.kinds or self._admission.allowed) or self.usage.is_shared

    async def _run(self) -> None:
        while True:
            try:
                await self._changes.wait()
                self._changes.clear()
                if self._is_active():
                    await self._look()
            except StoreUnavailable as error:
                self._ledger.give_up(error.message)
                return
            except Conflict as error:
                log.warning("%s", error.message)
            except Exception:  # without this loop no quota would ever be counted anew
                log.exception("the projects could not be looked after; trying again")
            await self._pause()

    async def _pause(self) -> None:
        try:
            await asyncio.wait_for(self._settings_changed.wait(), ADMIT_S if self._admission.allowed else LOOK_S)
        except TimeoutError:
            pass
        self._settings_changed.clear()
        self._is_watching = self._is_active()
        if self._is_watching and (self._limits.kinds or self._membership.live_servers() or self.usage.is_changed):
            self._changes.set()

    async def _look(self) -> None:
        await self.usage.look()
        await self._bytes.look()
        await self._share_waiting()

    async def _share_waiting(self) -> None:
        """Hold as much of each quota of waiting jobs as this server has jobs for, and a little more; while others hold
        some too, no more than an equal part. A server that is alone may use all of it."""
        live = [self._membership.id, *(each.id for each in self._membership.live_servers())]
        projects = [project for project, kinds in self._limits.kinds.items() if "waiting-jobs" in kinds]
        allowed = {project: await self._hold_waiting(project, live) for project in projects}
        if not allowed and not self._admission.allowed:
            return
        queued = [job for id, job in self._meta.jobs.items() if id in self._meta.queue]
        for job in self._admission.allow(allowed, queued):
            if self._meta.jobs.get(job.id) is job and job.state is JobState.AVAILABLE:
                self._meta.enqueue(job)
        for project in allowed:
            self._admit(project)

    async def _hold_waiting(self, project: str, live: list[str]) -> int:
        """How many jobs of the project this server may have in its queue."""
        now, mine = self._clock.now(), JobId(f"{SERVER_MARK}{live[0]}")
        queued, wanted = self._waiting_here(project)

        def changed(document: LimitDocument) -> LimitDocument:
            document = without_servers(document, live)
            count, held = document.count or 0, document.holds.get(mine)
            most = count if len(document.holds) == (held is not None) else -(-count // len(live))
            spare = 0 if len(live) == 1 else -(-count // (SPARE_PARTS * len(live)))
            room = max(0, document.free) + (held.amount if held is not None else 0)
            amount = max(queued, min(wanted + spare, room, most))
            return with_amount(document, live[0], amount, self._limits.grantor(), now)

        document = await self._limits.change_quota(quota_name(project, "waiting-jobs"), changed)
        held = document.holds.get(mine)
        if len(live) == 1:
            return document.count or 0
        return held.amount if held is not None else 0

    def _waiting_here(self, project: str) -> tuple[int, int]:
        """How many jobs of the project are in the queue, and how many with those outside."""
        if project in self._admission.allowed:
            return self._admission.queued(project), self._admission.waiting_jobs(project)
        waiting = sum(job.spec.project == project and id in self._meta.queue for id, job in self._meta.jobs.items())
        return waiting, waiting

    # For people

    async def look(self) -> None:
        """Read what other servers have said, if there are some."""
        if self._membership.live_servers():
            await self._limits.read_shared()
            await self.usage.look()

    def view(self, name: str) -> ProjectView:
        return self._views().of(name)

    def all(self, more: Collection[str] = ()) -> list[ProjectView]:
        """All projects that anything is known of; `more` are further ones."""
        names = {*self._documents, *self._limits.kinds, *self.usage.projects(), *more}
        return self._views().all(sorted(names))

    def _views(self) -> "project_views.ProjectViews":
        return project_views.ProjectViews(
            self._documents, self._limits.store.documents, self.usage.shares, self._clock.now()
        )

    async def set(self, name: str, settings: ProjectSettings, *, who: str) -> ProjectView:
        """Set what holds for a project. A quota below what is in use stops nothing, and nothing starts until enough has
        ended."""
        if flaw := project_name_flaw(name):
            raise InvalidRequest(flaw, field="name")
        field, flaw = settings_flaw(settings)
        if flaw:
            raise InvalidRequest(flaw, field=field)
        now = self._clock.now()
        await self._set_counts(name, settings, who, now)
        await self._put(name, ProjectDocument(name=name, settings=settings, set_by=who, set_at=now))
        return self.view(name)

    async def remove(self, name: str) -> ProjectView:
        """Nothing is set for the project any more: it has no quotas, and the weight 1."""
        await self.read_shared()
        if name not in self._documents:
            raise NotFound(f"nothing is set for project {name!r:.100}; `mendflow admin projects` lists what is")
        before = self.view(name)
        await self._set_counts(name, ProjectSettings(), "", 0)
        await self._put(name, None)
        return before

    async def set_share(self, settings: FairShareSettings) -> FairShareSettings:
        if flaw := half_life_flaw(settings.half_life_ms):
            raise InvalidRequest(flaw, field="half_life_ms")
        await self._write(SHARE_KIND, SHARE_ID, settings)
        await self.read_shared()
        return self.share

    async def _set_counts(self, name: str, settings: ProjectSettings, who: str, now: Instant) -> None:
        for kind in HELD_QUOTAS:
            count = settings.quotas.count_of(kind)

            def changed(document: LimitDocument, count: int | None = count) -> LimitDocument:
                if document.count == count:
                    return document
                return replace(document, count=count, project=name, set_by=who, set_at=now)

            await self._limits.change_quota(quota_name(name, kind), changed)

    async def _put(self, name: str, document: ProjectDocument | None) -> None:
        if document is not None:
            demand_readable(await self._store.get(PROJECT_KIND, name), _decode)
        await self._write(PROJECT_KIND, name, document)
        await self.read_shared()

    async def _write(self, kind: str, id: str, document: object) -> None:
        for _ in range(TRIES):
            found = await self._store.get(kind, id)
            if found is None and document is None:
                return
            version = found.version if found is not None else 0
            if await self._ledger.put_now(kind, id, document, version) is not None:
                return
        raise Conflict(f"{id} is changed by several at once, again and again; try again")


def _exceeded(project: str, kind: QuotaKind, document: LimitDocument, *, is_called: bool = False) -> QuotaExceeded:
    advice = {
        "cases": "call fewer at once (max-parallel)" if is_called else "wait until one has ended, or cancel one",
        "stored-bytes": "prune cases that are over",
        "waiting-jobs": "its jobs could not wait",
    }[kind]
    refused = "no case is called" if is_called else "no case is started"
    return QuotaExceeded(
        f"{refused}: {quota_text(project, kind, document)}; {advice}, or {how_to_raise(project, kind)}",
        project=project,
        quota=kind,
        used=document.used,
        limit=document.count,
    )
