"""The pilot monitor: looks at each site periodically, and submits as many pilots as the site should have.

A look reads the site's document, asks the batch system for the jobs with our names, compares the pilots that are
connected, and decides (core/scheduling). The decision is written at the version that was read, and only then carried
out: so of several servers that look at the same time one acts, and what a server had written when it was killed, the
next one finds. One server looks at a site at a time, chosen by name; that only saves work, and correctness does not
depend on it.

Sites are independent: one whose batch system hangs does not delay the others."""

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from typing import Literal

import msgspec

from mendflow.core.model.errors import RequestError, StoreUnavailable
from mendflow.core.model.ids import Instant
from mendflow.core.model.jobs import Resources
from mendflow.core.model.sites import (
    BatchJobStatus,
    BatchSystemUnavailable,
    PilotOffer,
    PilotSubmission,
    Purpose,
    SiteDocument,
    SubmitResult,
)
from mendflow.core.model.sync import LEAVE_REASONS, SyncRequest
from mendflow.core.scheduling import submissions, surplus
from mendflow.core.scheduling.provision import JobGroup, ProvisionPlan, SitePilots, plan
from mendflow.core.scheduling.site_fit import missing_for
from mendflow.core.scheduling.submissions import SiteObservation
from mendflow.services.base.background_tasks import cancel_tasks
from mendflow.services.base.cluster import ServerDocument
from mendflow.services.base.contracts import Clock
from mendflow.services.base.counters import LabeledCounter
from mendflow.services.base.membership import OwnMembership
from mendflow.services.scheduling.pilot_records import PilotRecord
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.services.scheduling.sites.alerts import SiteAlerts
from mendflow.services.scheduling.sites.batch_systems import SiteBatchSystems
from mendflow.services.scheduling.sites.site_store import KnownSite, SiteStore

log = logging.getLogger("mendflow.sites")

LOOK_MS = 5_000
TRIES_MAX = 10
TIDY_MS = 60_000
"""How often files of ended pilots are removed, and how long one that has left may still take to end."""

GROUPS_MAX = 100
"""How many kinds of waiting jobs a server tells the others of."""

LookResult = Literal["answered", "unanswered", "unasked", "overtaken"]
"""How a look that was not broken off has ended."""


class _SitePlan(msgspec.Struct, frozen=True):
    """The document to write, and what to do when it is written."""

    document: SiteDocument
    new: list[PilotSubmission]
    cancel: tuple[str, ...]


class SiteHelp(msgspec.Struct, frozen=True):
    """What sites can do for a job: those whose pilots could take it, and why those of others could not."""

    helps: list[str]
    cannot: list[str]


class PilotMonitor:
    """`batch_systems` submits pilots; without it nothing is submitted here. `looks` counts each look once, by site and
    how it ended."""

    def __init__(
        self,
        *,
        store: SiteStore,
        clock: Clock,
        membership: OwnMembership,
        meta: PilotScheduler,
        alerts: SiteAlerts,
        batch_systems: SiteBatchSystems | None,
        look_ms: int = LOOK_MS,
        looks: LabeledCounter | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._membership = membership
        self._meta = meta
        self._alerts = alerts
        self._batch_systems = batch_systems
        self._look_ms = look_ms
        self._looks = LabeledCounter(width=2) if looks is None else looks
        self._started_at = clock.now()
        self._task: asyncio.Task[None] | None = None
        self._looking: dict[str, asyncio.Task[None]] = {}
        self._reports: dict[str, list[SyncRequest]] = {}  # by site, and not written yet
        self._writing: asyncio.Task[None] | None = None
        self._tidied_at: dict[str, Instant] = {}
        self._last_sweep_at: Instant = 0
        self._sites: dict[str, SiteDocument] = {}  # as they were at the last look

    def start(self) -> None:
        self._started_at = self._clock.now()
        if self._batch_systems is None:
            return
        self._task = asyncio.create_task(self._run(), name="pilot monitor")

    async def stop(self) -> None:
        await cancel_tasks(*self._looking.values(), self._writing, self._task)

    # Reports of pilots

    async def has_submitted(self, name: str, secret: str) -> bool:
        """Whether a pilot with this secret was submitted under this name; or the name is not one of a site's pilots:
        then somebody has started it by hand."""
        if not (site := submissions.site_of(name)):
            return True
        known = await self._store.find(site)
        return known is not None and submissions.is_pilot_of(known.document, name, secret)

    def pilot_reported(self, request: SyncRequest) -> None:
        """A submitted pilot reports that it has arrived, leaves, or cannot work. Reports that come during a write are
        written together."""
        if not (site := submissions.site_of(request.submission)):
            return  # somebody has started it by hand
        self._reports.setdefault(site, []).append(request)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_reports(), name="what pilots of sites say")

    async def wait_reports_written(self) -> None:
        """Wait until the reports of pilots are written."""
        if self._writing is not None:
            await self._writing

    async def _write_reports(self) -> None:
        while self._reports:
            site, requests = self._reports.popitem()
            try:
                document = await self._store.change(site, partial(self._apply_report, requests))
                if document is not None:
                    await self._alerts.look(document, self._clock.now())
            except RequestError as error:  # the store is unreachable: the next look finds the same
                log.warning("reports of pilots of site %s could not be written: %s", site, error.message)

    def _apply_report(self, requests: list[SyncRequest], document: SiteDocument) -> SiteDocument:
        now = self._clock.now()
        for request in requests:
            name, pilot = request.submission, request.pilot
            if request.unfit:
                document = submissions.record_contact(document, name, now)
                document = submissions.close_submission(
                    document, name, "unfit", now=now, why=request.unfit, pilot=pilot
                )
                continue
            has = PilotOffer(at=now, capacity=request.capacity, host=request.host, ttl_ms=request.ttl_ms)
            document = submissions.record_working_pilot(document, name, pilot, now, has)
            if request.leaving:
                document = submissions.close_submission(
                    document, name, "left", now=now, why=LEAVE_REASONS.get(request.leaves, "")
                )
        return document

    # Looking

    async def _run(self) -> None:
        while True:
            try:
                await self.look()
            except StoreUnavailable as error:
                log.warning("sites could not be checked: %s; trying again", error.message)
            except Exception:  # without this loop no site would ever get a pilot again: the next look may succeed
                log.exception("sites could not be checked; trying again")
            await self._clock.sleep(self._look_ms)

    async def look(self) -> None:
        """Look at the sites that this server is responsible for, independently of each other; a site whose earlier look
        still waits for its batch system is skipped."""
        if self._batch_systems is None or not self._batch_systems.ready or not self._membership.may_promise():
            return
        sites = await self._store.all()
        self._sites = {each.document.site.name: each.document for each in sites}
        waiting = self.demand() if sites else []
        shares = {each.document.site.name: each.document.site.pilots.share for each in sites}
        self._meta.caches.neighbourhood.share({name: share for name, share in shares.items() if share is not None})
        for known in sites:
            name = known.document.site.name
            task = self._looking.get(name)
            if not self._is_responsible(known.document):
                pass
            elif task is None or task.done():
                self._looking[name] = asyncio.create_task(self._look_at(self._batch_systems, known, waiting))
            else:
                self._looks.add(name, "skipped")
            waiting = list(self._plan(known.document, waiting).uncovered)
        await self._sweep(self._batch_systems)

    async def _sweep(self, batch_systems: SiteBatchSystems) -> None:
        """Clean up after sites that were removed. No folder of a new one is made before the next look."""
        now = self._clock.now()
        if now - self._last_sweep_at >= TIDY_MS:
            self._last_sweep_at = now
            await batch_systems.sweep(self._sites.keys())

    async def wait_for_looks(self) -> None:
        """Wait until the looks that are under way are over."""
        await asyncio.gather(*self._looking.values())

    async def _look_at(self, batch_systems: SiteBatchSystems, known: KnownSite, waiting: list[JobGroup]) -> None:
        name, result = known.document.site.name, "cancelled"
        try:
            result = await self._reconcile(batch_systems, known, waiting)
        except StoreUnavailable as error:
            result = "store-away"
            log.warning("site %s could not be checked: %s; trying again", name, error.message)
        except Exception:  # whatever the error, the other sites and the next look continue
            result = "failed"
            log.exception("site %s could not be checked; trying again", name)
        finally:
            self._looks.add(name, result)

    async def _reconcile(
        self, batch_systems: SiteBatchSystems, known: KnownSite, waiting: list[JobGroup]
    ) -> LookResult:
        """The batch system may be slow. So the document is read again before anything is decided; if a pilot that
        arrives or leaves meanwhile changes it, this is tried again."""
        name = known.document.site.name
        found, why, result = await self._query_batch_system(batch_systems, known.document, waiting)
        for _ in range(TRIES_MAX):
            fresh = await self._store.find(name)
            if fresh is None:
                return result
            decided = self._decide(fresh.document, found, why, waiting)
            gone = decided.document.removed and self._is_empty(decided.document, found)
            written = await self._store.write(fresh, None if gone else decided.document)
            if gone:
                await self._alerts.look(decided.document, self._clock.now())
                return result
            if written is not None:
                await self._alerts.look(decided.document, self._clock.now())
                await self._carry_out(batch_systems, decided)
                return result
        log.warning("site %s was changed by others %d times during a look; trying again", name, TRIES_MAX)
        return "overtaken"

    def _is_empty(self, document: SiteDocument, found: Mapping[str, BatchJobStatus] | None) -> bool:
        """Whether no pilot of it is left. If pilots are to be cancelled and the batch system cannot be asked, silent
        ones are left alone."""
        given_up = document.emptied and found is None and not self._pilots_by_submission(document)
        return not document.open or given_up

    async def _carry_out(self, batch_systems: SiteBatchSystems, decided: _SitePlan) -> None:
        document, site = decided.document, decided.document.site
        if decided.cancel:
            try:
                await batch_systems.cancel(site, decided.cancel)
            except BatchSystemUnavailable as error:
                log.warning("site %s: %d pilots could not be cancelled: %s", site.name, len(decided.cancel), error)
        if decided.new:
            log.info("site %s: submitting %d pilots", site.name, len(decided.new))
            secrets = {each.name: submissions.secret_of(document, each.name) for each in decided.new}
            answers = await batch_systems.submit(site, decided.new, secrets)
            changed = await self._store.change(site.name, lambda it: self._note_answers(it, answers))
            if changed is not None:
                await self._alerts.look(changed, self._clock.now())
        now = self._clock.now()
        if now - self._tidied_at.get(site.name, 0) >= TIDY_MS:
            self._tidied_at[site.name] = now
            left = [each.name for each in document.endings if each.how == "left" and each.at <= now - TIDY_MS]
            await batch_systems.tidy(site, keep=document.open.keys(), left=left)

    def _note_answers(self, document: SiteDocument, answers: Mapping[str, SubmitResult]) -> SiteDocument:
        return submissions.apply_answers(document, answers, self._clock.now())

    async def _query_batch_system(
        self, batch_systems: SiteBatchSystems, document: SiteDocument, waiting: list[JobGroup]
    ) -> tuple[dict[str, BatchJobStatus] | None, str, LookResult]:
        """The jobs of the batch system, and None and the reason if it does not answer; and which of that it was. It is
        not asked while nothing depends on it."""
        heard = self._pilots_by_submission(document)
        sure = all(not each.inactive and each.name in heard for each in document.open.values())
        asks = document.removed or document.unheard_since or self._plan(document, waiting).pilots
        if sure and not asks:
            return {name: BatchJobStatus("running") for name in document.open}, "", "unasked"
        try:
            found = await batch_systems.find(document.site)
        except BatchSystemUnavailable as error:
            return None, str(error), "unanswered"
        return {name: each for name, each in found.items() if submissions.is_ours(document, name)}, "", "answered"

    def _decide(
        self, document: SiteDocument, found: dict[str, BatchJobStatus] | None, why: str, waiting: list[JobGroup]
    ) -> _SitePlan:
        now = self._clock.now()
        heard = self._pilots_by_submission(document)
        seen = SiteObservation(
            found=found,
            heard={name: pilot.id for name, pilot in heard.items()},
            offers={name: _offered(pilot, now) for name, pilot in heard.items()},
            busy=frozenset(name for name, pilot in heard.items() if pilot.free_slots < pilot.capacity.slots),
            now=now,
            silent_ms=self._meta.leases.lease_ms,
            watched_since=self._started_at,
            why=why,
        )
        if not document.key:
            document = submissions.with_key(document, self._store.new_key())
        looked = submissions.apply_observation(document, seen)
        intended = self._plan(looked.document, waiting)
        purposes: list[Purpose] = ["jobs" for _ in range(intended.for_jobs)]
        purposes += ["ready" for _ in range(intended.ready)]
        written, new = submissions.reserve(looked.document, purposes, now=now, by=self._membership.id)
        _, but = submissions.submission_allowance(looked.document, now)
        reasons = (*intended.reasons, *([but] if but else []))
        return _SitePlan(msgspec.structs.replace(written, reasons=reasons), new, looked.cancel)

    def _plan(self, document: SiteDocument, waiting: list[JobGroup]) -> ProvisionPlan:
        most, _ = submissions.submission_allowance(document, self._clock.now())
        return plan(document.site, self.site_pilots(document), waiting, most=most, offered=document.offered)

    # What is there

    def demand(self) -> list[JobGroup]:
        """The jobs that wait, here and at the other servers."""
        own = groups_of(self._meta, self._clock.now())
        return [*own, *(group for server in self._membership.live_servers() for group in server.demand)]

    def site_pilots(self, document: SiteDocument) -> SitePilots:
        """The pilots of the site: those that were submitted, and those that somebody started by hand."""
        here = [pilot for pilot in self._pilots() if pilot.site == document.site.name]
        free = [pilot.free_slots == pilot.capacity.slots for pilot in here]
        inactive = [each for each in document.open.values() if each.inactive]
        withdrawn = sum(each.cancelled_at > 0 for each in inactive)
        unheard = len(document.open) - len(inactive) - sum(pilot.submission in document.open for pilot in here)
        return SitePilots(
            inactive=len(inactive) - withdrawn + max(0, unheard),
            withdrawn=withdrawn,
            idle=sum(free),
            busy=len(here) - sum(free),
            free_slots=sum(pilot.free_slots for pilot in here),
        )

    def help_for(self, needs: Resources) -> SiteHelp:
        """What sites can do for a waiting job, in sentences; for a job that is bound to a site, only that site."""
        sites = [each for name, each in self._sites.items() if needs.site in ("", name)]
        lacks = [(each, missing_for(each.site, needs, each.offered)) for each in sites]
        return SiteHelp(
            helps=[self._sentence(each) for each, lack in lacks if not lack],
            cannot=[f"site {each.site.name} has no pilots that could take it: {lack}" for each, lack in lacks if lack],
        )

    def is_pilot_coming(self, needs: Resources) -> bool:
        """Whether a pilot has been submitted that could take such a job."""
        sites = [each for each in self._sites.values() if not missing_for(each.site, needs, each.offered)]
        return any(self.site_pilots(each).inactive for each in sites)

    def idle_exit_ms(self, name: str) -> int:
        """After how long without a job a pilot of this name is to leave; 0: as it was told when it was submitted."""
        document = self._sites.get(submissions.site_of(name))
        return surplus.idle_exit_ms(document, name) if document is not None else 0

    def _sentence(self, document: SiteDocument) -> str:
        has = self.site_pilots(document)
        coming = "1 pilot is coming" if has.inactive == 1 else f"{has.inactive} pilots are coming"
        counts = f"{coming}, {has.idle} {'is' if has.idle == 1 else 'are'} idle and {has.busy} busy"
        last = document.reasons[-1] if document.reasons else "not looked at yet"
        return f"site {document.site.name}: {counts}; {self.why_unmanaged(document) or last}"

    def _pilots_by_submission(self, document: SiteDocument) -> dict[str, PilotRecord]:
        return {
            pilot.submission: pilot
            for pilot in self._pilots()
            if pilot.submission and submissions.is_ours(document, pilot.submission)
        }

    def _pilots(self) -> list[PilotRecord]:
        """Those that were heard from within a lease."""
        oldest = self._clock.now() - self._meta.leases.lease_ms
        return [pilot for pilot in self._meta.pilots.values() if pilot.seen_at and pilot.seen_at >= oldest]

    def _is_responsible(self, document: SiteDocument) -> bool:
        """Whether this server is responsible for the site: of those that can be, the first by name."""
        able = self._able_servers(document)
        return bool(able) and min(able) == self._membership.id

    def why_unmanaged(self, document: SiteDocument) -> str:
        """Why no server is responsible for the site, in words; empty if one is."""
        if self._batch_systems is None or self._able_servers(document):
            return ""
        host = document.site.batch.host
        return f"nothing is submitted: no server runs on {host}, and only one there may use its batch system"

    def _able_servers(self, document: SiteDocument) -> list[str]:
        """The servers that can call its batch system."""
        host = document.site.batch.host
        own = (
            [self._membership.id] if self._batch_systems is not None and host in ("", self._batch_systems.host) else []
        )
        return own + [each.id for each in self._membership.live_servers() if _is_at(each, host)]


def groups_of(meta: PilotScheduler, now: Instant) -> list[JobGroup]:
    """The waiting jobs of a server's queue, by what they need."""
    levels = meta.queue.limits
    groups = [
        JobGroup(
            each.needs, min(each.jobs, levels.fitting(each.needs.named_limits, each.jobs)), max(0, now - each.since)
        )
        for each in meta.queue.waiting(())
    ]
    return sorted((group for group in groups if group.jobs), key=lambda group: -group.jobs)[:GROUPS_MAX]


def _offered(pilot: PilotRecord, now: Instant) -> PilotOffer:
    ttl_ms = max(1, pilot.ends_at - now) if pilot.ends_at else 0
    return PilotOffer(at=now, capacity=pilot.capacity, host=pilot.host, ttl_ms=ttl_ms)


def _is_at(server: ServerDocument, host: str) -> bool:
    return not host or not server.host or server.host == host
