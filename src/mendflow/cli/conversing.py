"""A flow in BPEL begins with a message: what the command line says becomes that message, and the reply is told.

The message is an XML file, an envelope or what stands in one, or it is put together from parts."""

import asyncio
import sys
from pathlib import Path
from typing import Final

from mendflow.cli.printing import say
from mendflow.client import Client
from mendflow.core.model.flow import Flow
from mendflow.core.model.problems import BadFlow, Invalid, NotFound
from mendflow.core.model.values import Value
from mendflow.core.model.views import CaseView
from mendflow.core.model.xml import element_value
from mendflow.core.soap import ENVELOPE, joined
from mendflow.core.soap.endpoints import Inbound, endpoint_of
from mendflow.core.soap.envelope import BadEnvelope, element_of, read_envelope, write_envelope
from mendflow.core.soap.messages import request_body
from mendflow.core.xml import parse

LOOK_EVERY_S: Final = 0.05
STANDARD_INPUT: Final = "-"


class Conversation:
    """The first message of a case, and what is answered."""

    def __init__(self, flow: Flow, inbound: Inbound, envelope: bytes) -> None:
        self._flow = flow
        self._inbound = inbound
        self._envelope = envelope
        self._answered: asyncio.Task[tuple[int, bytes]] | None = None

    async def begin(self, client: Client) -> CaseView:
        """Send it, and see which case it begins."""
        before = {case.id for case in await client.cases(flow=self._flow.name, limit=1)}
        action = self._inbound.said.bound.action
        self._answered = asyncio.create_task(client.post(self._flow.name, self._envelope, action=action))
        while True:
            over = self._answered.done()
            begun = [case for case in await client.cases(flow=self._flow.name, limit=1) if case.id not in before]
            if begun:
                return begun[0]
            if over:
                status, body = await self._answered
                raise Invalid(f"no case began: status {status}: {said_in(body)}")
            await asyncio.sleep(LOOK_EVERY_S)

    async def end(self) -> str:
        """What was answered, when the case is over; empty for a message that nothing answers."""
        if self._answered is None:
            return ""
        _, body = await self._answered
        return said_in(body) if body else ""


def conversation(flow: Flow, operation: str, message: str, parts: list[str]) -> Conversation:
    """The message that begins a case, from what the command line says of it. Raises Invalid."""
    endpoint = endpoint_of(flow)
    begins = [each for each in endpoint.inbound if each.creates] if endpoint is not None else []
    inbound = _chosen(flow, begins, operation)
    if message and parts:
        raise Invalid("give --message or --part, not both")
    if message:
        return Conversation(flow, inbound, _given(message))
    assert endpoint is not None
    known = [part.name for part in endpoint.world.messages.get(inbound.said.operation.input, ())]
    values = _parts(parts, known, inbound.said.operation.name)
    return Conversation(flow, inbound, write_envelope(request_body(endpoint.world, inbound.said, values)))


def _chosen(flow: Flow, begins: list[Inbound], operation: str) -> Inbound:
    fitting = [each for each in begins if operation in ("", each.said.operation.name)]
    if len(fitting) == 1:
        return fitting[0]
    known = ", ".join(each.said.operation.name for each in begins) or "none"
    if not fitting:
        raise NotFound(f"no operation {operation} begins a case of {flow.name}; there are: {known}")
    raise Invalid(f"several operations begin a case of {flow.name}; choose one by --operation: {known}")


def _parts(pairs: list[str], known: list[str], operation: str) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or name not in known:
            raise Invalid(f"--part {pair!r}: write NAME=VALUE; the parts of {operation} are {', '.join(known)}")
        values[name] = element_value(text) if text.lstrip().startswith("<") else text
    if missing := [name for name in known if name not in values]:
        wanted = " ".join(f"--part {name}=..." for name in missing)
        raise Invalid(f"the message of {operation} needs {', '.join(missing)}; give {wanted}, or --message FILE")
    return values


def _given(file: str) -> bytes:
    """An envelope as it stands in a file; what is none goes into one."""
    try:
        data = sys.stdin.buffer.read() if file == STANDARD_INPUT else Path(file).read_bytes()
    except OSError as error:
        raise NotFound(f"--message {file}: {error.strerror}") from error
    try:
        root = parse(data, file)
    except BadFlow as refused:
        raise Invalid(refused.message) from refused
    return data if root.tag == joined(ENVELOPE, "Envelope") else write_envelope([element_of(root)])


def said_in(body: bytes) -> str:
    """What an envelope holds, for people to read."""
    try:
        envelope = read_envelope(body, "the reply")
    except BadEnvelope:
        return body.decode(errors="replace")
    fault = envelope.fault()
    if fault is not None:
        return "\n".join([f"fault: {fault.string}", *map(element_of, fault.detail)])
    return "\n".join(map(element_of, envelope.body))


def tell_reply(reply: str) -> None:
    if reply:
        say("reply:")
        print(reply)
