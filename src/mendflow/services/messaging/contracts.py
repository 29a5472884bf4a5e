"""Who carries calls to partners, and who answers those that come: services know no HTTP, and wiring gives them somebody
who does."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from mendflow.core.engine.messages import CallPartner
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.values import Value
from mendflow.core.soap.endpoints import Endpoint
from mendflow.services.cases.live_case import LiveCase
from mendflow.services.messaging.message_store import MessageReply, PostReceipt


class PartnerResponse(NamedTuple):
    """What a partner answered."""

    status: int
    body: bytes


class CallFailed(Exception):
    """No answer came, or none that can be one; the fault says why."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class PartnerClient(Protocol):
    async def call(self, address: str, body: bytes, *, action: str, assigned: bool = False) -> PartnerResponse:
        """Send an envelope and wait for what comes back. Raises CallFailed. An `assigned` address came by a message
        and was not written by whoever deployed the flow: nobody is to reach by it what he could not reach himself."""
        ...


class NoPartnerClient:
    async def call(self, address: str, body: bytes, *, action: str, assigned: bool = False) -> PartnerResponse:
        message = f"this server has no way out, so {address} cannot be called"
        raise CallFailed(Fault(name="partnerUnreachable", category=Category.REFUSED, message=message))


NO_PARTNER_CLIENT = NoPartnerClient()


class CaseAccess(NamedTuple):
    """What somebody may do with cases that are not his own: look at them, and end them."""

    can_view: bool = False
    can_end: bool = False


OWN_ONLY = CaseAccess()


class ServerPort(Protocol):
    """A port of the server itself, which speaks in elements: one comes in, and one goes out, or None where nothing is
    answered. Raises PortFault."""

    async def handle_request(
        self, text: str, *, who: str, message_id: str = "", reach: CaseAccess = OWN_ONLY
    ) -> str | None:
        """By somebody over a line. The same `message_id` is the same request. `reach` is what the API would let him do
        with the cases of others."""
        ...

    async def handle_call(self, text: str, live: LiveCase, order: CallPartner) -> str | None:
        """By a case of this server. The same order is the same request."""
        ...


class MessageInbox(Protocol):
    """Takes messages for flows, and tells what answers them."""

    async def post(self, flow: str, channel: str, message: dict[str, Value], *, id: str, who: str) -> PostReceipt: ...
    async def answer(self, id: str) -> MessageReply: ...


class SoapGateway(Protocol):
    """What those who come with SOAP ask of a server."""

    async def endpoint(self, flow: str) -> Endpoint:
        """What a deployed flow offers. Raises NotFound."""
        ...

    def earlier_endpoints(self, flow: str) -> list[Endpoint]:
        """What earlier versions of it offered, of which there are cases that run."""
        ...

    async def post(
        self, flow: str, channel: str, message: Mapping[str, Value], *, id: str, who: str
    ) -> PostReceipt: ...
    async def answer(self, flow: str, id: str) -> MessageReply: ...
    def port(self, name: str) -> ServerPort | None: ...
    def port_wsdl(self, name: str) -> str:
        """The WSDL of a port, as it ships."""
        ...
