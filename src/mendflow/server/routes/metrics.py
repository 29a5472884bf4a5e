"""Metrics of the server, for Prometheus."""

from collections.abc import Callable
from typing import Any

from litestar import Request, Response

from mendflow.core.model.principals import EVERYTHING, METRICS
from mendflow.server.metrics import render_metrics
from mendflow.server.routes.parameters import TheCaller, TheDomain


async def metrics(domain: TheDomain, caller: TheCaller, request: Request[Any, Any, Any]) -> Response[str]:
    sight = EVERYTHING if METRICS in caller.roles else caller.sight()
    [own] = await domain.stats(everywhere=False, sight=sight)
    shown = render_metrics(own, request.headers.get("accept", ""))
    return Response(shown.content.decode(), headers={"content-type": shown.content_type})


HANDLERS: dict[str, Callable[..., Any]] = {"metrics": metrics}
