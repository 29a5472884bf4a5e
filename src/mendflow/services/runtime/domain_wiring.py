"""Makes this domain one among others: gives what is known of the own one to the services that speak for it."""

from typing import TYPE_CHECKING

import msgspec

from mendflow.core.model.data import Publication
from mendflow.core.model.domains import DomainRights
from mendflow.core.model.ids import CaseId, JobId
from mendflow.services.base.cluster import CASE_KIND, root_of
from mendflow.services.cases.case_starter import CaseStarter
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.cluster.overview import ClusterOverview
from mendflow.services.domains.assembly import DomainServices
from mendflow.services.domains.confined_queue import ConfinedQueue
from mendflow.services.domains.connected_domains import ConnectedDomains
from mendflow.services.domains.publication_triggers import PublicationTriggers
from mendflow.services.domains.reports import DomainLoad, startable
from mendflow.services.domains.work_documents import DOMAIN_PORT
from mendflow.services.recovery.levels import LEVEL_KIND, LevelEntry
from mendflow.services.runtime.server_context import ServerContext

if TYPE_CHECKING:
    from mendflow.services.runtime.runtime import Runtime

_decode_entry = msgspec.json.Decoder(LevelEntry).decode
_decode_case = msgspec.json.Decoder(CaseDocument).decode


def way_of(runtime: "Runtime", case: CaseId) -> tuple[str, ...]:
    """The domains that a case has come through, the one that has sent it here the last; none: it began here."""
    live = runtime.manager.live.get(CaseId(root_of(case)))
    if live is None or live.document.port != DOMAIN_PORT:
        return ()
    sender = live.document.owner.partition("/")[0]
    return (*(each for each in live.document.way if each != sender), sender)


def connected_domains(runtime: "Runtime", server: ServerContext) -> ConnectedDomains:
    overview = ClusterOverview(server.membership, server.peers, server.meter)

    async def load() -> DomainLoad:
        """What all servers on the store have to do, and what pilots their sites can start."""
        meta, others = runtime.meta, server.membership.live_servers()
        sites = [view.site.pilots for view in await runtime.sites.all() if view.paused is None]
        return DomainLoad(
            waiting=meta.jobs_waiting() + sum(each.waiting for each in others),
            running=meta.jobs_running() + sum(each.running for each in others),
            startable=tuple(startable(each) for each in sites),
        )

    async def document_of(case: CaseId) -> CaseDocument | None:
        live = runtime.manager.live.get(case)
        if live is not None:
            return live.document
        found = await server.store.get(CASE_KIND, case)
        return _decode_case(found.body) if found is not None else None

    async def flows_started_by(published: Publication) -> set[str]:
        triggers = PublicationTriggers(runtime.data_sets, runtime.watches, runtime.catalogue)
        return await triggers.flows_started_by(published)

    return ConnectedDomains(
        store=server.store,
        ledger=runtime.ledger,
        clock=server.clock,
        meter=server.meter,
        sealer=runtime.sealer,
        hub=runtime.hub,
        lines=server.lines,
        peer_lines=server.peer_lines,
        chance=server.chance,
        name=server.settings.domain or server.domain_name,
        url=lambda: server.url,
        host=server.settings.host,
        version=server.version,
        catalogue=runtime.catalogue,
        flows=runtime.flows,
        meta=runtime.meta,
        queue=ConfinedQueue(server.way_to_queue(runtime.meta), document_of, flows_started_by, runtime.hub),
        given=server.domains,
        pilots=lambda: overview.pilots(runtime.meta.pilot_views()),
        load=load,
        way_of=lambda case: way_of(runtime, case),
    )


def work_across(runtime: "Runtime", server: ServerContext) -> DomainServices:
    """What was sent to other domains, and what is done for them."""
    connected = runtime.connected

    async def retrying() -> list[JobId]:
        await runtime.ledger.settled()
        return [_decode_entry(found.body).job async for found in server.store.scan(LEVEL_KIND)]

    def rights_of(name: str) -> DomainRights:
        known = connected.connections.find(name)
        return known.rights if known is not None else DomainRights()

    return DomainServices(
        runtime,
        store=server.store,
        clock=server.clock,
        meter=server.meter,
        meter_name=server.meter_name,
        files=server.file_store,
        starter=CaseStarter(runtime, server.store, server.clock, server.chance),
        sealer=runtime.sealer,
        lines=connected.lines,
        way=lambda case: (*way_of(runtime, case), connected.connections.own.name),
        sender=f"{server.membership.id}:{server.chance(4)}",
        lease_ms=server.settings.lease_ms,
        domain_lease_ms=server.settings.domain_lease_ms,
        shared=server.membership.shared,
        finished=runtime.finished,
        rights_of=rights_of,
        reports=connected.reports,
        report_of=lambda name: connected.contacts.of(name).report,
        retrying=retrying,
    )
