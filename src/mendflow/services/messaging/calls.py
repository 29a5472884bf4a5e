"""Calls of partners: what an invoke sends goes out as SOAP, and the answer finishes the invoke.

Nothing is sent before what it follows from is on disk. After a crash between a call and its answer the call is sent
again with the same id, so a partner can recognise it. The answer is reported to the case like any other end of an item,
so rules are asked about a failure before the flow is told."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from msgspec.structs import replace

from mendflow.core.engine.messages import CallPartner
from mendflow.core.model.errors import Forbidden, NotFound, StoreUnavailable, WrongServer
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.principals import Sight
from mendflow.core.model.values import Value
from mendflow.core.model.xml import XmlDefinitions, element_text, element_value
from mendflow.core.soap import messages, split_name
from mendflow.core.soap.envelope import MESSAGE_ID, OURS, BadEnvelope, header, read_envelope, write_envelope
from mendflow.core.soap.references import OWN_SCHEME, address_of, headers_of, own_link, with_public_references
from mendflow.services.base.contracts import FileDemand
from mendflow.services.base.counters import LabeledCounter
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.live_case import LiveCase
from mendflow.services.messaging.contracts import CallFailed, MessageInbox, PartnerClient, PartnerResponse, ServerPort
from mendflow.services.messaging.message_store import MessageReply
from mendflow.services.messaging.ports.messages import PortFault, invoke_fault
from mendflow.services.messaging.ports.proxy_messages import CALL_FLOW
from mendflow.services.messaging.running_calls import CaseTasks

log = logging.getLogger("mendflow.partners")

IN_PROCESS: Final = "mendflow:"
"""Addresses with this prefix are ports of this server."""
UNREACHABLE: Final = "partnerUnreachable"
REFUSED: Final = "partnerRefused"
_UNAVAILABLE_STATUSES: Final = frozenset({502, 503, 504})
_SUCCESS_STATUSES: Final = range(200, 300)

Finished = Callable[[CaseId, int, Outcome], Awaitable[None]]


class PartnerCaller:
    """`ports` are those of this server, by name. `url` is the address of this server; `router` takes messages for
    flows."""

    def __init__(
        self,
        *,
        caller: PartnerClient,
        ports: Mapping[str, ServerPort],
        ledger: Ledger,
        finished: Finished,
        url: Callable[[], str],
        router: MessageInbox,
        counts: LabeledCounter,
        hub: Hub,
    ) -> None:
        self._caller = caller
        self._ports = ports
        self._ledger = ledger
        self._finished = finished
        self._url = url
        self._router = router
        self._counts = counts
        self._files_of_case = hub.need(FileDemand, self)
        self.running = CaseTasks()

    def call(self, live: LiveCase, order: CallPartner) -> None:
        """Begin a call; its end is reported later."""
        self.running.begin(live.id, self._run_call(live, order))

    async def _run_call(self, live: LiveCase, order: CallPartner) -> None:
        try:
            await self._ledger.settled()
            outcome = await self._outcome(live, order)
        except StoreUnavailable:
            return  # the order is repeated after the services were rebuilt
        except CallFailed as failed:
            outcome = Outcome(fault=failed.fault)
        except Exception:  # an error in one call must not affect the others; the traceback goes to the log
            log.exception(
                "the call of %s by %s/%s failed", order.partner, live.id, order.serial, extra={"case": live.id}
            )
            fault = Fault(
                name=REFUSED,
                category=Category.REFUSED,
                message="internal error of mendflow during the call; the log has the traceback",
            )
            outcome = Outcome(fault=fault)
        self._counts.add(_outcome_word(outcome))
        await self._finished(live.id, order.serial, _with_partner(outcome, order))

    async def _outcome(self, live: LiveCase, order: CallPartner) -> Outcome:
        world = live.flow.xml
        assert world is not None, "only flows that speak XML have port types"
        address = address_of(order.reference)
        binding = messages.bind_operation(world, order.port_type, order.operation, address=address)
        message = order.value if isinstance(order.value, dict) else {}
        if address.startswith(OWN_SCHEME):
            return await self._post_to_flow(address, binding, message, live, order)
        if address.startswith(IN_PROCESS):
            return await self._call_port(address, binding, live, order)
        instance = live.case.index.serials.get(order.serial, 0)
        id = _message_id(live, live.unanswered.setdefault(instance, order.serial))
        soap_headers = headers_of(order.reference)
        body = with_public_references(
            write_envelope(messages.request_body(world, binding, message), [id, *soap_headers]), self._url()
        )
        assigned = _is_assigned(live, address)
        answer = await self._caller.call(address, body, action=binding.bound.action, assigned=assigned)
        heard = await asyncio.to_thread(_read_answer, world, binding, address, answer)
        if heard.fault is None or not heard.fault.infrastructure:
            live.unanswered.pop(instance, None)
        return heard

    async def _post_to_flow(
        self,
        address: str,
        binding: messages.BoundOperation,
        message: dict[str, Value],
        live: LiveCase,
        order: CallPartner,
    ) -> Outcome:
        """Give a message to a flow of this server, of the case's own project."""
        flow, link = own_link(address)
        channel, id = f"{link}.{order.operation}", f"{live.id}/{order.serial}"
        try:
            await self._files_of_case().demand_value(live.id, message)
            own = Sight(frozenset({live.document.project}))
            posted = await self._router.post(flow, channel, message, id=id, who=live.document.owner, sight=own)
        except (NotFound, WrongServer) as error:
            fault = Fault(name=UNREACHABLE, category=Category.SCHEDULER_DOWN, message=error.message)
            raise CallFailed(fault) from error
        except Forbidden as error:
            raise CallFailed(Fault(name=REFUSED, category=Category.REFUSED, message=error.message)) from error
        if not binding.operation.output:
            return Outcome()
        answer = await self._router.answer(posted.id)
        await self._demand_own(answer)
        if answer.end_fault:
            sentence = f"{flow} ended without a reply"
            return Outcome(fault=Fault(name=answer.end_fault, category=Category.FLOW, message=sentence))
        return Outcome(outputs=answer.value, fault=answer.fault)

    async def _demand_own(self, answer: MessageReply) -> None:
        """Refuse an answer with a file that did not come to the case which answers: here it would count as one that has
        come."""
        try:
            if answer.case:
                given = [answer.value, answer.fault.data if answer.fault is not None else None]
                await self._files_of_case().demand_value(answer.case, given)
        except Forbidden as error:
            raise CallFailed(Fault(name=REFUSED, category=Category.REFUSED, message=error.message)) from error

    async def _call_port(
        self, address: str, binding: messages.BoundOperation, live: LiveCase, order: CallPartner
    ) -> Outcome:
        """Call a port of this server in process."""
        port, world = self._ports.get(address.removeprefix(IN_PROCESS)), live.flow.xml
        assert world is not None
        if port is None:
            known = ", ".join(f"{IN_PROCESS}{each}" for each in self._ports) or "none"
            sentence = f"there is no port {address} on this server (known: {known})"
            raise CallFailed(Fault(name=UNREACHABLE, category=Category.REFUSED, message=sentence))
        message = order.value if isinstance(order.value, dict) else {}
        element = next((found for each in message.values() if (found := element_text(each)) is not None), "")
        try:
            answer = await port.handle_call(element, live, order)
        except PortFault as fault:
            raise CallFailed(
                invoke_fault(fault, binding.operation.faults.get(split_name(fault.name)[1], ""))
            ) from fault
        parts = world.messages.get(binding.operation.output, ())
        return Outcome(outputs={parts[0].name: element_value(answer)} if answer is not None and parts else None)


def _is_assigned(live: LiveCase, address: str) -> bool:
    """Whether an address came in a message. All addresses that the proxy calls did."""
    assert live.flow.xml is not None
    return live.flow.name == CALL_FLOW or all(port.address != address for port in live.flow.xml.ports)


def _message_id(live: LiveCase, serial: int) -> str:
    """The id of a call. A call without an answer has the same id when it is repeated, because the partner may have
    accepted it. Other servers may have cases of the same name, and so may this one have had before its store was
    created anew."""
    return header(OURS, MESSAGE_ID, f"urn:mendflow:{live.id}/{serial}/{live.document.started_at}")


def _with_partner(outcome: Outcome, order: CallPartner) -> Outcome:
    """The fault with the partner that could not be reached, so that rules can ask for it."""
    fault = outcome.fault
    if fault is None or fault.data is not None or not fault.infrastructure:
        return outcome
    about = {"port_type": order.port_type, "operation": order.operation, "address": address_of(order.reference)}
    return replace(outcome, fault=replace(fault, data=about))


def _outcome_word(outcome: Outcome) -> str:
    """How a call ended, for the metrics."""
    if outcome.fault is None:
        return "answered"
    return "fault" if outcome.fault.category is Category.FLOW else outcome.fault.name


def _read_answer(
    world: XmlDefinitions, binding: messages.BoundOperation, address: str, answer: PartnerResponse
) -> Outcome:
    """Decode an answer. Only an envelope can contain a fault of the partner itself; any other bad status comes from
    something in between."""
    if answer.status in _SUCCESS_STATUSES and not binding.operation.output:
        return Outcome()
    try:
        envelope = read_envelope(answer.body, f"the answer of {address}")
        fault = envelope.fault()
        if fault is not None:
            return Outcome(fault=messages.fault_of(world, binding, fault))
        if answer.status not in _SUCCESS_STATUSES:
            return Outcome(fault=_status(address, answer.status))
        return Outcome(outputs=dict(messages.read_answer(world, binding, envelope)))
    except BadEnvelope as bad:
        if answer.status not in _SUCCESS_STATUSES:
            return Outcome(fault=_status(address, answer.status))
        sentence = f"{address} gave an answer that is none to {binding.operation.name}: {bad.message}"
        return Outcome(fault=Fault(name=REFUSED, category=Category.REFUSED, message=sentence))


def _status(address: str, status: int) -> Fault:
    sentence = f"{address} answered with status {status}"
    if status in _UNAVAILABLE_STATUSES:
        return Fault(name=UNREACHABLE, category=Category.SCHEDULER_DOWN, message=sentence)
    return Fault(name=REFUSED, category=Category.REFUSED, message=sentence)
