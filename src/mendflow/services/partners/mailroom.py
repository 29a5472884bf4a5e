"""Messages from outside for flows in BPEL, each taken to the one case that it is meant for, or kept until there is one.

Of the live cases of a flow the oldest that waits for exactly this message gets it; else, where such messages begin
cases, a new one does; else the oldest that waits for any such message; else it waits, and is tried again whenever a
case of the flow begins to listen."""

from mendflow.core.model.values import Value
from mendflow.services.partners.mail_book import Answer, Posted, endpoint_of

__all__ = ["Answer", "Mailroom", "Posted", "endpoint_of"]


class Mailroom:
    async def post(self, flow: str, channel: str, message: dict[str, Value], *, id: str, who: str) -> Posted:
        """Take a message for a flow; it is on disk when this returns. The same id is the same message. Raises NotFound
        if the flow, or the channel, is not there; Elsewhere if the flow's cases live on another server."""
        raise NotImplementedError

    async def answer(self, id: str) -> Answer:
        """What answers a request, by the id of what was posted; waits for it as long as it takes."""
        raise NotImplementedError
