"""What the order dispatcher asks of messaging: calls of partners, replies, style sheets. Only BPEL flows use these."""

from typing import Protocol

from mendflow.core.engine.messages import CallPartner, RunStyleSheet, SendReply
from mendflow.services.cases.live_case import LiveCase


class PartnerCalls(Protocol):
    def call(self, live: LiveCase, order: CallPartner) -> None:
        """Begin a call; its end is reported later."""
        ...


class StyleSheetRuns(Protocol):
    def begin(self, live: LiveCase, order: RunStyleSheet) -> None:
        """Run a style sheet; its end is reported later."""
        ...


class MessageBoard(Protocol):
    def case_listens(self, live: LiveCase, channel: str) -> None:
        """An activity of a case begins to listen for a message."""
        ...

    def take_reply(self, live: LiveCase, order: SendReply) -> bool:
        """A case answers a message; whether the message came in here. Reported twice, it counts once."""
        ...
