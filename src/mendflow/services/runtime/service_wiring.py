"""Puts services into a runtime: what each of them needs of the others."""

from typing import TYPE_CHECKING

from mendflow.core.engine.flow_needs import secrets_named
from mendflow.lazy import LazyModule
from mendflow.services.base.hub import Hub
from mendflow.services.cases.case_starter import CaseStarter
from mendflow.services.cases.facts import CaseAdmission, CaseEnded
from mendflow.services.cluster.membership import ServerMembership
from mendflow.services.cluster.relay import Relay
from mendflow.services.cluster.remote_pilots import RemotePilots
from mendflow.services.cluster.takeover import Takeover
from mendflow.services.data.assembly import DataServices
from mendflow.services.learning.service import LearningService
from mendflow.services.recovery.assembly import RecoveryServices
from mendflow.services.runtime.server_context import ServerContext
from mendflow.services.scheduling.project_service import ProjectService
from mendflow.services.scheduling.secret_service import SecretService
from mendflow.services.scheduling.sites.service import SiteService

if TYPE_CHECKING:
    from mendflow.services.runtime import retention_wiring
    from mendflow.services.runtime.runtime import Runtime
else:
    retention_wiring = LazyModule("mendflow.services.runtime.retention_wiring")


def sites_of(runtime: "Runtime", server: ServerContext) -> SiteService:
    return SiteService(
        store=server.store,
        ledger=runtime.ledger,
        clock=server.clock,
        membership=server.membership,
        meta=runtime.meta,
        alerts=runtime.monitor.alerts,
        batch_systems=server.batch_systems,
        elements=runtime.catalogue.elements.find,
        look_ms=server.settings.sites_look_ms,
        looks=runtime.counts.site_looks,
        chance=server.chance,
    )


def relay_of(runtime: "Runtime", server: ServerContext) -> Relay | None:
    """The relay to other servers, if there may be some."""
    if not server.membership.shared:
        return None
    return Relay(
        membership=server.membership,
        homes=runtime.homes,
        peers=server.peers,
        clock=server.clock,
        lease_ms=server.settings.lease_ms,
        holds=server.membership.promise().holds,
        caches=runtime.meta.caches,
        remote_pilots=RemotePilots(server.membership, server.peers, server.clock, runtime.meta),
    )


def takeover_of(runtime: "Runtime", server: ServerContext) -> Takeover | None:
    if not isinstance(server.membership, ServerMembership):
        return None
    return Takeover(
        store=server.store,
        ledger=runtime.ledger,
        membership=server.membership,
        homes=runtime.homes,
        meter=server.meter,
        read_shared=runtime.read_shared,
        take_up=runtime.take_up,
    )


def data_services_of(runtime: "Runtime", server: ServerContext) -> DataServices:
    return DataServices(
        store=server.store,
        ledger=runtime.ledger,
        clock=server.clock,
        file_store=server.file_store,
        membership=server.membership,
        catalogue=runtime.catalogue,
        elements=server.elements,
        flows=runtime.flows,
        starting=CaseStarter(runtime, server.store, server.clock, server.chance),
        notices=runtime.notices,
        hub=runtime.hub,
    )


def recovery_of(runtime: "Runtime", server: ServerContext, hub: Hub) -> RecoveryServices:
    """`hub` is the one over which repairs are asked for."""
    return RecoveryServices(
        store=server.store,
        ledger=runtime.ledger,
        clock=server.clock,
        events=runtime.events,
        notices=runtime.notices,
        manager=runtime.manager,
        flows=runtime.flows,
        interception_points=runtime.interception_points,
        tasks=runtime.tasks,
        meta=runtime.meta,
        proxy=runtime.proxy,
        levels=runtime.levels,
        homes=runtime.homes,
        shipped=server.shipped,
        check_ms=server.settings.check_ms,
        holds_unhandled=server.settings.holds_unhandled,
        hub=hub,
        shared=server.membership.shared,
        is_pilot_coming=runtime.sites.monitor.is_pilot_coming,
        take_up=runtime.take_up,
        sealer=runtime.sealer,
        source_reader=server.source_reader,
        files=runtime.staging,
    )


def learning_of(runtime: "Runtime", server: ServerContext) -> LearningService:
    return LearningService(
        store=server.store,
        ledger=runtime.ledger,
        clock=server.clock,
        hub=runtime.hub if server.settings.learning else Hub(),  # a hub of its own: it hears of nothing
        membership=server.membership,
        rules=runtime.exceptions.rules,
        editor=runtime.administration,
        patterns=runtime.patterns,
        ended_jobs=runtime.ended_jobs,
        counted_name=runtime.flows.counted_name,
        flow_of=lambda job: (
            live.document.counted_flow if (live := runtime.manager.live.get(job.case)) is not None else ""
        ),
        look_ms=server.settings.learning_look_ms,
    )


def projects_of(runtime: "Runtime", server: ServerContext) -> ProjectService:
    def ended(end: CaseEnded) -> None:
        if end.document.counted_project:
            runtime.limits.case_ended(end.document.id, end.document.project)

    projects = ProjectService(
        store=server.store,
        ledger=runtime.ledger,
        clock=server.clock,
        meta=runtime.meta,
        limits=runtime.limits,
        membership=server.membership,
        count_bytes=lambda project: retention_wiring.stored_bytes_of(server, project),
    )
    runtime.hub.provide(CaseAdmission, projects)
    runtime.hub.subscribe(CaseEnded, ended)
    return projects


def secrets_of(runtime: "Runtime", server: ServerContext) -> SecretService:
    def used_by() -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for view in runtime.flows.all():
            for name in secrets_named(runtime.flows.newest(view.name).flow):
                found.setdefault(name, []).append(view.name)
        return found

    return SecretService(
        store=server.store,
        ledger=runtime.ledger,
        clock=server.clock,
        sources=server.secret_sources,
        hidden=server.hidden,
        used_by=used_by,
    )
