"""Questions about the domain itself, and the API's own description."""

from typing import Annotated, Any

from litestar import MediaType, Response, Router, get
from litestar.di import NamedDependency
from litestar.params import QueryParameter, SkipValidation

from mendflow.core.model.repair_views import Explanation
from mendflow.core.model.views import Health
from mendflow.server.docs_page import page_of
from mendflow.server.routes.parameters import TheDomain

Description = NamedDependency[SkipValidation[dict[str, Any]]]


@get("/health", summary="Whether the server can work")
async def health(domain: TheDomain) -> Response[Health]:
    """Status 503 while the store is unreachable; the body says more."""
    view = await domain.health()
    return Response(view, status_code=200 if view.status == "ok" else 503)


@get("/why", summary="Why something is as it is")
async def why(
    domain: TheDomain,
    subject: Annotated[str, QueryParameter(min_length=1, description="CASE, CASE/SERIAL, CASE:ITEM or a pilot.")],
) -> Explanation:
    return await domain.why(subject)


@get("/openapi.json", summary="This API, described")
async def openapi(description: Description) -> dict[str, Any]:
    return description


@get("/docs", summary="This API, described for people", media_type=MediaType.HTML)
async def docs(description: Description) -> str:
    return page_of(description)


ROUTES = Router("/", route_handlers=[health, why, openapi, docs], tags=["server"])
