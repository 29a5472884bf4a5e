"""Contracts for calls to partners and for incoming requests: services know no HTTP, and wiring.py gives them
implementations."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from mendflow.core.engine.messages import CallPartner
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.principals import DEFAULT_PROJECT, NOTHING, Sight
from mendflow.core.model.values import Value
from mendflow.core.soap.endpoints import Endpoint
from mendflow.services.cases.live_case import LiveCase
from mendflow.services.messaging.message_store import MessageReply, PostReceipt


class PartnerResponse(NamedTuple):
    """What a partner answered."""

    status: int
    body: bytes


class CallFailed(Exception):
    """No valid answer came; the fault says why."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class PartnerClient(Protocol):
    async def call(self, address: str, body: bytes, *, action: str, assigned: bool = False) -> PartnerResponse:
        """Send an envelope and wait for the answer. Raises CallFailed. An `assigned` address came in a message and was
        not written by the author of the flow: it must not be used to reach hosts that only the server can reach."""
        ...


class NoPartnerClient:
    async def call(self, address: str, body: bytes, *, action: str, assigned: bool = False) -> PartnerResponse:
        message = f"this server has no way out, so {address} cannot be called"
        raise CallFailed(Fault(name="partnerUnreachable", category=Category.REFUSED, message=message))


NO_PARTNER_CLIENT = NoPartnerClient()


class CaseAccess(NamedTuple):
    """What a caller may do with cases of others: look at those of some projects, and cancel those of some. Cases
    that it starts belong to `project`."""

    can_view: Sight = NOTHING
    can_end: Sight = NOTHING
    project: str = DEFAULT_PROJECT


OWN_ONLY = CaseAccess()


class ServerPort(Protocol):
    """A port of the server itself, which exchanges XML elements: one comes in, and one goes out, or None where there is
    no answer. Raises PortFault."""

    async def handle_request(self, text: str, *, who: str, message_id: str = "", reach: CaseAccess) -> str | None:
        """A request over the network. The same `message_id` is the same request. `reach` is what the API would let the
        caller do with the cases of others."""
        ...

    async def handle_call(self, text: str, live: LiveCase, order: CallPartner) -> str | None:
        """A request of a case of this server. The same order is the same request."""
        ...


class MessageInbox(Protocol):
    """Takes messages for flows, and returns their answers."""

    async def post(
        self, flow: str, channel: str, message: dict[str, Value], *, id: str, who: str, sight: Sight
    ) -> PostReceipt: ...
    async def answer(self, id: str) -> MessageReply: ...


class SoapGateway(Protocol):
    """What SOAP clients ask of a server."""

    async def endpoint(self, flow: str) -> Endpoint:
        """The endpoint of a deployed flow. Raises NotFound."""
        ...

    def earlier_endpoints(self, flow: str) -> list[Endpoint]:
        """The endpoints of earlier versions that have running cases."""
        ...

    async def post(
        self, flow: str, channel: str, message: Mapping[str, Value], *, id: str, who: str
    ) -> PostReceipt: ...
    async def answer(self, flow: str, id: str) -> MessageReply: ...
    def port(self, name: str) -> ServerPort | None: ...
    def port_wsdl(self, name: str) -> str:
        """The WSDL of a port, as shipped."""
        ...
