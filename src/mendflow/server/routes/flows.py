"""Flows: deploy, list, read.

A flow's name becomes part of ids, addresses and folders, so a name that could be mistaken for a path is refused here,
before anything is made of it."""

import re
from collections.abc import Iterator

from litestar import get, post
from litestar.params import FromPath, JSONBody

from mendflow.core.model.flow import Flow
from mendflow.core.model.problems import BadFlow
from mendflow.core.model.views import FlowView
from mendflow.server.routes.given import TheDomain

# Made-up names of called flows contain dots, which given names do not.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")


def _names(flow: Flow) -> Iterator[str]:
    yield flow.name
    for called in flow.calls:
        yield from _names(called)


@post("/flows", status_code=201, summary="Deploy a flow", operation_id="deploy", tags=["flows"])
async def deploy(domain: TheDomain, data: JSONBody[Flow]) -> FlowView:
    """The body is the flow model as JSON. The same flow again is the same version."""
    if bad := [name for name in _names(data) if not _NAME.fullmatch(name)]:
        rule = "use letters, digits, _ and -, a letter first, at most 100"
        raise BadFlow(problems=[f"{name[:100]!r} is no name for a flow: {rule}" for name in bad])
    return await domain.deploy(data)


@get("/flows", summary="All deployed flows, each in its newest version", operation_id="flows", tags=["flows"])
async def flows(domain: TheDomain) -> list[FlowView]:
    return await domain.flows()


@get("/flows/{name:str}", summary="One flow with its whole model", operation_id="flow", tags=["flows"])
async def flow(domain: TheDomain, name: FromPath[str]) -> FlowView:
    return await domain.flow(name)


ROUTES = [deploy, flows, flow]
