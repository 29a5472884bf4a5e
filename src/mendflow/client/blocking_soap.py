"""Messages to flows that speak SOAP, for programs that wait."""

from mendflow.client.waiting import Waiting


class BlockingSoap(Waiting):
    def endpoint(self, flow: str) -> str:
        return self._client.endpoint(flow)

    def post(self, flow: str, envelope: bytes, *, action: str = "") -> tuple[int, bytes]:
        return self._wait(self._client.post(flow, envelope, action=action))
