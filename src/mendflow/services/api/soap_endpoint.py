"""Where those who come with SOAP are served: what a deployed flow offers, its mailroom, and the ports of the server.

An answer is waited for across a time when the store is away: the message is on disk, and so will be what answers it."""

from collections.abc import Mapping
from typing import Final

from mendflow.core.model.problems import NotFound, StoreUnavailable
from mendflow.core.model.values import Value
from mendflow.core.soap.endpoints import Endpoint, endpoint_of
from mendflow.services.cases.flows import FlowDocument
from mendflow.services.messaging.contracts import Port
from mendflow.services.messaging.message_store import Answer, Posted
from mendflow.services.runtime.server import House

AGAIN_MS: Final = 500


class LocalOffice:
    """`wsdls` are those of the server's own ports, by name."""

    def __init__(self, house: House, wsdls: Mapping[str, str]) -> None:
        self._house = house
        self._wsdls = wsdls
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

    def earlier(self, flow: str) -> list[Endpoint]:
        services = self._house.services
        newest = services.flows.newest(flow).digest
        versions = {
            live.document.digest: live.flow
            for live in services.manager.live.values()
            if live.document.flow == flow and live.document.digest != newest
        }
        return [found for each in versions.values() if (found := endpoint_of(each)) is not None]

    async def _flow(self, name: str) -> FlowDocument:
        """Another server may have deployed it."""
        flows = self._house.services.flows
        try:
            return flows.newest(name)
        except NotFound:
            await flows.look_again(name)
        return flows.newest(name)

    async def post(self, flow: str, channel: str, message: Mapping[str, Value], *, id: str, who: str) -> Posted:
        posted = await self._house.services.mailroom.post(flow, channel, dict(message), id=id, who=who)
        self._house.counts.messages.add(flow, "repeated" if posted.repeated else "taken")
        return posted

    async def answer(self, flow: str, id: str) -> Answer:
        while True:
            try:
                answer = await self._house.services.mailroom.answer(id)
            except StoreUnavailable:
                await self._house.clock.sleep(AGAIN_MS)
                continue
            result = "ended" if answer.ended else "fault" if answer.fault is not None else "reply"
            self._house.counts.messages.add(flow, result)
            return answer

    def port(self, name: str) -> Port | None:
        return self._house.services.ports.get(name)

    def port_wsdl(self, name: str) -> str:
        return self._wsdls[name]
