"""Requests of whom it is not known yet who sent them: whatever is sent without a token, or with one that was not looked
at yet. They are paid by the address that they come from."""

from typing import Final

from litestar.types import HTTPScope, Message, Send

from mendflow.server.request_quotas import RequestBuckets, RequestQuotas

UNIDENTIFIED: Final = "unidentified request"


class UnidentifiedRequest:
    """A request whose sender is not known yet. What it takes until then, and all of it if its sender is never known, is
    taken from the bucket of its address; if that is empty, the answer waits for a moment."""

    def __init__(self, quotas: RequestQuotas, scope: HTTPScope, send: Send) -> None:
        client = scope.get("client")
        self.address = client[0] if client else ""
        self.is_known = False
        self._quotas, self._send, self._path = quotas, send, scope["path"]
        scope.setdefault("state", {})[UNIDENTIFIED] = self

    def buckets(self) -> RequestBuckets:
        return self._quotas.of_address(self.address)

    def is_unknown(self) -> bool:
        return not self.is_known

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and not self.is_known:
            await self._quotas.wait_unknown(self.address, self._path)
        await self._send(message)


def identify(scope: HTTPScope) -> None:
    """It is known by now who sent this request."""
    request = scope.get("state", {}).get(UNIDENTIFIED)
    if request is not None:
        request.is_known = True
