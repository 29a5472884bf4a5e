"""What pilots need of a server at once: their exchange and their lookups. Everything else is answered by the whole API,
which is loaded at its first request. So a flow can be run on this machine without loading it at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from mendflow.core.model.errors import RequestError
from mendflow.operations.table import API
from mendflow.server.access import AccessControl
from mendflow.server.connection_limits import mark_admitted
from mendflow.server.error_bodies import send_error
from mendflow.server.pilot_exchange import PilotExchangeHandler, ReleaseExchanges
from mendflow.server.pilot_lookups import LOOKUP_PATHS, PilotLookups
from mendflow.services.api.domain import Domain

if TYPE_CHECKING:
    from litestar.types import HTTPScope, Receive, Scope, Send

    from mendflow.server.app import Api

SYNC_PATH = f"{API}/pilots/sync"


class PilotApi:
    """`load` makes the whole API of the same domain."""

    def __init__(
        self, domain: Domain, *, access: AccessControl, let_go: ReleaseExchanges, load: Callable[[], Api]
    ) -> None:
        self.access = access
        self._exchange = PilotExchangeHandler(domain, let_go)
        self._lookups = PilotLookups(domain)
        self._load = load
        self._api: Api | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = cast("HTTPScope", scope)  # uvicorn is told to speak HTTP only
        if request["path"] in (SYNC_PATH, *LOOKUP_PATHS) and request["method"] == "POST":
            await self._answer_pilot(request, receive, send)
            return
        if self._api is None:
            self._api = self._load()
        await self._api(scope, receive, send)

    async def _answer_pilot(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        try:
            caller = await self.access.receive(scope)
            mark_admitted(scope, caller)
        except RequestError as error:
            await send_error(send, error)
            return
        if scope["path"] == SYNC_PATH:
            await self._exchange(scope, receive, send, caller.name, caller.projects)
        else:
            await self._lookups(scope, receive, send, caller.name, caller.projects)

    async def stop(self, grace_s: float) -> None:
        """End what would stay open, as the whole API does."""
        if self._api is not None:
            await self._api.stop(grace_s)
        await self._exchange.stop(grace_s)
