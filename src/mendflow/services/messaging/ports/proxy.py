"""The proxy port: it calls a partner on behalf of a client, as a case of one invoke.

So a call is durable, is mended by rules before the client is told of a failure, and is found again by its key after a
crash on either side."""

from mendflow.core.engine.messages import CallPartner
from mendflow.core.model.faults import Category, Fault
from mendflow.services.cases.live_case import CaseDocument, LiveCase
from mendflow.services.messaging.contracts import OWN_ONLY, CaseAccess
from mendflow.services.messaging.ports import proxy_messages
from mendflow.services.messaging.ports.cases import PortCases, Requester
from mendflow.services.messaging.ports.messages import raising_port_faults, request
from mendflow.services.messaging.ports.proxy_messages import OPERATIONS, PROXY, PartnerCall


class ProxyPort:
    def __init__(self, cases: PortCases) -> None:
        self._cases = cases

    async def handle_request(
        self, text: str, *, who: str, message_id: str = "", reach: CaseAccess = OWN_ONLY
    ) -> str | None:
        """Make the call of a request over the network, and answer with its result. Clients cannot ask about calls of
        others here."""
        return await self._handle(text, Requester(who=who, key=message_id))

    async def handle_call(self, text: str, live: LiveCase, order: CallPartner) -> str | None:
        """The same for an order of a case."""
        return await self._handle(text, Requester(live=live, serial=order.serial, link=order.partner))

    async def _handle(self, text: str, by: Requester) -> str | None:
        asked = request(PROXY, text, OPERATIONS)
        with raising_port_faults(PROXY):
            call = proxy_messages.call_in(asked)
            inputs = {"message": call.message}
            document = await self._cases.begin(proxy_messages.flow_of(call), inputs, by.with_key(PROXY, call.key))
            if asked.local == "post":
                return None
            return self._response(call, await self._cases.wait_for_end(document))

    def _response(self, call: PartnerCall, document: CaseDocument) -> str:
        if document.status == "completed":
            return proxy_messages.answer_element(document.id, call.answer, document.outputs.get("answer"))
        fault = document.fault
        if fault is None:
            message = f"the call {document.id} was {document.status}"
            fault = Fault(name="partnerUnreachable", category=Category.CANCELLED, message=message)
        raise proxy_messages.failure(call, fault)
