"""Messages for flows, as documents: what came, which case it went to, and what was answered.

A message is written down before anybody is told that it came. Which case it goes to is written before that case hears
of it, and what answers it before whoever asked does: so a crash between any two steps leaves a document that says what
is still to be done, and doing it again does no harm."""

import hashlib
from typing import Final, Literal

import msgspec

from mendflow.core.model.faults import Fault
from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.values import Value

MAIL_KIND: Final = "mail"
ENDPOINT_KIND: Final = "endpoint"

MailState = Literal["waiting", "given", "over"]
"""Nobody took it yet; a case has it; nothing more follows from it."""


def endpoint_of(flow: str) -> CaseId:
    """The tree that all cases of a flow belong to which messages began: they live on one server, where its messages
    are. Dots would end the name of a tree."""
    return CaseId(f"{flow.replace('.', '_dot_')}-soap")


def mail_id(flow: str, id: str) -> str:
    """The name of a message's document: whoever sends it may call it what they like."""
    return f"{endpoint_of(flow)}/{hashlib.sha256(id.encode()).hexdigest()[:32]}"


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of a request: a reply with a value, a reply with a fault or the fault that ended its case, or the
    word for a case that ended without any: `processTerminated` or `missingReply`. `case` had the message."""

    value: Value = None
    fault: Fault | None = None
    ended: str = ""
    case: CaseId = CaseId("")


class Posted(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is on disk. `id` is what its answer is asked for by; `repeated`: it was there before."""

    id: str
    repeated: bool = False


class MailDocument(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`number` is its place among the messages of its flow; `begins` says that the case begins with it."""

    id: str
    flow: str
    channel: str
    message: Value
    number: int
    came_at: Instant
    who: str = ""
    state: MailState = "waiting"
    case: CaseId = CaseId("")
    begins: bool = False
    answer: Answer | None = None
    over_at: Instant = 0


class EndpointDocument(msgspec.Struct, kw_only=True):
    """How many messages came for a flow, and how many cases they began."""

    flow: str
    came: int = 0
    begun: int = 0


decode_mail: Final = msgspec.json.Decoder(MailDocument).decode
decode_endpoint: Final = msgspec.json.Decoder(EndpointDocument).decode
