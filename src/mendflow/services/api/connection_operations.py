"""The part of the domain that is about other domains."""

from mendflow.core.model.domains import (
    ConnectionSpec,
    DomainAddress,
    DomainRights,
    DomainsView,
    DomainView,
    InvitationSpec,
    InvitationView,
)
from mendflow.services.api.view_operations import ViewOperations


class ConnectionOperations(ViewOperations):
    async def domains(self) -> DomainsView:
        return await self._server.runtime.connected.overview()

    async def charge_domain(self, *, charge: float, who: str) -> DomainsView:
        domains = self._server.runtime.connected
        await domains.connections.own.set_charge(charge)
        return await domains.overview()

    async def connected_domain(self, name: str) -> DomainView:
        return await self._server.runtime.connected.one(name)

    async def invite_domain(self, name: str, spec: InvitationSpec, *, who: str) -> InvitationView:
        """Make an invitation, for a short time and one use."""
        connections = self._server.runtime.connected.connections
        return await connections.invite(name, spec, who=who, url=self._server.url)

    async def connect_domain(self, name: str, spec: ConnectionSpec, *, who: str) -> DomainView:
        """Accept an invitation of another domain."""
        return await self._server.runtime.connected.connect(name, spec, who=who, url=self._server.url)

    async def change_domain_rights(self, name: str, rights: DomainRights, *, who: str) -> DomainView:
        domains = self._server.runtime.connected
        await domains.connections.change_rights(name, rights)
        return await domains.one(name)

    async def change_domain_address(self, name: str, address: DomainAddress, *, who: str) -> DomainView:
        return await self._server.runtime.connected.change_urls(name, address.urls)

    async def disconnect_domain(self, name: str, *, who: str, force: bool = False) -> DomainView:
        """Disconnect when all work between the two is done; with `force` at once."""
        return await self._server.runtime.connected.disconnect(name, force=force)
