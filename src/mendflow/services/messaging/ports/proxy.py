"""The proxy port: it calls a partner on behalf of a client, as a case of one invoke.

So a call is durable, is mended by rules before the client is told of a failure, and is found again by its key after a
crash on either side. A client may hold the line until the answer is there, or make short requests: draw a key, begin
the call under it, ask until it is over, take the answer. None of these waits for the partner, and each may be
repeated."""

from collections.abc import Callable
from typing import Final

from mendflow.core.engine.messages import CallPartner
from mendflow.core.model.faults import Category, Fault
from mendflow.core.xml.tree import Element
from mendflow.services.cases.live_case import CaseDocument, LiveCase
from mendflow.services.messaging.contracts import CaseAccess
from mendflow.services.messaging.ports import proxy_messages
from mendflow.services.messaging.ports.cases import PortCases, Requester
from mendflow.services.messaging.ports.messages import raising_port_faults, refusal, request
from mendflow.services.messaging.ports.proxy_messages import OPERATIONS, PROXY, DeclaredAnswer

GRACE_MS: Final = 1_000
"""How long `begin` waits for a partner that answers at once, so that most calls need not be asked about."""
KEY_BYTES: Final = 16
ASK_AFTER_MS: Final = 1_000
ASK_AFTER_MS_MAX: Final = 60_000
ASKS_PER_AGE: Final = 10
"""The longer a call lasts, the longer its client waits before it asks again: a tenth of the call's age."""


class ProxyPort:
    """`chance` gives so many random bytes, in hexadecimal."""

    def __init__(self, cases: PortCases, chance: Callable[[int], str]) -> None:
        self._cases = cases
        self._chance = chance

    async def handle_request(self, text: str, *, who: str, message_id: str = "", reach: CaseAccess) -> str | None:
        """Answer a request over the network. Clients cannot ask about calls of others here."""
        return await self._handle(text, Requester(who=who, key=message_id, reach=reach))

    async def handle_call(self, text: str, live: LiveCase, order: CallPartner) -> str | None:
        """The same for an order of a case."""
        return await self._handle(text, Requester(live=live, serial=order.serial, link=order.partner))

    async def _handle(self, text: str, by: Requester) -> str | None:
        asked = request(PROXY, text, OPERATIONS)
        with raising_port_faults(PROXY):
            match asked.local:
                case "open":
                    # The orders of a case have serials, which are keys enough.
                    return proxy_messages.key_element(self._chance(KEY_BYTES) if by.live is None else "")
                case "ask":
                    return self._progress(await self._find_call(asked, by))
                case "result":
                    return await self._result(await self._find_call(asked, by))
            return await self._make_call(asked, by)

    async def _make_call(self, asked: Element, by: Requester) -> str | None:
        call = proxy_messages.call_in(asked)
        begins = asked.local == "begin"
        # The message id of a `begin` says nothing: an engine draws another when it repeats the request.
        by = by._replace(key="") if begins else by
        if begins and by.live is None and not call.key:
            raise refusal(PROXY, ["<key> is missing: draw one with `open`, so that a repetition is the same call"])
        inputs = {"message": call.message}
        document = await self._cases.begin(proxy_messages.flow_of(call), inputs, by.with_key(PROXY, call.key))
        if asked.local == "post":
            return None
        if begins and by.live is None:
            return self._progress(await self._cases.wait_briefly(document, GRACE_MS))
        document = await self._cases.wait_for_end(document)  # a case holds no line
        return self._progress(document) if begins else _response(call, document)

    def _progress(self, document: CaseDocument) -> str:
        after_ms = min(max(self._cases.age_ms(document) // ASKS_PER_AGE, ASK_AFTER_MS), ASK_AFTER_MS_MAX)
        return proxy_messages.progress_element(document.id, over=not document.live, ask_after_ms=after_ms)

    async def _result(self, document: CaseDocument) -> str:
        if document.live:
            raise refusal(PROXY, [f"the call {document.id} is not over; ask until it is"])
        return _response(proxy_messages.declared_answer_of(await self._cases.flow_of(document)), document)

    async def _find_call(self, asked: Element, by: Requester) -> CaseDocument:
        """A call of this client, with its end on disk if it is over."""
        id = proxy_messages.call_id_in(asked)
        document = await self._cases.find(id)
        if document is None or document.void or not by.owns(document, PROXY):
            raise refusal(PROXY, [f"there is no call {id!r:.200} here; give the <callId> that `begin` answered"])
        return document if document.live else await self._cases.wait_for_end(document)


def _response(declared: DeclaredAnswer, document: CaseDocument) -> str:
    if document.status == "completed":
        return proxy_messages.answer_element(document.id, declared.answer, document.outputs.get("answer"))
    fault = document.fault
    if fault is None:
        message = f"the call {document.id} was {document.status}"
        fault = Fault(name="partnerUnreachable", category=Category.CANCELLED, message=message)
    raise proxy_messages.failure(declared, fault)
