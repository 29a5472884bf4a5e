"""Where those who come with SOAP are served: what a deployed flow offers, its mailroom, and the ports of the server.

An answer is waited for across a time when the store is away: the message is on disk, and so will be what answers it."""

from collections.abc import Mapping
from typing import Final

from mendflow.core.model.errors import NotFound, StoreUnavailable
from mendflow.core.model.values import Value
from mendflow.core.soap.endpoints import Endpoint, endpoint_of
from mendflow.services.cases.flows import FlowDocument
from mendflow.services.messaging.contracts import ServerPort
from mendflow.services.messaging.message_store import MessageReply, PostReceipt
from mendflow.services.runtime.server import Server

AGAIN_MS: Final = 500


class LocalSoapGateway:
    """`wsdls` are those of the server's own ports, by name."""

    def __init__(self, server: Server, wsdls: Mapping[str, str]) -> None:
        self._server = server
        self._port_wsdls = wsdls
        self._known: dict[str, tuple[str, Endpoint]] = {}  # by flow: the digest of what was looked at

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
        newest = runtime.flows.newest(flow).digest
        versions = {
            live.document.digest: live.flow
            for live in runtime.manager.live.values()
            if live.document.flow == flow and live.document.digest != newest
        }
        return [found for each in versions.values() if (found := endpoint_of(each)) is not None]

    async def _flow(self, name: str) -> FlowDocument:
        """Another server may have deployed it."""
        flows = self._server.runtime.flows
        try:
            return flows.newest(name)
        except NotFound:
            await flows.look_again(name)
        return flows.newest(name)

    async def post(self, flow: str, channel: str, message: Mapping[str, Value], *, id: str, who: str) -> PostReceipt:
        posted = await self._server.runtime.message_router.post(flow, channel, dict(message), id=id, who=who)
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
