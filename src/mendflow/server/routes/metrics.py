"""Metrics of the server: for Prometheus, and for `mendflow admin top`."""

from typing import Annotated, Any

from litestar import MediaType, Request, Response, Router, get
from litestar.params import QueryParameter

from mendflow.core.model.stats import StatsView
from mendflow.server.metrics import render_metrics
from mendflow.server.routes.parameters import TheDomain

RUNNING_MAX = 1_000


@get("/stats", summary="The living servers in numbers")
async def stats(
    domain: TheDomain,
    running: Annotated[
        int, QueryParameter(ge=0, le=RUNNING_MAX, description="Name so many running jobs of each, the longest first.")
    ] = 0,
) -> list[StatsView]:
    """The server that answers comes first. A server that does not answer in time is left out."""
    return await domain.stats(running=running)


@get("/metrics", summary="The server that is asked, for Prometheus", media_type=MediaType.TEXT)
async def metrics(domain: TheDomain, request: Request[Any, Any, Any]) -> Response[str]:
    """As Prometheus text, or as OpenMetrics where the request accepts that. Also served under `/metrics`."""
    [own] = await domain.stats(everywhere=False)
    shown = render_metrics(own, request.headers.get("accept", ""))
    return Response(shown.content.decode(), headers={"content-type": shown.content_type})


ROUTES = Router("/", route_handlers=[stats, metrics], tags=["server"])
