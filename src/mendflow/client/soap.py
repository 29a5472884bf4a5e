"""The client's way to flows that speak SOAP: envelopes there and back, as they are."""

from urllib.parse import quote

from mendflow.client.transport import Transport


class SoapCalls:
    _transport: Transport

    def endpoint(self, flow: str) -> str:
        """The address where a deployed flow takes messages."""
        return f"{self._transport.url}{_path(flow)}"

    async def post(self, flow: str, envelope: bytes, *, action: str = "") -> tuple[int, bytes]:
        """Send a message to a flow, and wait for its reply as long as it takes: the status, and what was answered. Who
        gives the envelope a message id may send it again."""
        headers = {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": f'"{action}"'}
        return await self._transport.post(_path(flow), envelope, headers)


def _path(flow: str) -> str:
    return f"/soap/flows/{quote(flow, safe='')}"
