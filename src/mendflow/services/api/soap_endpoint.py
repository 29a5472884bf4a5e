"""Answers SOAP requests: the WSDL of a deployed flow, messages for flows, and the ports of the server.

A request keeps waiting for its answer while the store is unreachable: the message is on disk, and the answer will
be."""

from collections.abc import Mapping
from typing import Final

from mendflow.core.model.errors import NotFound, StoreUnavailable
from mendflow.core.model.principals import EVERYTHING
from mendflow.core.model.values import Value
from mendflow.core.soap.endpoints import Endpoint, endpoint_of
from mendflow.services.cases.flows import FlowDocument
from mendflow.services.messaging.contracts import ServerPort
from mendflow.services.messaging.message_store import MessageReply, PostReceipt
from mendflow.services.runtime.server import Server

AGAIN_MS: Final = 500


class LocalSoapGateway:
    """`wsdls` are the descriptions of the server's own ports, by name."""

    def __init__(self, server: Server, wsdls: Mapping[str, str]) -> None:
        self._server = server
        self._port_wsdls = wsdls
        # by flow: the digest of the version that the endpoint was made of
        self._known: dict[str, tuple[str, Endpoint]] = {}

    async def endpoint(self, flow: str) -> Endpoint:
        document = await self._flow(flow)
        known = self._known.get(flow)
        if known is None or known[0] != document.digest:
            found = endpoint_of(document.flow)
            if found is None or not found.inbound:
                raise NotFound(f"the flow {flow} takes no messages by SOAP; start it with `mendflow start {flow}`")
            known = self._known[flow] = document.digest, found
        return known[1]

    def earlier_endpoints(self, flow: str) -> list[Endpoint]:
        runtime = self._server.runtime
        newest = runtime.flows.newest(flow)
        versions = {
            live.document.digest: live.flow
            for live in runtime.manager.live.values()
            if (live.document.flow, live.document.project) == (flow, newest.project)
            and live.document.digest != newest.digest
        }
        return [found for each in versions.values() if (found := endpoint_of(each)) is not None]

    async def _flow(self, name: str) -> FlowDocument:
        """Another server may have deployed a newer version."""
        flows = self._server.runtime.flows
        try:
            return flows.newest(name)
        except NotFound:
            await flows.refresh(name)
        return flows.newest(name)

    async def post(self, flow: str, channel: str, message: Mapping[str, Value], *, id: str, who: str) -> PostReceipt:
        """Whether the sender may tell this flow something was decided at the gate."""
        router = self._server.runtime.message_router
        posted = await router.post(flow, channel, dict(message), id=id, who=who, sight=EVERYTHING)
        self._server.counts.messages.add(flow, "repeated" if posted.repeated else "taken")
        return posted

    async def answer(self, flow: str, id: str) -> MessageReply:
        while True:
            try:
                answer = await self._server.runtime.message_router.answer(id)
            except StoreUnavailable:
                await self._server.clock.sleep(AGAIN_MS)
                continue
            result = "ended" if answer.end_fault else "fault" if answer.fault is not None else "reply"
            self._server.counts.messages.add(flow, result)
            return answer

    def port(self, name: str) -> ServerPort | None:
        return self._server.runtime.ports.get(name)

    def port_wsdl(self, name: str) -> str:
        return self._port_wsdls[name]
