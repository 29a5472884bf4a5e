"""Builds what a server has to do with other domains from its other services."""

from collections.abc import Mapping
from typing import Protocol

from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Outcome
from mendflow.services.base.homes import HomeRegistry
from mendflow.services.base.sealing import Sealer
from mendflow.services.cases.case_starter import CaseStarter
from mendflow.services.domains.assembly import DomainParts, DomainServices
from mendflow.services.domains.connected import ConnectedDomains
from mendflow.services.domains.line import DomainLine
from mendflow.services.runtime.server_context import ServerContext


class DomainWorkParts(DomainParts, Protocol):
    homes: HomeRegistry
    sealer: Sealer
    connected: ConnectedDomains

    async def finished(self, case: CaseId, serial: int, outcome: Outcome) -> None: ...


def peer_lines(parts: DomainWorkParts, server: ServerContext) -> Mapping[str, DomainLine]:
    """The lines to the domains that are connected now."""
    given = server.peer_lines()
    return {**given, **parts.connected.lines()} if given else parts.connected.lines()


def domain_work(parts: DomainWorkParts, server: ServerContext) -> DomainServices:
    connections = parts.connected.connections
    return DomainServices(
        parts,
        store=server.store,
        clock=server.clock,
        meter=server.meter,
        meter_name=server.meter_name,
        files=server.file_store,
        starter=CaseStarter(parts, server.store, server.clock, server.chance),
        sealer=parts.sealer,
        lines=lambda: peer_lines(parts, server),
        name=lambda: connections.own.name,
        sender=f"{server.membership.id}:{server.chance(4)}",
        lease_ms=server.settings.lease_ms,
        shared=server.membership.shared,
        finished=parts.finished,
        connected=lambda: [each.name for each in connections.known()],
    )
