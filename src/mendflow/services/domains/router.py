"""Where jobs go: the meta-scheduler in front of our own queue and of all connected domains.

A job that says nothing goes to our own queue, as if this were not here. One that names a domain goes there; one that
may go to any is routed. Where a job went is written before it goes, with the reasons: so it goes there after a crash,
too, and can be asked about later. A job that is submitted again is routed again, and not to where it was refused."""

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from mendflow.core.domains.domain_names import not_connected
from mendflow.core.domains.routing import DomainOffer, RoutingDecision, WorkNeeds, route
from mendflow.core.engine.messages import StartCalledCase
from mendflow.core.model.containers import runtimes_for
from mendflow.core.model.domains import ANY_DOMAIN, DomainReport
from mendflow.core.model.errors import Forbidden
from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.ids import CaseId, Instant, JobId
from mendflow.core.model.jobs import Job, JobSpec, Outcome
from mendflow.core.model.values import FileRef
from mendflow.core.recovery.ids import flow_job_id, generation_of, submission_job_id
from mendflow.services.base.cluster import JOB_KIND
from mendflow.services.base.contracts import (
    Callback,
    CapacityReport,
    Clock,
    MetaScheduler,
    NewJob,
    Status,
    SubmissionFailed,
)
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.called_cases import CallRouter
from mendflow.services.cases.domain_checks import KnownDomains
from mendflow.services.cases.flows import Flows
from mendflow.services.cases.live_case import LiveCase
from mendflow.services.domains.case_files import FORBIDDEN_HERE, CaseFiles
from mendflow.services.domains.connections import Connections
from mendflow.services.domains.domain_lines import PeerLines
from mendflow.services.domains.file_origins import FileOrigins, demand_own_files
from mendflow.services.domains.peer_contacts import Contacts
from mendflow.services.domains.reports import DomainReporter
from mendflow.services.domains.sent_work import REFUSED_THERE
from mendflow.services.domains.work_contracts import WorkSender
from mendflow.services.domains.work_files import files_in_flow
from mendflow.stores.contract import Store

ROUTE_KIND: Final = "route"
WAY_MAX: Final = 8
"""Through so many domains work goes at most, by whatever names they know each other."""
EARLIER_MAX: Final = 20
"""So many earlier submissions of a job are looked at."""

_decode_job = msgspec.json.Decoder(Job).decode


class RouteDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a job or a call went, and why. `asked` is what it says itself."""

    asked: str
    at: Instant
    decision: RoutingDecision


_decode = msgspec.json.Decoder(RouteDocument).decode


class DomainRouter:
    """`given` are other meta-schedulers that jobs can name like a domain, `others` domains that are connected in
    another way. `way_of` are the domains that a case has come through, its sender the last; none: it began here."""

    def __init__(
        self,
        *,
        queue: MetaScheduler,
        given: Mapping[str, MetaScheduler],
        others: PeerLines,
        way_of: Callable[[CaseId], tuple[str, ...]],
        store: Store,
        ledger: Ledger,
        clock: Clock,
        connections: Connections,
        contacts: Contacts,
        flows: Flows,
        reports: DomainReporter,
        hub: Hub,
    ) -> None:
        self._queue = queue
        self._given = given
        self._others = others
        self._hub = hub
        self._way_of = way_of
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._connections = connections
        self._contacts = contacts
        self._flows = flows
        self._reports = reports
        self._elsewhere: dict[JobId, str] = {}
        self._sent_since: dict[str, tuple[int | None, int]] = {}  # by domain: since which report, and how many
        hub.provide(KnownDomains, self)
        hub.provide(CallRouter, self)

    # The contract of a meta-scheduler

    async def submit(self, jobs: Sequence[NewJob], *, reissued: bool = False) -> None:
        staying = [new for new in jobs if not new.spec.domain]
        if staying:
            await self._queue.submit(staying, reissued=reissued)
        if len(staying) == len(jobs):
            return
        failed: SubmissionFailed | None = None
        for new in jobs:
            if new.spec.domain:
                try:
                    await (await self._scheduler_for(new, reissued=reissued)).submit([new], reissued=reissued)
                except SubmissionFailed as error:
                    failed = failed or error
        if failed is not None:
            raise failed

    async def run(self, job: NewJob, *, reissued: bool = False) -> Outcome:
        if not job.spec.domain:
            return await self._queue.run(job, reissued=reissued)
        outcome = await (await self._scheduler_for(job, reissued=reissued)).run(job, reissued=reissued)
        self._elsewhere.pop(job.id, None)
        return outcome

    async def status(self, id: JobId) -> Status:
        found = await self._of(id).status(id)
        if found.outcome is not None:
            self._elsewhere.pop(id, None)
        return found

    def subscribe(self, id: JobId, callback: Callback) -> Coroutine[None, None, None]:
        if id not in self._elsewhere:
            return self._queue.subscribe(id, callback)
        return self._subscribe_elsewhere(id, callback)

    async def _subscribe_elsewhere(self, id: JobId, callback: Callback) -> None:
        async def ended(job: JobId, outcome: Outcome) -> None:
            self._elsewhere.pop(job, None)
            await callback(job, outcome)

        await self._of(id).subscribe(id, ended)

    async def suspend(self, id: JobId) -> None:
        await self._of(id).suspend(id)

    async def resume(self, id: JobId) -> None:
        await self._of(id).resume(id)

    async def cancel(self, id: JobId, *, reason: str = "") -> None:
        scheduler = self._of(id)
        self._elsewhere.pop(id, None)
        await scheduler.cancel(id, reason=reason)

    async def capacity(self) -> CapacityReport:
        return await self._queue.capacity()

    def _of(self, id: JobId) -> MetaScheduler:
        domain = self._elsewhere.get(id)
        return self._peer(domain) if domain else self._queue

    def _peer(self, domain: str) -> MetaScheduler:
        if domain in self._given:
            return self._given[domain]
        sender = self._hub.provider(WorkSender)
        if sender is None:
            message = f"this server sends no work to other domains, and so none to {domain}"
            raise SubmissionFailed(_fault("noSuchDomain", Category.SCHEDULER_DOWN, message))
        return sender.peer(domain)

    async def _sent_to(self, job: JobId) -> str:
        sender = self._hub.provider(WorkSender)
        return await sender.sent_to(job) if sender is not None else ""

    # Where jobs go

    async def _scheduler_for(self, new: NewJob, *, reissued: bool) -> MetaScheduler:
        domain = await self._domain_for(new, reissued=reissued)
        if not domain:
            return self._queue
        self._elsewhere[new.id] = domain
        return self._peer(domain)

    async def _domain_for(self, new: NewJob, *, reissued: bool) -> str:
        """The domain that the job is in, or goes to; empty: our own queue."""
        if reissued:
            if known := self._elsewhere.get(new.id) or await self._sent_to(new.id):
                return known
            if (before := await self.route_of(new.id)) is not None:
                return before.decision.domain
        decision = await self._decide(new)
        self._note(new.id, new.spec.domain, decision)
        return decision.domain

    async def _decide(self, new: NewJob) -> RoutingDecision:
        way = self._way_of(new.case)
        if way and (files := self._hub.provider(CaseFiles)) is not None:
            await _demand_files(files, new)
        elif (origins := self._hub.provider(FileOrigins)) is not None and new.spec.domain:
            await demand_own_files(origins, new)
        if new.spec.domain == ANY_DOMAIN and new.spec.secrets:
            return RoutingDecision(domain="", reason="it uses secrets, which are of this domain")
        if new.spec.domain != ANY_DOMAIN:
            decision = self._named(new.spec.domain, way, is_again=generation_of(new.id) > 1)
            if decision.domain and (name := published_name(new.spec)):
                raise SubmissionFailed(
                    _fault("notSendable", Category.INPUT, _not_published_there(name, decision.domain))
                )
            return decision
        refused, lost = await self._earlier(new.id)
        return await self._route(needs_of(new.spec, refused, lost, way))

    def _named(self, asked: str, way: tuple[str, ...], *, is_again: bool = False) -> RoutingDecision:
        """Where a job, or a call, goes that names a domain. Raises `SubmissionFailed` if it cannot go there."""
        own = self._connections.own.name
        if asked == own:
            return RoutingDecision(domain="", reason=f"it names {own}, which is this domain")
        if asked in way:
            message = f"it came from {asked}, and does not go back (its way: {', '.join((*way, own))})"
            raise SubmissionFailed(_fault("sentBack", Category.REFUSED, message))
        if len(way) >= WAY_MAX:
            message = f"it has come through {len(way)} domains, and goes no further (its way: {', '.join((*way, own))})"
            raise SubmissionFailed(_fault("sentTooFar", Category.REFUSED, message))
        if asked in self._given or asked in self._others():
            return RoutingDecision(domain=asked, reason=f"it names {asked}")
        connection = self._connections.find(asked)
        if connection is None:
            raise SubmissionFailed(_fault("noSuchDomain", Category.SCHEDULER_DOWN, not_connected(asked)))
        if connection.draining and not is_again:  # what is tried again was under way
            message = f"the domain {asked!r} is being disconnected, and gets no new work"
            raise SubmissionFailed(_fault("noSuchDomain", Category.SCHEDULER_DOWN, message))
        return RoutingDecision(domain=asked, reason=f"it names {asked}")

    async def _route(self, needs: WorkNeeds) -> RoutingDecision:
        own = self._connections.own.name
        if needs.way:
            return RoutingDecision(domain="", reason=f"{needs.way[-1]} has sent it here, and it goes no further")
        names = {*self._others(), *(each.name for each in self._connections.known())}
        if not names:
            return RoutingDecision(domain="", reason=f"{own} is connected with no other domain")
        at_home = await self._reports.current()
        here = DomainOffer(name=own, report=self._with_sent("", at_home, self._reports.made_ms))
        decision = route(needs, here, [self._offer(each) for each in sorted(names)])
        since, count = self._sent_since.get(decision.domain, (None, 0))
        self._sent_since[decision.domain] = (since, count + 1)
        return decision

    def _with_sent(self, domain: str, report: DomainReport, reported_ms: int | None) -> DomainReport:
        """The report, with what was routed there since it was made: otherwise all would go to the same slot."""
        since, count = self._sent_since.get(domain, (None, 0))
        if since != reported_ms:
            self._sent_since[domain] = (reported_ms, 0)
            return report
        free = max(0, report.slots_free - count)
        waiting = report.waiting + max(0, count - report.slots_free)
        return replace(report, slots_free=free, waiting=waiting)

    def _offer(self, name: str) -> DomainOffer:
        connection, contact = self._connections.find(name), self._contacts.of(name)
        closed = ""
        if connection is not None and connection.draining:
            closed = "it is being disconnected"
        elif connection is not None and not connection.urls:
            closed = "it has no address here, so nothing can be sent there"
        elif contact.refused:
            closed = f"it does not take our requests: {contact.refused}"
        return DomainOffer(
            name=name,
            report=self._with_sent(name, contact.report, contact.reported_ms) if contact.report is not None else None,
            age_ms=self._contacts.age_ms(name) or 0,
            latency_ms=contact.latency_ms,
            closed=closed,
        )

    async def _earlier(self, id: JobId) -> tuple[dict[str, str], frozenset[str]]:
        """Where earlier submissions of the job were refused, and where they were lost."""
        refused: dict[str, str] = {}
        lost: set[str] = set()
        known, generation = flow_job_id(id), generation_of(id)
        for number in range(max(1, generation - EARLIER_MAX), generation):
            earlier = submission_job_id(known, number)
            went = await self.route_of(earlier)
            found = await self._store.get(JOB_KIND, earlier) if went is not None and went.decision.domain else None
            if went is None or found is None:
                continue
            outcome = _decode_job(found.body).outcome
            fault = outcome.fault if outcome is not None else None
            if fault is not None and fault.name == REFUSED_THERE:
                refused[went.decision.domain] = fault.message
            elif fault is not None and fault.infrastructure:
                lost.add(went.decision.domain)
        return refused, frozenset(lost)

    def _note(self, id: str, asked: str, decision: RoutingDecision) -> None:
        document = RouteDocument(asked=asked, at=self._clock.now(), decision=decision)
        self._ledger.touch(ROUTE_KIND, id, document, last=True)

    async def route_of(self, id: str) -> RouteDocument | None:
        """Where a job, or a call, went, and why; None for one that has said nothing."""
        await self._ledger.settled()
        found = await self._store.get(ROUTE_KIND, id)
        return _decode(found.body) if found is not None else None

    async def domain_for_call(self, live: LiveCase, order: StartCalledCase) -> str:
        """The domain that a call goes to, by the same rules as a job; empty: it stays here."""
        key = f"{live.id}.{order.serial}"
        if (before := await self.route_of(key)) is not None:
            return before.decision.domain
        way = self._way_of(live.id)
        if order.domain != ANY_DOMAIN:
            decision = self._named(order.domain, way)
        else:
            logical, stored = files_by_place(files_in_flow(order.inputs))
            here = self._flows.of_project(order.name, live.document.project)
            is_known = order.flow is not None or not order.name or here is not None
            flow = "" if is_known else order.name
            decision = await self._route(WorkNeeds(logical=logical, stored_bytes=stored, flow=flow, way=way))
        self._note(key, order.domain, decision)
        return decision.domain

    def knows_domain(self, name: str) -> bool:
        """Whether it is this domain itself, or work can be sent there."""
        if name == self._connections.own.name or name in self._given or name in self._others():
            return True
        found = self._connections.find(name)
        return found is not None and bool(found.urls)


def needs_of(spec: JobSpec, refused: dict[str, str], lost: frozenset[str], way: tuple[str, ...] = ()) -> WorkNeeds:
    logical, stored = files_by_place(spec.inputs.values())
    runtimes = runtimes_for(spec.container.image) if spec.container is not None else ()
    return WorkNeeds(
        resources=replace(spec.resources, runtimes=runtimes) if runtimes else spec.resources,
        logical=logical,
        stored_bytes=stored,
        publishes=published_name(spec),
        expected_ms=spec.expected_ms,
        way=way,
        refused=refused,
        lost=lost,
    )


def published_name(spec: JobSpec) -> str:
    """A logical name that a job publishes; empty if it publishes none."""
    return next((each.logical for each in spec.publish.values() if each.logical), "")


def _not_published_there(name: str, domain: str) -> str:
    return (
        f"it publishes {name}, which would be in the catalogue of {domain} and not in that of this domain; let it give"
        " the file back, and publish it by a job of this domain"
    )


def files_by_place(files: Iterable[FileRef]) -> tuple[dict[str, int], int]:
    """Logical files by name, with their bytes; and the bytes of the others together."""
    logical: dict[str, int] = {}
    stored = 0
    for each in files:
        if each.logical:
            logical[each.logical] = each.bytes
        else:
            stored += each.bytes
    return logical, stored


async def _demand_files(files: CaseFiles, new: NewJob) -> None:
    """What another domain has sent here, and sends on, takes no file of ours along."""
    try:
        await files.demand_job(new.case, new.spec)
    except Forbidden as error:
        raise SubmissionFailed(_fault(FORBIDDEN_HERE, Category.REFUSED, error.message)) from error


def _fault(name: str, category: Category, message: str) -> Fault:
    return Fault(name=name, category=category, message=message, stage=AttemptStage.SUBMISSION)
