"""The server in numbers: for Prometheus, and for `mendflow top`."""

from typing import Annotated

from litestar import Response, get
from litestar.params import HeaderParameter, QueryParameter

from mendflow.core.model.stats import StatsView
from mendflow.server.metrics import exposed
from mendflow.server.routes.given import TheDomain

RUNNING_MAX = 1_000


@get("/stats", summary="The living servers in numbers", operation_id="stats", tags=["server"])
async def stats(
    domain: TheDomain,
    running: Annotated[
        int, QueryParameter(ge=0, le=RUNNING_MAX, description="Name so many running jobs of each, the longest first.")
    ] = 0,
) -> list[StatsView]:
    """The server that is asked comes first. One that does not answer in time is left out."""
    return await domain.stats(running=running)


@get("/metrics", include_in_schema=False)
async def metrics(domain: TheDomain, accept: Annotated[str, HeaderParameter(name="accept")] = "") -> Response[bytes]:
    """This server alone: Prometheus asks each."""
    [own, *_] = await domain.stats(everywhere=False)
    shown = exposed(own, accept)
    return Response(shown.content, headers={"content-type": shown.content_type})


ROUTES = [stats]
AT_ROOT = [metrics]
