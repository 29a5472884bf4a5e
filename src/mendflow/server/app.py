"""The HTTP application of one domain.

Access control comes first: it identifies the caller or refuses the request. Then the exchange of pilots goes straight
to its handler, and everything else to the routes. These are made once in a process, whatever number of domains it
serves: each request carries what they work on."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, cast

from litestar import Litestar, Router
from litestar.di import Provide
from litestar.types import HTTPScope, Receive, Scope, Send

from mendflow.core.model.errors import RequestError, TooManyRequests, Unreachable
from mendflow.core.model.principals import PILOT, Principal
from mendflow.operations.table import API
from mendflow.server import error_bodies, error_responses
from mendflow.server.access import DOMAIN, PEERS, AccessControl, origin_of
from mendflow.server.access_headers import application_of
from mendflow.server.api_description import ApiDescription
from mendflow.server.case_forwarding import CaseForwarder, CaseHomeLookup
from mendflow.server.compression import compressed
from mendflow.server.connection_limits import demand_small_body, mark_admitted
from mendflow.server.domain_endpoint import DomainEndpoint, Gate
from mendflow.server.event_feed import EventFeed
from mendflow.server.fan_out import FanOut
from mendflow.server.issuer_sign_in import issuer_sign_in
from mendflow.server.open_requests import OpenRequests
from mendflow.server.openapi import describe
from mendflow.server.peer_requests import PeerRequests
from mendflow.server.peers import Peer, PeerEndpoint
from mendflow.server.pilot_api import SYNC_PATH
from mendflow.server.pilot_exchange import STOPPING, PilotExchangeHandler, ReleaseExchanges
from mendflow.server.pilot_lookups import LOOKUP_PATHS, PilotLookups
from mendflow.server.request_address import demand_text
from mendflow.server.request_audit import RequestAudit
from mendflow.server.request_body import BodyDrain
from mendflow.server.request_mark import logged, marked
from mendflow.server.request_quotas import HEALTH_PATH, REQUESTS_PER_S, RequestQuotas, Timed
from mendflow.server.routes import files, parameters
from mendflow.server.routes.handlers import handlers
from mendflow.server.sign_in import SignIn
from mendflow.server.sign_in_page import SignInPage
from mendflow.server.soap import handler as soap
from mendflow.server.unidentified_requests import UnidentifiedRequest
from mendflow.server.web_app import WEB_FILES, WebApp, shielded
from mendflow.services.api.domain import Domain
from mendflow.services.audit.audit_log import AuditLog
from mendflow.services.messaging.contracts import SoapGateway

Handler = Callable[[HTTPScope, Receive, Send], Awaitable[None]]
JSON_BYTES_MAX = 16 << 20
METRICS_PATH = f"{API}/metrics"
USUAL_METRICS_PATH = "/metrics"
"""The path that collectors of metrics use by default."""


@cache
def routes() -> Litestar:
    return Litestar(
        route_handlers=[Router(API, route_handlers=handlers())],
        dependencies=_dependencies(),
        exception_handlers=error_responses.HANDLERS,
        request_max_body_size=JSON_BYTES_MAX,
        openapi_config=None,
        logging_config=None,
        debug=False,
    )


@cache
def openapi_description() -> dict[str, Any]:
    return describe(handlers(), _dependencies())


@cache
def _api_description() -> ApiDescription:
    return ApiDescription(openapi_description())


def _dependencies() -> dict[str, Provide]:
    return {**parameters.DEPENDENCIES, "description": Provide(_api_description, sync_to_thread=False)}


class Api:
    """The routes, for one domain, with access control in front."""

    access: AccessControl
    exchange: PilotExchangeHandler
    lookups: PilotLookups
    peers: PeerEndpoint
    domains: DomainEndpoint
    audit: RequestAudit
    case_forwarder: CaseForwarder | None = None
    fan_out: FanOut | None = None
    soap_handler: soap.SoapHandler | None = None
    quotas: RequestQuotas
    web: WebApp
    stopping = False

    def __init__(self, served: parameters.Served) -> None:
        self._served = served
        self._sign_in = served.sign_in
        pages = (SignInPage(served.sign_in), issuer_sign_in(served.sign_in))
        self._sign_in_pages = [each for each in pages if each is not None]
        self._routes = routes()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope = cast(HTTPScope, scope)  # uvicorn is told to speak HTTP only
        request = UnidentifiedRequest(self.quotas, scope, send)
        await Timed(self._admit_and_answer(scope, receive, request), request.buckets(), request.is_unknown)

    async def _admit_and_answer(self, scope: HTTPScope, receive: Receive, request: UnidentifiedRequest) -> None:
        send: Send = request.send
        for page in self._sign_in_pages:
            if page.answers(scope):
                await self._on_record(scope, receive, send, None, page)
                return
        if await self.web.answer(scope, send):
            return
        if scope["path"] != SYNC_PATH:
            send = shielded(send)
            send = send if self._is_forwarded(scope) else compressed(scope, send)
        if scope["path"] == USUAL_METRICS_PATH:
            scope["path"] = METRICS_PATH
        try:
            demand_text(scope)
            caller = await self._sign_in.receive(scope)
            mark_admitted(scope, caller)
            if not scope["path"].startswith(DOMAIN):  # other domains show who they are in another way
                demand_small_body(scope, caller)
        except RequestError as error:
            answer = self.audit.watch(scope, send, await self._sign_in.find(scope["headers"]), refusal=error)
            await self._refuse(scope, answer.send if answer is not None else send, error)
            return
        if scope["path"].startswith(DOMAIN):
            await self._on_record(scope, receive, send, None, self.domains)
            return
        request.is_known = bool(caller.name) or self.quotas.is_free(caller) or self._is_forwarded(scope)
        if scope["path"] == SYNC_PATH and scope["method"] == "POST":
            await self.exchange(scope, receive, send, caller.name, caller.projects)
            return
        if scope["path"] in LOOKUP_PATHS and scope["method"] == "POST":
            await self.lookups(scope, receive, send, caller.name, caller.projects)
            return
        forwarded = self._is_forwarded(scope)
        if caller.roles == {PILOT} and not forwarded and scope["path"] != HEALTH_PATH:
            await self.quotas.answer_pilot(
                caller, receive, send, lambda receive, send: self._answer_admitted(scope, receive, send, caller)
            )
            return
        if not self.quotas.counts(caller, scope["path"]) or forwarded:
            await self._answer_admitted(scope, receive, send, caller)
            return
        address, request.is_known = request.address, True
        try:
            buckets = self.quotas.take(caller, address)
        except RequestError as error:
            await self.quotas.hold()
            await self._refuse(scope, send, error)
            return
        try:
            async with self.quotas.turn(caller, address, scope["method"], scope["path"]):
                paced = self.quotas.paced(caller, address, scope["method"], scope["path"], receive, send)
                await Timed(self._answer_admitted(scope, *paced, caller), buckets)
        except TooManyRequests as error:
            await self._refuse(scope, send, error)

    def _is_forwarded(self, scope: HTTPScope) -> bool:
        try:
            return scope["path"].startswith(PEERS) or self.access.is_forwarded(scope["headers"])
        except RequestError:
            return False

    async def _answer_admitted(self, scope: HTTPScope, receive: Receive, send: Send, caller: Principal) -> None:
        with marked(scope, caller.name):
            await logged(scope, send, lambda told: self._answer_marked(scope, receive, told, caller))

    async def _answer_marked(self, scope: HTTPScope, receive: Receive, send: Send, caller: Principal) -> None:
        origin = origin_of(scope)
        known = {parameters.CALLER: caller, parameters.SERVED: self._served, parameters.ORIGIN: origin}
        is_from_server = self.access.is_from_server(scope["headers"])
        known[parameters.APPLICATION] = application_of(scope["headers"]) if is_from_server else ""
        scope["state"] = {**scope.get("state", {}), **known}  # a long answer looks again from which account it is asked
        if scope["path"].startswith(PEERS) or is_from_server:
            await self._answer_whole(scope, receive, send)  # the server that was asked has it on record
        else:
            await self._on_record(scope, receive, send, caller, self._answer_whole)

    async def _on_record(
        self, scope: HTTPScope, receive: Receive, send: Send, caller: Principal | None, handler: Handler
    ) -> None:
        answer = self.audit.watch(scope, send, caller)
        if answer is None:
            await self.audit.note_unrecorded(scope, caller)
            await handler(scope, receive, send)
            return
        try:
            await handler(scope, receive, answer.send)
        finally:
            answer.close()

    async def _answer_whole(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        drain = BodyDrain(receive, send)
        try:
            await self._answer(scope, drain.receive, drain.send)
        except asyncio.CancelledError:
            if not self.stopping:
                raise
            if not drain.is_answering:
                await error_bodies.send_error(send, Unreachable(STOPPING))

    async def _refuse(self, scope: HTTPScope, send: Send, error: RequestError) -> None:
        if self.soap_handler is not None and scope["path"].startswith(soap.SOAP):
            await soap.send_response(send, soap.refusal_response(error))
        else:
            await error_bodies.send_error(send, error)

    async def _answer(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        if scope["path"].startswith(PEERS):
            await self.peers(scope, receive, send)
            return
        left = await self._forward_or_keep(scope, receive, send)
        if left is not None and self.soap_handler is not None and scope["path"].startswith(soap.SOAP):
            await self.soap_handler(scope, left, send, scope["state"][parameters.CALLER])
        elif left is not None and not await error_bodies.answer_other_method(scope, send):
            await self._routes(scope, left, send)

    async def _forward_or_keep(self, scope: HTTPScope, receive: Receive, send: Send) -> Receive | None:
        """Forward the request to another server, or return the receive function for the handler that answers it
        here."""
        if self.case_forwarder is None:
            return receive
        try:
            is_forwarded = self.access.is_forwarded(scope["headers"])
            fan_out = self.fan_out if not is_forwarded else None
            if fan_out is not None and await fan_out(scope, receive, send, self._routes):
                return None
            sight = scope["state"][parameters.CALLER].sight()
            return await self.case_forwarder(scope, receive, send, sight, is_forwarded=is_forwarded)
        except error_bodies.ClientDisconnected:
            return None
        except RequestError as error:
            await self._refuse(scope, send, error)
        except Exception as error:  # noqa: BLE001 - the edge: whatever it was, the caller gets an answer and we a log
            await self._refuse(scope, send, error_bodies.log_unforeseen(error, scope["method"], scope["path"]))
        return None

    async def stop(self, grace_s: float) -> None:
        """End what would stay open: event streams at once, held exchanges after a grace period. Requests that are
        cancelled from now on are answered with the reason."""
        self.stopping = True
        self._served.open_requests.end_all()
        await self.domains.stop()
        await self.exchange.stop(grace_s)


def create_app(
    domain: Domain,
    *,
    access: AccessControl,
    let_go: ReleaseExchanges | None = None,
    peer: Peer | None = None,
    homes: CaseHomeLookup | None = None,
    peer_requests: PeerRequests | None = None,
    gateway: SoapGateway | None = None,
    gate: Gate | None = None,
    audit: AuditLog | None = None,
    url: str = "",
    file_bytes_max: int = files.FILE_BYTES_MAX,
    requests_per_s: float = REQUESTS_PER_S,
) -> Api:
    """`let_go` tells the domain to answer held exchanges at once: those of one pilot, or all (None). `peer` answers the
    other servers on the same store, if there may be some; `homes` finds the server of a case, and `peer_requests`
    forwards requests to it. `gateway` answers SOAP requests, `gate` connected domains; `audit` is told who did what;
    `url` is the address that SOAP callers are given. `requests_per_s` are those that one principal may send."""
    open_requests = OpenRequests()
    sign_in = SignIn(access, domain.browser_sessions, url)
    app = Api(parameters.Served(domain, open_requests, file_bytes_max, sign_in, EventFeed(domain)))
    app.web = WebApp(WEB_FILES)
    app.access, app.exchange, app.peers = access, PilotExchangeHandler(domain, let_go), PeerEndpoint(peer)
    app.quotas, app.audit = RequestQuotas(requests_per_s), RequestAudit(audit, domain.unrecorded_acts)
    app.lookups, app.domains = PilotLookups(domain), DomainEndpoint(gate)
    app.soap_handler = (
        soap.SoapHandler(gateway, open_requests, url, find_project=domain.project_lookup.of_flow)
        if gateway is not None
        else None
    )
    if homes is not None and peer_requests is not None:
        app.fan_out = FanOut(homes, peer_requests, JSON_BYTES_MAX)
        app.case_forwarder = CaseForwarder(
            homes, peer_requests, domain.newest_case, open_requests, JSON_BYTES_MAX, domain.project_lookup.of_case
        )
    return app
