"""The SOAP face of a server: flows that take messages, and the server's own ports.

    POST /soap/flows/NAME[/LINK]   a message for a flow; a request waits for its reply as long as the caller does
    POST /soap/NAME                a request to a port of the server
    GET  ...?wsdl                  what can be said there, with the address by which it was asked

A message is on disk before anything is answered. Who hangs up loses the answer and nothing else: the same message id
asks for it again. Whatever is wrong is said as a SOAP fault."""

import re
import uuid
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache, partial
from typing import Final, NamedTuple, TypeVar
from urllib.parse import parse_qs

from litestar.types import HTTPScope, Receive, Send

from mendflow.core.model.errors import (
    BadFlow,
    Forbidden,
    InvalidRequest,
    NotFound,
    RequestError,
    TemporarilyUnavailable,
    Unreachable,
    WrongServer,
)
from mendflow.core.model.principals import DEFAULT_PROJECT, ENGINE, Principal, ProjectRole
from mendflow.core.model.xml import element_text
from mendflow.core.soap import CONTENT_TYPE, ENVELOPE, split_name
from mendflow.core.soap.endpoints import Endpoint, InboundOperation
from mendflow.core.soap.envelope import (
    MESSAGE_BYTES_MAX,
    BadEnvelope,
    element_of,
    read_envelope,
    write_envelope,
    write_fault,
    xml_text,
)
from mendflow.core.soap.messages import PartValues, answer_body, fault_detail, fault_words, read_request
from mendflow.core.soap.references import with_public_references
from mendflow.core.soap.wsdl import ServedPort, at_address, schema_of, wsdl_of
from mendflow.core.xml.encodings import MARKS, SUPPORTED
from mendflow.keyed_semaphore import KeyedSemaphore
from mendflow.server import error_bodies
from mendflow.server.case_forwarding import relay_until_disconnect
from mendflow.server.error_bodies import ClientDisconnected, WrongMethod, for_clients
from mendflow.server.open_requests import OpenRequests
from mendflow.server.pilot_exchange import STOPPING
from mendflow.server.request_audit import is_noted, note
from mendflow.server.request_body import read_body
from mendflow.services.base.reading_cost import paid_thread, who_pays
from mendflow.services.base.request_turns import end_turn
from mendflow.services.messaging.contracts import CaseAccess, SoapGateway
from mendflow.services.messaging.message_store import MessageReply
from mendflow.services.messaging.ports.job_messages import UNKNOWN
from mendflow.services.messaging.ports.messages import REFUSED, PortFault

T = TypeVar("T")

SOAP: Final = "/soap/"
BYTE_ORDER_MARKS: Final = tuple(mark for mark, _ in MARKS)
_CHARSET: Final = re.compile(r"""charset\s*=\s*["']?([A-Za-z0-9._-]{1,40})""", re.IGNORECASE)
_JOB_ID: Final = re.compile(r"<(?:[\w.-]+:)?jobId\b[^<>]{0,500}>\s*([^<>\s]{1,300})\s*<")
FLOWS: Final = "flows"
THREAD_FROM_BYTES: Final = 1 << 12
"""From this size on a message is parsed in a thread, so that other requests are served meanwhile: one of each sender at
a time, since threads that parse take the processor from each other and from the event loop."""
WSDLS_MAX: Final = 100
CLIENT_FAULTS: Final = frozenset({REFUSED, UNKNOWN})
"""Faults of the ports that a retry would not change."""
NO_REPLY_REASONS: Final = {
    "processTerminated": "the case ended before it replied",
    "missingReply": "the case completed and has not replied",
}


class SoapResponse(NamedTuple):
    status: int
    body: bytes = b""


FindProject = Callable[[str], Awaitable[str | None]]


async def _default(_flow: str) -> str | None:
    return DEFAULT_PROJECT


class SoapHandler:
    """Answers SOAP requests. `url` is the public address of this server, if it differs from the one in the request.
    `find_project` finds the project of a flow."""

    def __init__(
        self, gateway: SoapGateway, open_requests: OpenRequests, url: str = "", *, find_project: FindProject = _default
    ) -> None:
        self._find_project = find_project
        self._gateway = gateway
        self._open_requests = open_requests
        self._url = url.rstrip("/")
        self._parsing = KeyedSemaphore(1)
        self._port_wsdl = lru_cache(WSDLS_MAX)(_wsdl_at)

    async def __call__(self, scope: HTTPScope, receive: Receive, send: Send, caller: Principal) -> None:
        try:
            if scope["method"] == "GET":
                await send_response(send, await self._handle_get(scope, caller))
            elif scope["method"] == "POST":
                await self._handle_post(scope, receive, send, caller)
            else:
                raise WrongMethod("send a message by POST, or ask for ?wsdl by GET", methods=("GET", "POST"))
        except ClientDisconnected:
            if self._open_requests.stopping:
                await send_response(send, refusal_response(Unreachable(STOPPING)))
        except RequestError as error:
            await send_response(send, refusal_response(error))
        except Exception as error:  # noqa: BLE001 - outermost handler: answer the caller, log the traceback
            await send_response(
                send, refusal_response(error_bodies.log_unforeseen(error, scope["method"], scope["path"]))
            )

    # Descriptions

    async def _handle_get(self, scope: HTTPScope, caller: Principal) -> SoapResponse:
        query = {
            name.lower(): values[0]
            for name, values in parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True).items()
        }
        words, url = _path_parts(scope), self._address(scope)
        if not {"wsdl", "xsd"} & query.keys():
            raise InvalidRequest("ask for ?wsdl to see what can be said here, or send a message by POST")
        if words[0] != FLOWS:
            return SoapResponse(200, self._port_wsdl(self._wsdl(words), url))
        await self._demand_role(caller, "viewer", words)
        endpoint = await self._endpoint(words)
        if "xsd" in query:
            return SoapResponse(200, schema_of(endpoint.world, _number(query["xsd"]), url).encode())
        return SoapResponse(
            200, wsdl_of(endpoint.world, words[1], _served_links(endpoint, url), url, _number(query["wsdl"])).encode()
        )

    def _wsdl(self, words: Sequence[str]) -> str:
        if len(words) != 1 or self._gateway.port(words[0]) is None:
            raise NotFound(f"there is no port {'/'.join(words)} here")
        return self._gateway.port_wsdl(words[0])

    def _address(self, scope: HTTPScope) -> str:
        """The address that the caller used, or the configured public one."""
        return self._base(scope) + scope["raw_path"].decode("latin-1").partition("?")[0]

    def _base(self, scope: HTTPScope) -> str:
        return self._url or f"{scope['scheme']}://{_header(scope, b'host')}"

    async def _endpoint(self, words: Sequence[str]) -> Endpoint:
        """The endpoint at an address: a flow with all its partner links, or one of them."""
        if len(words) not in (2, 3):
            raise NotFound("an address of a flow is /soap/flows/NAME or /soap/flows/NAME/LINK")
        endpoint = await self._gateway.endpoint(words[1])
        if len(words) == 3:
            if words[2] not in endpoint.links:
                links = ", ".join(endpoint.links)
                raise NotFound(f"the flow {words[1]} has no partner link {words[2]!r} of its own role; it has {links}")
            endpoint = endpoint.of(words[2])
        return endpoint

    async def _demand_role(self, caller: Principal, role: ProjectRole, words: Sequence[str]) -> None:
        """A message starts and steers cases of a flow. Engines serve all projects."""
        if len(words) < 2:
            return
        serves_all = caller.is_admin or ENGINE in caller.roles
        if serves_all and not is_noted():
            return
        project = await self._find_project(words[1])
        note(project=project or "")
        if serves_all:
            return
        if project is None or not caller.may("viewer", project):
            raise NotFound(f"there is no flow {words[1]!r:.100} in your projects")
        if not caller.may(role, project):
            raise Forbidden(f"messages to {words[1]} take the role {role} in project {project}", project=project)

    # Messages

    async def _handle_post(self, scope: HTTPScope, receive: Receive, send: Send, caller: Principal) -> None:
        data = decode_charset(await read_body(receive, MESSAGE_BYTES_MAX), _header(scope, b"content-type"))
        words, action = _path_parts(scope), _action(scope)
        if words[0] != FLOWS:
            await relay_until_disconnect(receive, self._ask_port(words, data, send, caller), self._open_requests)
            return
        await self._demand_role(caller, "operator", words)
        endpoint = await self._endpoint(words)
        try:
            inbound, message, id = await self._parse(data, partial(_parse_message, endpoint, action), caller)
        except BadEnvelope as refusal:
            endpoint, inbound, message, id = await self._by_earlier_version(words, data, action, refusal, caller)
        id = id or str(uuid.uuid4())
        try:
            posted = await self._gateway.post(words[1], inbound.channel, message, id=id, who=caller.name)
        except (InvalidRequest, BadFlow) as error:
            raise BadEnvelope(error.message) from error
        if not inbound.binding.operation.output:
            await send_response(send, SoapResponse(202))
            return
        await end_turn()
        await relay_until_disconnect(
            receive, self._answer(words[1], posted.id, endpoint, inbound, self._base(scope), send), self._open_requests
        )

    async def _by_earlier_version(
        self, words: Sequence[str], data: bytes | str, action: str, refusal: BadEnvelope, caller: Principal
    ) -> tuple[Endpoint, InboundOperation, PartValues, str]:
        """A message that the newest version does not accept may be for a case of an earlier version."""
        for endpoint in self._gateway.earlier_endpoints(words[1]):
            offered = endpoint.of(words[2]) if len(words) == 3 else endpoint
            try:
                return offered, *await self._parse(data, partial(_parse_message, offered, action), caller)
            except BadEnvelope:
                continue
        raise refusal

    async def _answer(
        self, flow: str, id: str, endpoint: Endpoint, inbound: InboundOperation, base: str, send: Send
    ) -> None:
        response = operation_response(endpoint, inbound, await self._gateway.answer(flow, id))
        await send_response(send, SoapResponse(response.status, with_public_references(response.body, base)))

    async def _ask_port(self, words: Sequence[str], data: bytes | str, send: Send, caller: Principal) -> None:
        port = self._gateway.port(words[0]) if len(words) == 1 else None
        if port is None:
            raise NotFound(f"there is no port {'/'.join(words)} here")
        xml_text, id = await self._parse(data, _parse_port_request, caller)
        note(object="/".join([words[0], *_JOB_ID.findall(xml_text)[:1]]), project=caller.usual_project)
        try:
            answer = await port.handle_request(xml_text, who=caller.name, message_id=id, reach=reach_of(caller))
        except PortFault as fault:
            await send_response(send, _port_fault_response(fault))
            return
        note(made="".join(_JOB_ID.findall(answer or "")[:1]))
        await send_response(send, SoapResponse(202) if answer is None else SoapResponse(200, write_envelope([answer])))

    async def _parse(self, data: bytes | str, read: Callable[[bytes | str], T], caller: Principal) -> T:
        """Parse a message. The time that it takes beside the loop is paid as that of reading is."""
        if len(data) < THREAD_FROM_BYTES:
            return read(data)
        async with self._parsing.of(who_pays() or caller.name):
            return await paid_thread(lambda: read(data))


def operation_response(endpoint: Endpoint, inbound: InboundOperation, answer: MessageReply) -> SoapResponse:
    """The outcome of a request, as a SOAP response of its operation."""
    world, binding = endpoint.world, inbound.binding
    if answer.fault is not None:
        return SoapResponse(500, write_fault(fault_words(answer.fault), fault_detail(world, binding, answer.fault)))
    if answer.end_fault:
        sentence = f"{answer.end_fault}: {NO_REPLY_REASONS.get(answer.end_fault, 'there is no reply')}"
        return SoapResponse(500, write_fault(sentence))
    message = answer.value if isinstance(answer.value, dict) else {}
    return SoapResponse(200, write_envelope(answer_body(world, binding, message)))


def refusal_response(error: RequestError) -> SoapResponse:
    """An error as a SOAP fault. SOAP requires status 500 for an invalid envelope; other errors keep their HTTP
    status."""
    if isinstance(error, BadEnvelope):
        return SoapResponse(500, write_fault(error.message, code=error.faultcode))
    if isinstance(error, WrongServer):
        error = TemporarilyUnavailable("this flow is just moving from one server to another; send it again in a moment")
    error = for_clients(error)
    return SoapResponse(error.status, write_fault(error.message, code="Client" if error.status < 500 else "Server"))


async def send_response(send: Send, response: SoapResponse) -> None:
    headers = [(b"content-length", str(len(response.body)).encode())]
    headers += [(b"content-type", CONTENT_TYPE.encode())] if response.body else []
    headers += [(b"retry-after", b"1")] if response.status == TemporarilyUnavailable.status else []
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body, "more_body": False})


def reach_of(caller: Principal) -> CaseAccess:
    """What the API would let this caller do with cases: a port allows no more than that."""
    project = caller.usual_project
    if ENGINE not in caller.roles and not caller.may("author", project):
        raise Forbidden(
            f"{caller.name!r} may run no programs of its own in project {project}: that takes the role author there"
        )
    return CaseAccess(can_view=caller.sight(), can_end=caller.sight("operator"), project=project)


def _served_links(endpoint: Endpoint, url: str) -> list[ServedPort]:
    """A single partner link is at the flow's address; several have one address each below it."""
    links = endpoint.links
    return [ServedPort(link, type, url if len(links) == 1 else f"{url}/{link}") for link, type in links.items()]


def _port_fault_response(fault: PortFault) -> SoapResponse:
    """A fault of a partner that a port called keeps its name, also where nothing else came with it."""
    partner = fault.partner
    if partner is None:
        code = "Client" if split_name(fault.name)[1] in CLIENT_FAULTS else "Server"
        return SoapResponse(500, write_fault(fault.text, [fault.element] if fault.element else [], code=code))
    namespace, local = split_name(partner.name)
    if namespace == ENVELOPE:
        return SoapResponse(500, write_fault(partner.message, code=local))
    response = element_text(partner.data.get("value")) if isinstance(partner.data, dict) else None
    return SoapResponse(
        500, write_fault(fault_words(partner), [response or f'<{local} xmlns="{xml_text(namespace)}"/>'])
    )


def _wsdl_at(wsdl: str, url: str) -> bytes:
    return at_address(wsdl, url).encode()


def _parse_message(endpoint: Endpoint, action: str, data: bytes | str) -> tuple[InboundOperation, PartValues, str]:
    """The operation that a message is for, the message, and its message id."""
    envelope = read_envelope(data)
    binding, message = read_request(endpoint.world, (each.binding for each in endpoint.inbound), envelope, action)
    return next(each for each in endpoint.inbound if each.binding is binding), message, envelope.message_id


def _parse_port_request(data: bytes | str) -> tuple[str, str]:
    """The one element of a request to a port, and the message id of the request."""
    envelope = read_envelope(data)
    if len(envelope.body) != 1:
        raise BadEnvelope("the body of a request to a port is one element; see ?wsdl")
    return element_of(envelope.body[0]), envelope.message_id


def _path_parts(scope: HTTPScope) -> list[str]:
    return [each for each in scope["path"].removeprefix(SOAP).split("/") if each] or [""]


def _action(scope: HTTPScope) -> str:
    return _header(scope, b"soapaction").strip().strip('"')


def _header(scope: HTTPScope, name: bytes) -> str:
    return next((value for each, value in scope["headers"] if each == name), b"").decode("latin-1")


def decode_charset(data: bytes, content_type: str) -> bytes | str:
    """Decode a message in the encoding of its HTTP header, which overrides the one in the XML declaration; else
    unchanged."""
    charset = _CHARSET.search(content_type)
    encoding = SUPPORTED.get(charset.group(1).lower(), "") if charset else ""
    if not encoding or data.startswith(BYTE_ORDER_MARKS):
        return data
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise BadEnvelope(f"byte {error.start} is not valid {encoding}, which the header names") from error


def _number(xml_text: str) -> int:
    """The number of the document that is asked for: the first if none is named, and none if it is not a number."""
    if not xml_text:
        return 0
    return int(xml_text) if xml_text.isascii() and xml_text.isdigit() and len(xml_text) < 4 else -1
