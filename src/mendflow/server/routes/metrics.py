"""Metrics of the server, for Prometheus."""

from collections.abc import Callable
from typing import Any

from litestar import Request, Response

from mendflow.server.metrics import render_metrics
from mendflow.server.routes.parameters import TheDomain


async def metrics(domain: TheDomain, request: Request[Any, Any, Any]) -> Response[str]:
    [own] = await domain.stats(everywhere=False)
    shown = render_metrics(own, request.headers.get("accept", ""))
    return Response(shown.content.decode(), headers={"content-type": shown.content_type})


HANDLERS: dict[str, Callable[..., Any]] = {"metrics": metrics}
