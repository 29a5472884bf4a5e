"""Who carries calls to partners, and who answers those that come: services know no HTTP, and wiring gives them somebody
who does."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from mendflow.core.engine.messages import CallPartner
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.values import Value
from mendflow.core.soap.endpoints import Endpoint
from mendflow.services.cases.live_case import LiveCase
from mendflow.services.messaging.message_store import Answer, Posted


class Called(NamedTuple):
    """What a partner answered."""

    status: int
    body: bytes


class CallFailed(Exception):
    """No answer came, or none that can be one; the fault says why."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class Caller(Protocol):
    async def call(self, address: str, body: bytes, *, action: str, assigned: bool = False) -> Called:
        """Send an envelope and wait for what comes back. Raises CallFailed. An `assigned` address came by a message
        and was not written by whoever deployed the flow: nobody is to reach by it what he could not reach himself."""
        ...


class NoCaller:
    async def call(self, address: str, body: bytes, *, action: str, assigned: bool = False) -> Called:
        message = f"this server has no way out, so {address} cannot be called"
        raise CallFailed(Fault(name="partnerUnreachable", category=Category.REFUSED, message=message))


NO_CALLER = NoCaller()


class Reach(NamedTuple):
    """What somebody may do with cases that are not his own: look at them, and end them."""

    looks: bool = False
    ends: bool = False


OWN_ONLY = Reach()


class Port(Protocol):
    """A port of the server itself, which speaks in elements: one comes in, and one goes out, or None where nothing is
    answered. Raises PortFault."""

    async def asked(self, text: str, *, who: str, message_id: str = "", reach: Reach = OWN_ONLY) -> str | None:
        """By somebody over a line. The same `message_id` is the same request. `reach` is what the API would let him do
        with the cases of others."""
        ...

    async def called(self, text: str, live: LiveCase, order: CallPartner) -> str | None:
        """By a case of this server. The same order is the same request."""
        ...


class Mail(Protocol):
    """Takes messages for flows, and tells what answers them."""

    async def post(self, flow: str, channel: str, message: dict[str, Value], *, id: str, who: str) -> Posted: ...
    async def answer(self, id: str) -> Answer: ...


class Office(Protocol):
    """What those who come with SOAP ask of a server."""

    async def endpoint(self, flow: str) -> Endpoint:
        """What a deployed flow offers. Raises NotFound."""
        ...

    def earlier(self, flow: str) -> list[Endpoint]:
        """What earlier versions of it offered, of which there are cases that run."""
        ...

    async def post(self, flow: str, channel: str, message: Mapping[str, Value], *, id: str, who: str) -> Posted: ...
    async def answer(self, flow: str, id: str) -> Answer: ...
    def port(self, name: str) -> Port | None: ...
    def port_wsdl(self, name: str) -> str:
        """The WSDL of a port, as it ships."""
        ...
