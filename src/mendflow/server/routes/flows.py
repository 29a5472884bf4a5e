"""Flows: deploy, list, read."""

from litestar import Router, get, post
from litestar.params import FromPath, JSONBody

from mendflow.core.model.flow import Flow
from mendflow.core.model.views import FlowView
from mendflow.server.routes.parameters import TheDomain


@post("/flows", status_code=201, summary="Deploy a flow")
async def deploy(domain: TheDomain, data: JSONBody[Flow]) -> FlowView:
    """The body is the flow model as JSON. Deploying an unchanged flow again makes no new version."""
    return await domain.deploy(data)


@get("/flows", summary="All deployed flows, each in its newest version")
async def flows(domain: TheDomain) -> list[FlowView]:
    return await domain.flows()


@get("/flows/{name:str}", summary="One flow with its whole model")
async def flow(domain: TheDomain, name: FromPath[str]) -> FlowView:
    return await domain.flow(name)


ROUTES = Router("/", route_handlers=[deploy, flows, flow], tags=["flows"])
