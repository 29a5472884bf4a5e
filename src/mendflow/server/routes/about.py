"""Questions about the server itself, and the API's own description."""

from collections.abc import Callable
from typing import Any

from litestar import MediaType, Response
from litestar.di import NamedDependency
from litestar.params import SkipValidation

from mendflow.core.model.views import Health
from mendflow.server.docs_page import page_of
from mendflow.server.routes.parameters import TheDomain

Description = NamedDependency[SkipValidation[dict[str, Any]]]


async def health(domain: TheDomain) -> Response[Health]:
    view = await domain.health()
    return Response(view, status_code=200 if view.status == "ok" else 503)


async def openapi(description: Description) -> dict[str, Any]:
    return description


async def docs(description: Description) -> Response[str]:
    """Its style stands in it, and nothing else that a browser would have to trust."""
    csp = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
    return Response(page_of(description), headers={"Content-Security-Policy": csp}, media_type=MediaType.HTML)


HANDLERS: dict[str, Callable[..., Any]] = {"health": health, "openapi": openapi, "docs": docs}
