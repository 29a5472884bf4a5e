"""Messages for flows, as documents: what came, which case it was given to, and what was answered.

A message is written before its sender is answered, and its case is written before the case receives it. The answer is a
document of its own, written after the journal entry that it follows from. So a crash between any two steps leaves
documents that say what is still to be done, and doing it again does no harm. An answer is kept for a while, for senders
that ask twice."""

import hashlib
from typing import Final

import msgspec

from mendflow.core.model.faults import Fault
from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.values import Value
from mendflow.services.base.cluster import ENDPOINT, root_of
from mendflow.services.base.contracts import Clock
from mendflow.services.base.ledger import Ledger
from mendflow.stores.contract import Store

MESSAGE_KIND: Final = "message"
MESSAGE_REPLY_KIND: Final = "answer"
ENDPOINT_KIND: Final = "endpoint"

REPLIES_KEPT_MS: Final = 3_600_000
REPLIES_KEPT_MAX: Final = 10_000
"""How long, and how many, messages are kept after their answers, for senders that ask again."""


def endpoint_of(flow: str) -> CaseId:
    """The tree of all cases of a flow that were started by messages: they live on one server, where the flow's messages
    are. A dot would end the name of a tree."""
    return CaseId(f"{flow.replace('.', '_dot_')}{ENDPOINT}")


def message_key(flow: str, who: str, id: str) -> str:
    """The id of a message's document, from its sender and its id: senders choose ids freely, and two may choose the
    same."""
    named = hashlib.sha256(f"{who}\n{id}".encode()).hexdigest()[:32]
    return f"{endpoint_of(flow)}/{named}"


class MessageReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a request: a reply with a value, a reply with a fault or the fault that ended its case, or the word
    for a case that ended without a reply: `processTerminated` or `missingReply`. `case` had the message. The answer to
    a one-way message is empty."""

    value: Value = None
    fault: Fault | None = None
    end_fault: str = ""
    case: CaseId = CaseId("")


class PostReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is on disk. `id` is used to ask for its answer; `repeated`: it was there before."""

    id: str
    repeated: bool = False


class MessageDocument(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`number` is its position among the messages of its flow. `case` has it; without one it waits. `begins`: the
    message starts the case. `project` is that of the flow; one that was written without it is of the flow's."""

    id: str
    flow: str
    channel: str
    message: Value
    number: int
    received_at: Instant
    who: str = ""
    project: str = ""
    case: CaseId = CaseId("")
    begins: bool = False
    one_way: bool = False


class ReplyDocument(msgspec.Struct, kw_only=True, omit_defaults=True):
    answer: MessageReply
    at: Instant


class EndpointDocument(msgspec.Struct, kw_only=True):
    """How many messages came for a flow, and how many cases they started."""

    flow: str
    messages: int = 0
    cases: int = 0


_decode_message: Final = msgspec.json.Decoder(MessageDocument).decode
_decode_reply: Final = msgspec.json.Decoder(ReplyDocument).decode
_decode_endpoint: Final = msgspec.json.Decoder(EndpointDocument).decode


_Group = CaseId | tuple[str, str]


def _group(message: MessageDocument) -> _Group:
    """The messages that a case has, or those of a channel that wait."""
    return message.case or (message.flow, message.channel)


class MessageStore:
    """Stores messages. `open` are those that are not finished, in the order in which they came."""

    def __init__(self, store: Store, ledger: Ledger, clock: Clock) -> None:
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self.endpoints: dict[CaseId, EndpointDocument] = {}
        self.open: dict[str, MessageDocument] = {}
        self._groups: dict[_Group, dict[str, MessageDocument]] = {}
        self._replied: dict[str, Instant] = {}  # answered, and since when

    async def load(self, root: CaseId) -> bool:
        """Load the messages of a tree; whether the tree takes messages at all."""
        endpoint = await self._endpoint(root)
        if endpoint is None:
            return False
        self.endpoints[root] = endpoint
        answered: dict[str, Instant] = {}
        async for found in self._store.scan(MESSAGE_REPLY_KIND, f"{root}/"):
            self._ledger.known(MESSAGE_REPLY_KIND, found.id, found.version)
            answered[found.id] = _decode_reply(found.body).at
        messages: list[MessageDocument] = []
        async for found in self._store.scan(MESSAGE_KIND, f"{root}/"):
            self._ledger.known(MESSAGE_KIND, found.id, found.version)
            if found.id not in answered:
                messages.append(_decode_message(found.body))
        for message in sorted(messages, key=lambda each: each.number):
            self.open[message.id] = message
            self._groups.setdefault(_group(message), {})[message.id] = message
        self._replied.update(sorted(answered.items(), key=lambda each: each[1]))
        return True

    async def _endpoint(self, root: CaseId) -> EndpointDocument | None:
        found = await self._store.get(ENDPOINT_KIND, root)
        if found is None:
            return None
        self._ledger.known(ENDPOINT_KIND, root, found.version)
        return _decode_endpoint(found.body)

    async def open_endpoint(self, root: CaseId, flow: str) -> None:
        """Start to take messages for this flow."""
        if not await self.load(root):
            self.endpoints[root] = EndpointDocument(flow=flow)

    def knows(self, id: str) -> bool:
        """Whether this message came before."""
        return id in self.open or id in self._replied

    async def is_same(self, id: str, channel: str, message: Value) -> bool:
        """Whether the message with this key had this content, as far as it is still stored."""
        known = self.open.get(id)
        if known is None:
            await self._ledger.settled()
            found = await self._store.get(MESSAGE_KIND, id)
            known = _decode_message(found.body) if found is not None else None
        return known is None or (known.channel, known.message) == (channel, message)

    def add(self, message: MessageDocument) -> None:
        """A new message."""
        root = root_of(message.id)
        endpoint = self.endpoints[root]
        endpoint.messages += 1
        message.number = endpoint.messages
        self.open[message.id] = message
        self._groups.setdefault(_group(message), {})[message.id] = message
        self._ledger.touch(ENDPOINT_KIND, root, endpoint, from_outside=True)
        self._ledger.touch(MESSAGE_KIND, message.id, message, from_outside=True)
        self._drop_old_replies()

    def begin_case(self, message: MessageDocument) -> CaseId:
        """Start a new case with this message; returns the case's id."""
        root = root_of(message.id)
        endpoint = self.endpoints[root]
        endpoint.cases += 1
        self._ledger.touch(ENDPOINT_KIND, root, endpoint)
        self.assign(message, CaseId(f"{root}.{endpoint.cases}"), begins=True)
        return message.case

    def assign(self, message: MessageDocument, case: CaseId, *, begins: bool = False) -> None:
        """Give the message to a case; an empty one: it waits again."""
        self._leave_group(message)
        message.case, message.begins = case, begins
        self._groups.setdefault(_group(message), {})[message.id] = message
        self._ledger.touch(MESSAGE_KIND, message.id, message)

    def _leave_group(self, message: MessageDocument) -> None:
        messages = self._groups[_group(message)]
        del messages[message.id]
        if not messages:
            del self._groups[_group(message)]

    def close(self, message: MessageDocument, answer: MessageReply) -> None:
        """The message is finished."""
        now = self._clock.now()
        self._leave_group(message)
        del self.open[message.id]
        self._replied[message.id] = now
        self._ledger.touch(MESSAGE_REPLY_KIND, message.id, ReplyDocument(answer=answer, at=now))

    async def answer(self, id: str) -> MessageReply | None:
        """The answer to a finished message; None if it is not known, or no longer."""
        await self._ledger.settled()
        found = await self._store.get(MESSAGE_REPLY_KIND, id)
        return _decode_reply(found.body).answer if found is not None else None

    def of_case(self, case: CaseId) -> list[MessageDocument]:
        """The unfinished messages that a case has."""
        return list(self._groups.get(case, {}).values())

    def waiting(self, flow: str, channel: str) -> list[MessageDocument]:
        """The messages on a channel that no case has, in the order in which they came."""
        return list(self._groups.get((flow, channel), {}).values())

    def _drop_old_replies(self) -> None:
        until = self._clock.now() - REPLIES_KEPT_MS
        while self._replied and (len(self._replied) > REPLIES_KEPT_MAX or next(iter(self._replied.values())) < until):
            id = next(iter(self._replied))
            del self._replied[id]
            self._ledger.drop(MESSAGE_KIND, id)
            self._ledger.drop(MESSAGE_REPLY_KIND, id)
