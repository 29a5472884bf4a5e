"""Puts together what a server has to do with other domains: what it has sent there, and what it does for them."""

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from typing import Any, Final, Protocol

import msgspec

from mendflow.core.model.domains import ANY_DOMAIN, DomainReport, DomainRights
from mendflow.core.model.ids import CaseId, JobId
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.services.base.background_tasks import BackgroundTasks
from mendflow.services.base.clock import Meter
from mendflow.services.base.contracts import Clock, FileStore
from mendflow.services.base.homes import HomeRegistry
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.sealing import Sealer
from mendflow.services.cases.called_cases import FarCalls
from mendflow.services.cases.case_starter import CaseStarter
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.flows import Flows
from mendflow.services.cases.live_case import LiveCase
from mendflow.services.cases.staging import FileStaging
from mendflow.services.data.catalogue.catalogue import Catalogue
from mendflow.services.domains.connections import ConnectionsChanged, DomainDisconnected
from mendflow.services.domains.domain_lines import PeerLines
from mendflow.services.domains.flow_bundling import FlowCloser, closed_job
from mendflow.services.domains.host_leases import SLACK_MS, HostLeases
from mendflow.services.domains.hosted_runs import HostedRuns
from mendflow.services.domains.hosted_work import HostedWorks
from mendflow.services.domains.peer_scheduler import FarJobs, PeerScheduler
from mendflow.services.domains.sent_calls import SentCalls
from mendflow.services.domains.sent_work import NO_REPORTS, DomainReports, SentWorks
from mendflow.services.domains.spilled_values import SpilledValues
from mendflow.services.domains.work_contracts import WorkHost, WorkSender
from mendflow.services.domains.work_counts import WorkCount, WorkCounter
from mendflow.services.domains.work_documents import HOSTED_KIND, SENT_KIND
from mendflow.stores.contract import Store

LEASES_AT_A_TIME: Final = 4
LEASE_MS_MIN: Final = 60_000
"""How many leases of a pilot a lease on work in another domain is long, and how long it is at least, unless the owner
says: a server with thousands of cases that is killed, on a busy machine, has to be back before it ends."""


class _SentHead(msgspec.Struct):
    """Of the document of a piece of work that was sent, what is counted: the work itself is not decoded."""

    domain: str
    case: CaseId
    ended_at: int = 0
    acknowledged: bool = False


class _HostedHead(msgspec.Struct):
    origin: str
    over: bool = False


_decode_sent = msgspec.json.Decoder(_SentHead).decode
_decode_hosted = msgspec.json.Decoder(_HostedHead).decode

Finished = Callable[[CaseId, int, Outcome], Coroutine[Any, Any, None]]


class DomainParts(Protocol):
    """The services of a server that the work of domains rests on."""

    ledger: Ledger
    hub: Hub
    flows: Flows
    manager: FlowManager
    homes: HomeRegistry
    staging: FileStaging
    catalogue: Catalogue
    spilled_values: SpilledValues


class DomainServices:
    """`lines` are the lines to the domains that are connected; `way` are the domains that a case has come through, this
    one the last. `meter_name` is the same for a process that goes on reading the same meter after a restart. `retrying`
    gives the jobs that wait for their next try, of all servers on the store."""

    def __init__(
        self,
        parts: DomainParts,
        *,
        store: Store,
        clock: Clock,
        meter: Meter,
        meter_name: str,
        files: FileStore,
        starter: CaseStarter,
        sealer: Sealer,
        lines: PeerLines,
        way: Callable[[CaseId], tuple[str, ...]],
        sender: str,
        lease_ms: int,
        domain_lease_ms: int,
        shared: bool,
        finished: Finished,
        rights_of: Callable[[str], DomainRights],
        reports: DomainReports = NO_REPORTS,
        report_of: Callable[[str], DomainReport | None] = lambda _: None,
        retrying: Callable[[], Awaitable[Collection[JobId]]],
    ) -> None:
        self._retrying = retrying
        guard_ms = lease_ms + lease_ms // 50 + SLACK_MS
        leases = HostLeases(store, parts.ledger, meter=meter_name, meter_now=meter, guard_ms=guard_ms)
        self.runs = HostedRuns(
            store=store,
            ledger=parts.ledger,
            clock=clock,
            manager=parts.manager,
            homes=parts.homes,
            starter=starter,
            leases=leases,
            hub=parts.hub,
            shared=shared,
            is_connected=lambda: bool(lines()),
            resolve=parts.catalogue.resolve,
            spilled=parts.spilled_values,
        )
        self.hosted = HostedWorks(
            ledger=parts.ledger, clock=clock, flows=parts.flows, files=files, runs=self.runs, shared=shared
        )
        self.sent = SentWorks(
            store=store,
            ledger=parts.ledger,
            clock=clock,
            meter=meter,
            files=files,
            resolve=parts.catalogue.resolve,
            lines=lines,
            sender=sender,
            lease_ms=domain_lease_ms or max(LEASES_AT_A_TIME * lease_ms, LEASE_MS_MIN),
            rights_of=rights_of,
            reports=reports,
        )

        def opened(spec: JobSpec) -> JobSpec:
            return closed_job(sealer.opened(spec))

        self.far = FarJobs(
            store=store,
            ledger=parts.ledger,
            clock=clock,
            hub=parts.hub,
            sent=self.sent,
            way=way,
            opened=opened,
            report_of=report_of,
        )
        self.calls = SentCalls(
            ledger=parts.ledger,
            clock=clock,
            manager=parts.manager,
            sent=self.sent,
            closer=FlowCloser(parts.flows, parts.staging, sealer.opened_value),
            way=way,
            finished=finished,
            hub=parts.hub,
        )
        parts.hub.provide(FarCalls, self.calls)
        parts.hub.provide(WorkHost, self.hosted)
        parts.hub.provide(WorkSender, self)
        parts.hub.provide(WorkCounter, self)
        parts.hub.subscribe(ConnectionsChanged, lambda _: self._connections_changed())
        parts.hub.subscribe(DomainDisconnected, self._domain_disconnected)
        self._background = BackgroundTasks(parts.ledger)
        self._store = store
        parts.hub.provide(DomainServices, self)
        self._report_of = report_of

    def peer(self, domain: str) -> PeerScheduler:
        return PeerScheduler(domain, self.far, self._report_of)

    def _connections_changed(self) -> None:
        self.runs.connections_changed()
        self.sent.lines_changed()

    def _domain_disconnected(self, fact: DomainDisconnected) -> None:
        self._background.start(self.hosted.disconnect(fact.name))

    async def sent_to(self, job: JobId) -> str:
        """The domain that a job was sent to; empty if it was sent to none."""
        found = await self.sent.find(job)
        return found.domain if found is not None else ""

    async def counts(self) -> dict[str, WorkCount]:
        """The work between this domain and each of the others, of all servers on the store."""
        sent, held, retrying = Counter[str](), Counter[str](), Counter[str]()
        cases: defaultdict[str, set[str]] = defaultdict(set)
        async for stored in self._store.scan(SENT_KIND):
            work = _decode_sent(stored.body)
            sent[work.domain] += not work.acknowledged
            if not work.ended_at and not work.acknowledged:
                cases[work.domain].add(work.case)
        for id in await self._retrying():
            job = await self.far.read(id)
            if job is not None and job.spec.domain not in ("", ANY_DOMAIN):
                retrying[job.spec.domain] += 1
                cases[job.spec.domain].add(job.case)
        async for stored in self._store.scan(HOSTED_KIND):
            hosted = _decode_hosted(stored.body)
            held[hosted.origin] += not hosted.over
        return {
            each: WorkCount(sent[each], held[each], retrying[each], tuple(sorted(cases[each])))
            for each in {*sent, *held, *retrying}
        }

    async def load(self, roots: Collection[CaseId]) -> None:
        """Before the cases of these trees are loaded."""
        await self.sent.load(roots)

    async def resume(self, cases: Iterable[LiveCase]) -> None:
        """After these cases were loaded, and before pilots get their jobs."""
        await self.sent.resume()
        await self.runs.resume(cases)

    async def start(self) -> None:
        await self.runs.load()
        self.runs.start()
        self.sent.start()

    async def stop(self) -> None:
        self.hosted.stop()
        await self.sent.stop()
        await self.runs.stop()
        await self.calls.stop()
        await self.far.stop()
        await self._background.stop()
