"""Questions about the server itself, and the API's own description."""

from collections.abc import Callable
from typing import Any

from litestar import Response
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


async def docs(description: Description) -> str:
    return page_of(description)


HANDLERS: dict[str, Callable[..., Any]] = {"health": health, "openapi": openapi, "docs": docs}
