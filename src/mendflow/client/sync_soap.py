"""Messages to flows that speak SOAP, for programs that wait."""

from mendflow.client.sync_base import SyncBase


class SyncSoap(SyncBase):
    def endpoint(self, flow: str) -> str:
        return self._client.endpoint(flow)

    def post(self, flow: str, envelope: bytes, *, action: str = "") -> tuple[int, bytes]:
        return self._run(self._client.post(flow, envelope, action=action))
