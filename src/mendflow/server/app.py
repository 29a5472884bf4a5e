"""The HTTP face of one domain.

One gate stands before everything: it knows the caller or turns the request away. Behind it the pilots' exchange goes
straight to its handler, and all else to the routes."""

import asyncio
from functools import cache, partial
from typing import Any, cast

from litestar import Litestar, Router
from litestar.di import Provide
from litestar.enums import ScopeType
from litestar.types import HTTPScope, LifeSpanReceive, LifeSpanScope, LifeSpanSend, Receive, Scope, Send

from mendflow.core.model.problems import Mistake, Unreachable
from mendflow.server import answers
from mendflow.server.access import API, PEERS, Access
from mendflow.server.body import HearingOut
from mendflow.server.everyone import Everyone
from mendflow.server.forwarding import Forwarding, Whereabouts
from mendflow.server.holds import Holds
from mendflow.server.openapi import describe
from mendflow.server.passing import Passing
from mendflow.server.peers import Peer, PeerRoutes
from mendflow.server.pilots import STOPPING, Exchange, LetGo
from mendflow.server.questions import QUESTIONS, Questions
from mendflow.server.routes import (
    about,
    alerts,
    archives,
    cases,
    data,
    data_sets,
    engines,
    events,
    files,
    flows,
    given,
    history,
    jobs,
    metrics,
    notifications,
    repairs,
    rules,
    sites,
    tasks,
)
from mendflow.server.soap import face as soap
from mendflow.services.api.domain import Domain
from mendflow.services.messaging.contracts import Office

JSON_BYTES_MAX = 16 << 20
ROUTES: list[Any] = [
    *about.ROUTES,
    *metrics.ROUTES,
    *flows.ROUTES,
    *cases.ROUTES,
    *events.ROUTES,
    *jobs.ROUTES,
    *alerts.ROUTES,
    *notifications.ROUTES,
    *tasks.ROUTES,
    *files.ROUTES,
    *data.ROUTES,
    *rules.ROUTES,
    *repairs.ROUTES,
    *history.ROUTES,
    *archives.ROUTES,
    *engines.ROUTES,
    *sites.ROUTES,
    *data_sets.ROUTES,
]
SYNC_PATH = f"{API}/pilots/sync"
METRICS_PATH = f"{API}/metrics"
USUAL_METRICS_PATH = "/metrics"
"""Where collectors of metrics look by themselves."""


class Api(Litestar):
    """The application with its gate."""

    access: Access
    exchange: Exchange
    questions: Questions
    holds: Holds
    peers: PeerRoutes
    forwarding: Forwarding | None = None
    everyone: Everyone | None = None
    soap_face: soap.SoapFace | None = None
    stopping = False

    async def __call__(
        self, scope: Scope | LifeSpanScope, receive: Receive | LifeSpanReceive, send: Send | LifeSpanSend
    ) -> None:
        if scope["type"] == ScopeType.HTTP:
            await self._gate(cast(HTTPScope, scope), cast(Receive, receive), cast(Send, send))
        else:
            await super().__call__(scope, receive, send)

    async def _gate(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        if scope["path"] == USUAL_METRICS_PATH:
            scope["path"] = METRICS_PATH
        try:
            caller = self.access.admit(scope["method"], scope["path"], scope["headers"])
        except Mistake as mistake:
            await self._turn_away(scope, send, mistake)
            return
        if scope["path"] == SYNC_PATH and scope["method"] == "POST":
            await self.exchange(scope, receive, send, caller.name)
            return
        if scope["path"] in QUESTIONS and scope["method"] == "POST":
            await self.questions(scope, receive, send, caller.name)
            return
        scope["state"] = {given.CALLER: caller}
        hearing = HearingOut(receive, send)
        try:
            await self._answer(scope, hearing.receive, hearing.send)
        except asyncio.CancelledError:
            if not self.stopping:
                raise
            if not hearing.answering:
                await answers.send_mistake(send, Unreachable(STOPPING))

    async def _turn_away(self, scope: HTTPScope, send: Send, mistake: Mistake) -> None:
        if self.soap_face is not None and scope["path"].startswith(soap.SOAP):
            await soap.tell(send, soap.refused(mistake))
        else:
            await answers.send_mistake(send, mistake)

    async def _answer(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        if scope["path"].startswith(PEERS):
            await self.peers(scope, receive, send)
            return
        left = await self._here(scope, receive, send)
        if left is not None and self.soap_face is not None and scope["path"].startswith(soap.SOAP):
            await self.soap_face(scope, left, send, scope["state"][given.CALLER])
        elif left is not None:
            await super().__call__(scope, left, send)

    async def _here(self, scope: HTTPScope, receive: Receive, send: Send) -> Receive | None:
        """What is left to be received of a request that this server answers itself."""
        if self.forwarding is None:
            return receive
        try:
            again = self.access.passed_on(scope["headers"])
            everyone = self.everyone if not again else None
            if everyone is not None and await everyone(scope, receive, send, super().__call__):
                return None
            return await self.forwarding(scope, receive, send, again=again)
        except answers.HungUp:
            return None
        except Mistake as mistake:
            await self._turn_away(scope, send, mistake)
        except Exception as error:  # noqa: BLE001 - the edge: whatever it was, the caller gets an answer and we a log
            await self._turn_away(scope, send, answers.unforeseen(error, scope["method"], scope["path"]))
        return None

    async def stop(self, grace_s: float) -> None:
        """End what would stay open: event streams at once, held exchanges after a grace. Whatever else is cancelled
        from now on is told why."""
        self.stopping = True
        self.holds.end_all()
        await self.exchange.stop(grace_s)


def create_app(
    domain: Domain,
    *,
    access: Access,
    let_go: LetGo | None = None,
    peer: Peer | None = None,
    where: Whereabouts | None = None,
    passing: Passing | None = None,
    office: Office | None = None,
    url: str = "",
    file_bytes_max: int = files.FILE_BYTES_MAX,
) -> Api:
    """`let_go` asks the domain to answer held exchanges at once: those of a pilot, or all (None). `peer` answers the
    other servers on the same store, if there may be some; `where` knows where cases live, and `passing` asks there.
    `office` serves those who come with SOAP; `url` is the address that they are told."""
    holds = Holds()
    provided = given.dependencies(domain, holds)
    described = cache(lambda: describe(ROUTES, provided))
    provided["description"] = Provide(described, sync_to_thread=False)
    provided["file_bytes_max"] = Provide(lambda: file_bytes_max, sync_to_thread=False)
    app = Api(
        route_handlers=[Router(API, route_handlers=ROUTES)],
        dependencies=provided,
        exception_handlers=answers.HANDLERS,
        request_max_body_size=JSON_BYTES_MAX,
        openapi_config=None,
        logging_config=None,
        debug=False,
    )
    app.access, app.exchange, app.holds, app.peers = access, Exchange(domain, let_go), holds, PeerRoutes(peer)
    app.questions = Questions(domain)
    app.soap_face = soap.SoapFace(office, holds, url) if office is not None else None
    if where is not None and passing is not None:
        app.everyone = Everyone(where, passing, JSON_BYTES_MAX)
        app.forwarding = Forwarding(where, passing, partial(_newest, domain), holds, JSON_BYTES_MAX)
    return app


async def _newest(domain: Domain) -> str:
    return (await domain.case("last")).id
