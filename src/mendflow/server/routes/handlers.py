"""The routes, made from the table of operations. A handler calls the domain's function of the operation's name; those
that stream, or do more than that, are written by hand.

Each route checks once more that the caller may ask for its own operation: whatever a path was taken for before it got
here, nobody gets by."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from functools import cache
from typing import Any, Final

from litestar import MediaType, delete, get, head, post, put
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler, HTTPRouteHandler

from mendflow.core.model.principals import Principal
from mendflow.operations.operation import ApiOperation
from mendflow.operations.table import CALLS, OPERATIONS
from mendflow.server.access import check_roles
from mendflow.server.audited_objects import object_of
from mendflow.server.env_values import without_env_values
from mendflow.server.gate import ProjectGate, sight_of
from mendflow.server.open_requests import OpenRequests
from mendflow.server.request_audit import note, note_made
from mendflow.server.routes import about, archives, audit, events, files, history, metrics, sessions
from mendflow.server.routes.parameters import CALLER, SERVED, page
from mendflow.server.routes.request_form import (
    arguments_of,
    demand_known_keys,
    demand_no_null,
    query_keys,
    route_path,
    signature_of,
)
from mendflow.services.api.domain import Domain

Handler = Callable[..., Any]
BY_HAND: dict[str, Handler] = {
    **about.HANDLERS,
    **archives.HANDLERS,
    **audit.HANDLERS,
    **events.HANDLERS,
    **files.HANDLERS,
    **history.HANDLERS,
    **metrics.HANDLERS,
    **sessions.HANDLERS,
}
_MEDIA_TYPES = {"docs": MediaType.HTML, "metrics": MediaType.TEXT}
_METHODS: dict[str, Any] = {"GET": get, "HEAD": head, "PUT": put, "POST": post, "DELETE": delete}


@cache
def handlers() -> list[HTTPRouteHandler]:
    """Made when HTTP is served for the first time: commands that speak no HTTP do not wait for it."""
    functions = {each.name: handler_of(each) for each in CALLS if each.name not in BY_HAND} | BY_HAND
    return [_route(OPERATIONS[name], function) for name, function in functions.items()]


def _route(operation: ApiOperation, function: Handler) -> HTTPRouteHandler:
    function.__name__, function.__doc__ = operation.id, operation.description or None
    more: dict[str, Any] = {"request_max_body_size": None} if operation.stores_body else {}
    more |= {"media_type": _MEDIA_TYPES[operation.name]} if operation.name in _MEDIA_TYPES else {}
    route: HTTPRouteHandler = _METHODS[operation.method](
        route_path(operation),
        status_code=operation.status,
        summary=operation.summary,
        tags=[operation.tag],
        guards=[_guard(operation, query_keys(inspect.signature(function)))],
        **more,
    )(function)
    return route


def _guard(
    operation: ApiOperation, query_keys: dict[str, bool]
) -> Callable[[ASGIConnection[Any, Any, Any, Any], BaseRouteHandler], Coroutine[Any, Any, None]]:
    nullable = frozenset(name for name, is_nullable in query_keys.items() if is_nullable)

    async def check(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
        state = connection.scope["state"]
        check_roles(state[CALLER], operation.allowed)
        demand_known_keys(operation, query_keys, connection.query_params)
        demand_no_null(nullable, connection.query_params)
        if operation.name in BY_HAND:
            note(object=object_of(operation, _query_of(connection)))
            named = {**connection.path_params, "of": connection.query_params.get("of", "")}
            await ProjectGate(state[SERVED].domain, operation, state[CALLER]).admit(named)

    return check


def _query_of(connection: ASGIConnection[Any, Any, Any, Any]) -> dict[str, Any]:
    """What a request says in its query, where a handler is written by hand: `case` any number of times."""
    query = connection.query_params
    return {**query.dict(), "case": query.getall("case", []), "where": query.get("where", "")}


_OF_CALLER: dict[str, Callable[[Principal, ApiOperation], Any]] = {
    "who": lambda caller, _: caller.name,
    "teller": lambda caller, _: caller.teller,
    "sight": lambda caller, operation: sight_of(caller, operation),
    "task_roles": lambda caller, _: None if caller.is_admin else caller.roles,
}
"""What the domain's functions may want to know of the caller."""


MADE_IN = "made_in"
"""The argument by which a domain's function is told the project that the gate has found, where no caller says one."""

SHOWS_ENV: Final = "shows_env"
"""The argument by which a domain's function that writes sentences is told whether the caller may see the values of
environments: in a sentence nobody could hide them later."""

APPLICATION_ARGUMENT = "application"
"""What a domain's function is told of that servers do together: only they can say what they call it."""


def handler_of(operation: ApiOperation) -> Handler:
    """A handler that calls the domain."""
    parameters = inspect.signature(getattr(Domain, operation.name)).parameters.keys()
    wanted, is_joint = parameters & _OF_CALLER.keys(), APPLICATION_ARGUMENT in parameters
    signature = signature_of(operation, is_joint=is_joint)

    async def handle(domain: Domain, caller: Principal, **given: Any) -> Any:
        arguments = arguments_of(operation, given)
        if operation.audited:
            note(object=object_of(operation, arguments))
        admitted = await ProjectGate(domain, operation, caller).admit(arguments)
        arguments |= {name: _OF_CALLER[name](caller, operation) for name in wanted}
        if MADE_IN in parameters:
            arguments[MADE_IN] = admitted.project or ""
        if SHOWS_ENV in parameters:
            arguments[SHOWS_ENV] = admitted.may_see_secrets(caller)
        if is_joint:
            arguments[APPLICATION_ARGUMENT] = given[APPLICATION_ARGUMENT]
        asking = getattr(domain, operation.name)(**arguments)
        if operation.waits:
            return await _held(asking, given["open_requests"])
        answer = await asking
        if operation.audited:
            note_made(answer)
        if operation.rows is None:
            return without_env_values(answer, operation, whole=admitted.may_see_secrets(caller))
        whole = admitted.may_see_secrets(caller)
        return page([without_env_values(each, operation, whole=whole) for each in answer.rows], answer.next)

    handle.__dict__["__signature__"] = signature
    handle.__annotations__ = {each.name: each.annotation for each in signature.parameters.values()}
    handle.__annotations__["return"] = signature.return_annotation
    return handle


async def _held(asked: Coroutine[Any, Any, list[Any]], open_requests: OpenRequests) -> list[Any]:
    """An answer that the domain holds back; an empty one when the server stops."""
    asking = asyncio.ensure_future(asked)
    with open_requests.hold(asking.cancel):
        try:
            return await asking
        except asyncio.CancelledError:
            if open_requests.stopping:
                return []
            asking.cancel()
            raise
