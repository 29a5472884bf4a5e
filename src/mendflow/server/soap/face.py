"""The SOAP face of a server: flows that take messages, and the server's own ports.

    POST /soap/flows/NAME[/LINK]   a message for a flow; a request waits for its reply as long as the caller does
    POST /soap/NAME                a request to a port of the server
    GET  ...?wsdl                  what can be said there, with the address by which it was asked

A message is on disk before anything is answered. Who hangs up loses the answer and nothing else: the same message id
asks for it again. Whatever is wrong is said as a SOAP fault."""

import asyncio
import re
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeVar
from urllib.parse import parse_qs

from litestar.types import HTTPScope, Receive, Send

from mendflow.core.model.problems import BadFlow, Elsewhere, Invalid, Mistake, NotFound, NotNow, Unreachable
from mendflow.core.model.xml import element_text
from mendflow.core.soap import CONTENT_TYPE, ENVELOPE, split
from mendflow.core.soap.endpoints import Endpoint, Inbound
from mendflow.core.soap.envelope import (
    MESSAGE_BYTES_MAX,
    BadEnvelope,
    element_of,
    read_envelope,
    text,
    write_envelope,
    write_fault,
)
from mendflow.core.soap.messages import Message, answer_body, asked, fault_detail, fault_words
from mendflow.core.soap.references import outward
from mendflow.core.soap.wsdl import Served, at_address, schema_of, wsdl_of
from mendflow.core.xml.encodings import MARKS, TAKEN
from mendflow.server import answers
from mendflow.server.access import API, Caller, may
from mendflow.server.answers import HungUp, MethodRefused
from mendflow.server.body import whole
from mendflow.server.forwarding import until_gone
from mendflow.server.holds import Holds
from mendflow.server.pilots import STOPPING
from mendflow.services.messaging.contracts import Office, Reach
from mendflow.services.messaging.message_store import Answer
from mendflow.services.messaging.ports.job_messages import UNKNOWN
from mendflow.services.messaging.ports.messages import REFUSED, PortFault

T = TypeVar("T")

SOAP: Final = "/soap/"
MARKED: Final = tuple(mark for mark, _ in MARKS)
_CHARSET: Final = re.compile(r"""charset\s*=\s*["']?([A-Za-z0-9._-]{1,40})""", re.IGNORECASE)
FLOWS: Final = "flows"
LARGE_BYTES: Final = 1 << 16
"""From this size on a message is read beside the loop, where nobody waits for it."""
ASKERS_OWN: Final = frozenset({REFUSED, UNKNOWN})
"""Faults of the ports that no repetition would change."""
ENDED: Final = {
    "processTerminated": "the case ended before it replied",
    "missingReply": "the case completed and has not replied",
}


class Told(NamedTuple):
    status: int
    body: bytes = b""


class SoapFace:
    """`url` is where others reach this server, if that is not what they say in their request."""

    def __init__(self, office: Office, holds: Holds, url: str = "") -> None:
        self._office = office
        self._holds = holds
        self._url = url.rstrip("/")

    async def __call__(self, scope: HTTPScope, receive: Receive, send: Send, caller: Caller) -> None:
        try:
            if scope["method"] == "GET":
                await tell(send, await self._described(scope))
            elif scope["method"] == "POST":
                await self._posted(scope, receive, send, caller)
            else:
                raise MethodRefused("send a message by POST, or ask for ?wsdl by GET")
        except HungUp:
            if self._holds.stopping:
                await tell(send, refused(Unreachable(STOPPING)))
        except Mistake as mistake:
            await tell(send, refused(mistake))
        except Exception as error:  # noqa: BLE001 - the edge: whatever it was, the caller gets an answer and we a log
            await tell(send, refused(answers.unforeseen(error, scope["method"], scope["path"])))

    # Descriptions

    async def _described(self, scope: HTTPScope) -> Told:
        query = {
            name.lower(): values[0]
            for name, values in parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True).items()
        }
        words, url = _words(scope), self._address(scope)
        if not {"wsdl", "xsd"} & query.keys():
            raise Invalid("ask for ?wsdl to see what can be said here, or send a message by POST")
        if words[0] != FLOWS:
            return Told(200, at_address(self._wsdl(words), url).encode())
        endpoint = await self._endpoint(words)
        if "xsd" in query:
            return Told(200, schema_of(endpoint.world, _number(query["xsd"]), url).encode())
        return Told(
            200, wsdl_of(endpoint.world, words[1], _served(endpoint, url), url, _number(query["wsdl"])).encode()
        )

    def _wsdl(self, words: Sequence[str]) -> str:
        if len(words) != 1 or self._office.port(words[0]) is None:
            raise NotFound(f"there is no port {'/'.join(words)} here")
        return self._office.port_wsdl(words[0])

    def _address(self, scope: HTTPScope) -> str:
        """Where the caller has found us, or where we say that we are found."""
        return self._base(scope) + scope["raw_path"].decode("latin-1").partition("?")[0]

    def _base(self, scope: HTTPScope) -> str:
        return self._url or f"{scope['scheme']}://{_header(scope, b'host')}"

    async def _endpoint(self, words: Sequence[str]) -> Endpoint:
        """What there is at an address: a flow with all its links, or one of them."""
        if len(words) not in (2, 3):
            raise NotFound("an address of a flow is /soap/flows/NAME or /soap/flows/NAME/LINK")
        endpoint = await self._office.endpoint(words[1])
        if len(words) == 3:
            if words[2] not in endpoint.links:
                links = ", ".join(endpoint.links)
                raise NotFound(f"the flow {words[1]} has no partner link {words[2]!r} of its own role; it has {links}")
            endpoint = endpoint.of(words[2])
        return endpoint

    # Messages

    async def _posted(self, scope: HTTPScope, receive: Receive, send: Send, caller: Caller) -> None:
        data = in_charset(await whole(receive, MESSAGE_BYTES_MAX), _header(scope, b"content-type"))
        words, action = _words(scope), _action(scope)
        if words[0] != FLOWS:
            await until_gone(receive, self._ask_port(words, data, send, caller), self._holds)
            return
        endpoint = await self._endpoint(words)
        try:
            inbound, message, id = await _beside(data, partial(_understood, endpoint, action))
        except BadEnvelope as refusal:
            endpoint, inbound, message, id = await self._by_another(words, data, action, refusal)
        id = id or str(uuid.uuid4())
        try:
            posted = await self._office.post(words[1], inbound.channel, message, id=id, who=caller.name)
        except (Invalid, BadFlow) as mistake:
            raise BadEnvelope(mistake.message) from mistake
        if not inbound.said.operation.output:
            await tell(send, Told(202))
            return
        await until_gone(
            receive, self._answer(words[1], posted.id, endpoint, inbound, self._base(scope), send), self._holds
        )

    async def _by_another(
        self, words: Sequence[str], data: bytes | str, action: str, refusal: BadEnvelope
    ) -> tuple[Endpoint, Inbound, Message, str]:
        """A message that the newest version does not take may be for a case that began before there was that one."""
        for endpoint in self._office.earlier(words[1]):
            offered = endpoint.of(words[2]) if len(words) == 3 else endpoint
            try:
                return offered, *await _beside(data, partial(_understood, offered, action))
            except BadEnvelope:
                continue
        raise refusal

    async def _answer(self, flow: str, id: str, endpoint: Endpoint, inbound: Inbound, base: str, send: Send) -> None:
        told = answer_of(endpoint, inbound, await self._office.answer(flow, id))
        await tell(send, Told(told.status, outward(told.body, base)))

    async def _ask_port(self, words: Sequence[str], data: bytes | str, send: Send, caller: Caller) -> None:
        port = self._office.port(words[0]) if len(words) == 1 else None
        if port is None:
            raise NotFound(f"there is no port {'/'.join(words)} here")
        text, id = await _beside(data, _only)
        try:
            answer = await port.asked(text, who=caller.name, message_id=id, reach=reach_of(caller))
        except PortFault as fault:
            await tell(send, _of_port(fault))
            return
        await tell(send, Told(202) if answer is None else Told(200, write_envelope([answer])))


def answer_of(endpoint: Endpoint, inbound: Inbound, answer: Answer) -> Told:
    """What became of a request, as the operation says it in SOAP."""
    world, said = endpoint.world, inbound.said
    if answer.fault is not None:
        return Told(500, write_fault(fault_words(answer.fault), fault_detail(world, said, answer.fault)))
    if answer.ended:
        sentence = f"{answer.ended}: {ENDED.get(answer.ended, 'there is no reply')}"
        return Told(500, write_fault(sentence))
    message = answer.value if isinstance(answer.value, dict) else {}
    return Told(200, write_envelope(answer_body(world, said, message)))


def refused(mistake: Mistake) -> Told:
    """A mistake as a fault. SOAP wants 500 for what is wrong with an envelope; the rest is the way that HTTP says."""
    if isinstance(mistake, BadEnvelope):
        return Told(500, write_fault(mistake.message, code=mistake.faultcode))
    if isinstance(mistake, Elsewhere):
        mistake = NotNow("this flow is just moving from one server to another; send it again in a moment")
    return Told(mistake.status, write_fault(mistake.message, code="Client" if mistake.status < 500 else "Server"))


async def tell(send: Send, told: Told) -> None:
    headers = [(b"content-length", str(len(told.body)).encode())]
    headers += [(b"content-type", CONTENT_TYPE.encode())] if told.body else []
    headers += [(b"retry-after", b"1")] if told.status == NotNow.status else []
    await send({"type": "http.response.start", "status": told.status, "headers": headers})
    await send({"type": "http.response.body", "body": told.body, "more_body": False})


def reach_of(caller: Caller) -> Reach:
    """What the API would let somebody do with any case: a port lets nobody do more."""
    case = f"{API}/cases/any"
    return Reach(looks=may(caller.roles, "GET", case), ends=may(caller.roles, "POST", f"{case}/cancel"))


def _served(endpoint: Endpoint, url: str) -> list[Served]:
    """One link is at the very address; of several each has its own below it."""
    links = endpoint.links
    return [Served(link, type, url if len(links) == 1 else f"{url}/{link}") for link, type in links.items()]


def _of_port(fault: PortFault) -> Told:
    """A fault of a partner whom a port has called keeps its name, also where nothing else came with it."""
    partner = fault.partner
    if partner is None:
        code = "Client" if split(fault.name)[1] in ASKERS_OWN else "Server"
        return Told(500, write_fault(fault.text, [fault.element] if fault.element else [], code=code))
    namespace, local = split(partner.name)
    if namespace == ENVELOPE:
        return Told(500, write_fault(partner.message, code=local))
    told = element_text(partner.data.get("value")) if isinstance(partner.data, dict) else None
    return Told(500, write_fault(fault_words(partner), [told or f'<{local} xmlns="{text(namespace)}"/>']))


async def _beside(data: bytes | str, read: Callable[[bytes | str], T]) -> T:
    """What a message says. A large one is read in a thread, so that others have their turn meanwhile."""
    return await asyncio.to_thread(read, data) if len(data) > LARGE_BYTES else read(data)


def _understood(endpoint: Endpoint, action: str, data: bytes | str) -> tuple[Inbound, Message, str]:
    """Which operation a message means, the message, and what it is called by whoever sent it."""
    envelope = read_envelope(data)
    said, message = asked(endpoint.world, (each.said for each in endpoint.inbound), envelope, action)
    return next(each for each in endpoint.inbound if each.said is said), message, envelope.message_id


def _only(data: bytes | str) -> tuple[str, str]:
    """The one element of a request to a port, and what the request is called."""
    envelope = read_envelope(data)
    if len(envelope.body) != 1:
        raise BadEnvelope("the body of a request to a port is one element; see ?wsdl")
    return element_of(envelope.body[0]), envelope.message_id


def _words(scope: HTTPScope) -> list[str]:
    return [each for each in scope["path"].removeprefix(SOAP).split("/") if each] or [""]


def _action(scope: HTTPScope) -> str:
    return _header(scope, b"soapaction").strip().strip('"')


def _header(scope: HTTPScope, name: bytes) -> str:
    return next((value for each, value in scope["headers"] if each == name), b"").decode("latin-1")


def in_charset(data: bytes, content_type: str) -> bytes | str:
    """A message in the encoding that its header says, which goes before what it says itself; else as it came."""
    said = _CHARSET.search(content_type)
    encoding = TAKEN.get(said.group(1).lower(), "") if said else ""
    if not encoding or data.startswith(MARKED):
        return data
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise BadEnvelope(f"byte {error.start} is none that {encoding} has, though the header says so") from error


def _number(text: str) -> int:
    """Which document is asked for: the first, if none is named; none at all by what is no number."""
    if not text:
        return 0
    return int(text) if text.isascii() and text.isdigit() and len(text) < 4 else -1
