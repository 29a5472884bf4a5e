"""The message that starts a case of a BPEL flow, and its reply.

The message is an XML file, with or without an envelope, or is built from parts."""

import asyncio
import sys
from pathlib import Path
from typing import Final

from mendflow.cli.printing import say
from mendflow.client import Client
from mendflow.core.model.errors import BadFlow, InvalidRequest, NotFound
from mendflow.core.model.flow import Flow
from mendflow.core.model.values import Value
from mendflow.core.model.views import CaseView
from mendflow.core.model.xml import element_value
from mendflow.core.soap import ENVELOPE, qualified_name
from mendflow.core.soap.endpoints import InboundOperation, endpoint_of
from mendflow.core.soap.envelope import BadEnvelope, element_of, read_envelope, write_envelope
from mendflow.core.soap.messages import request_body
from mendflow.core.xml import parse

LOOK_EVERY_S: Final = 0.05
STANDARD_INPUT: Final = "-"


class StartMessage:
    """The first message of a case, and its reply."""

    def __init__(self, flow: Flow, inbound: InboundOperation, envelope: bytes) -> None:
        self._flow = flow
        self._inbound = inbound
        self._envelope = envelope
        self._answer: asyncio.Task[tuple[int, bytes]] | None = None

    async def begin(self, client: Client) -> CaseView:
        """Send it; returns the case that it starts."""
        before = {case.id for case in await client.cases(flow=self._flow.name, limit=1)}
        action = self._inbound.binding.bound.action
        self._answer = asyncio.create_task(client.post(self._flow.name, self._envelope, action=action))
        while True:
            over = self._answer.done()
            begun = [case for case in await client.cases(flow=self._flow.name, limit=1) if case.id not in before]
            if begun:
                return begun[0]
            if over:
                status, body = await self._answer
                raise InvalidRequest(f"no case was started: status {status}: {body_text(body)}")
            await asyncio.sleep(LOOK_EVERY_S)

    async def end(self) -> str:
        """The reply, when the case has ended; empty for a one-way message."""
        if self._answer is None:
            return ""
        _, body = await self._answer
        return body_text(body) if body else ""


def build_start_message(flow: Flow, operation: str, message: str, parts: list[str]) -> StartMessage:
    """The message that starts a case, from the options. Raises InvalidRequest."""
    endpoint = endpoint_of(flow)
    begins = [each for each in endpoint.inbound if each.creates] if endpoint is not None else []
    inbound = _choose_operation(flow, begins, operation)
    if message and parts:
        raise InvalidRequest("give --message or --part, not both")
    if message:
        return StartMessage(flow, inbound, _envelope_from_file(message))
    assert endpoint is not None
    known = [part.name for part in endpoint.world.messages.get(inbound.binding.operation.input, ())]
    values = _parts(parts, known, inbound.binding.operation.name)
    return StartMessage(flow, inbound, write_envelope(request_body(endpoint.world, inbound.binding, values)))


def _choose_operation(flow: Flow, begins: list[InboundOperation], operation: str) -> InboundOperation:
    fitting = [each for each in begins if operation in ("", each.binding.operation.name)]
    if len(fitting) == 1:
        return fitting[0]
    known = ", ".join(each.binding.operation.name for each in begins) or "none"
    if not fitting:
        raise NotFound(f"no operation {operation} starts a case of {flow.name}; there are: {known}")
    raise InvalidRequest(f"several operations start a case of {flow.name}; choose one by --operation: {known}")


def _parts(pairs: list[str], known: list[str], operation: str) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or name not in known:
            raise InvalidRequest(f"--part {pair!r}: write NAME=VALUE; the parts of {operation} are {', '.join(known)}")
        values[name] = element_value(text) if text.lstrip().startswith("<") else text
    if missing := [name for name in known if name not in values]:
        wanted = " ".join(f"--part {name}=..." for name in missing)
        raise InvalidRequest(f"the message of {operation} needs {', '.join(missing)}; give {wanted}, or --message FILE")
    return values


def _envelope_from_file(file: str) -> bytes:
    """An envelope from a file; other XML is wrapped in one."""
    try:
        data = sys.stdin.buffer.read() if file == STANDARD_INPUT else Path(file).read_bytes()
    except OSError as error:
        raise NotFound(f"--message {file}: {error.strerror}") from error
    try:
        root = parse(data, file)
    except BadFlow as refused:
        raise InvalidRequest(refused.message) from refused
    return data if root.tag == qualified_name(ENVELOPE, "Envelope") else write_envelope([element_of(root)])


def body_text(body: bytes) -> str:
    """The body of an envelope, for people."""
    try:
        envelope = read_envelope(body, "the reply")
    except BadEnvelope:
        return body.decode(errors="replace")
    fault = envelope.fault()
    if fault is not None:
        return "\n".join([f"fault: {fault.string}", *map(element_of, fault.detail)])
    return "\n".join(map(element_of, envelope.body))


def print_reply(reply: str) -> None:
    if reply:
        say("reply:")
        print(reply)
