"""Other domains: which are connected, what they can do, and what they may do here."""

from typing import Annotated

from msgspec import Meta

from mendflow.core.model.domains import (
    ConnectionSpec,
    DomainAddress,
    DomainRights,
    DomainsView,
    DomainView,
    InvitationSpec,
    InvitationView,
)
from mendflow.operations.arguments import StrictBody
from mendflow.operations.operation import Calls, operation
from mendflow.operations.roles import ADMINISTRATORS, VIEWERS
from mendflow.operations.subjects import INSTALLATION

Force = Annotated[bool, Meta(description="Disconnect at once, whatever is under way.")]
Charge = Annotated[float, Meta(description="What an hour of a CPU costs here, in whatever unit the domains agree on.")]


class ConnectionCalls(Calls, tag="domains"):
    @operation("GET", "/domains", VIEWERS, INSTALLATION)
    async def domains(self) -> DomainsView:
        """The name of this domain, and the domains that it is connected with."""

    @operation("PUT", "/domains", ADMINISTRATORS, INSTALLATION, repeatable=True)
    async def charge_domain(self, *, charge: Charge) -> DomainsView:
        """Say what an hour of a CPU costs in this domain; other domains weigh it when they send work."""

    @operation("GET", "/domains/{name}", VIEWERS, INSTALLATION)
    async def connected_domain(self, name: str) -> DomainView:
        """A connected domain: its state, what it can do, and its rights here."""

    @operation("POST", "/domains/{name}/invite", ADMINISTRATORS, INSTALLATION)
    async def invite_domain(self, name: str, spec: StrictBody[InvitationSpec]) -> InvitationView:
        """Invite a domain. The token in the answer is for its administrator: it holds for a short time, and once."""

    @operation("POST", "/domains/{name}/connect", ADMINISTRATORS, INSTALLATION, repeatable=True)
    async def connect_domain(self, name: str, spec: StrictBody[ConnectionSpec]) -> DomainView:
        """Accept the invitation of a domain. Each of the two then has a token of its own at the other."""

    @operation("PUT", "/domains/{name}/rights", ADMINISTRATORS, INSTALLATION, repeatable=True)
    async def change_domain_rights(self, name: str, rights: StrictBody[DomainRights]) -> DomainView:
        """Say what a connected domain may do here from now on."""

    @operation("PUT", "/domains/{name}/address", ADMINISTRATORS, INSTALLATION, repeatable=True)
    async def change_domain_address(self, name: str, address: StrictBody[DomainAddress]) -> DomainView:
        """Say where servers of a connected domain are reached from now on."""

    @operation("DELETE", "/domains/{name}", ADMINISTRATORS, INSTALLATION)
    async def disconnect_domain(self, name: str, *, force: Force = False) -> DomainView:
        """Disconnect a domain, as soon as nothing is under way between the two. With `force` at once: work that it does
        for this domain is lost when its lease has ended. An invitation is withdrawn."""
