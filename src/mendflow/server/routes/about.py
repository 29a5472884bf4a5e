"""Questions about the server itself, and the API's own description."""

from collections.abc import Callable
from typing import Any, Final, cast

import msgspec
from litestar import MediaType, Request, Response
from litestar.di import NamedDependency
from litestar.params import SkipValidation

from mendflow.core.model.views import Health
from mendflow.server.api_description import ApiDescription, DescriptionPage
from mendflow.server.routes.parameters import TheCaller, TheDomain

SOMETHING_WRONG: Final = "a disk of this server, or of a pilot, is full or cannot be written; a token shows which"

Description = NamedDependency[SkipValidation[ApiDescription]]


async def health(domain: TheDomain, caller: TheCaller) -> Response[Health]:
    """Whoever has not shown who it is learns no host and no folder."""
    view = await domain.health()
    if view.message and view.status == "ok" and not caller.name:
        view = msgspec.structs.replace(view, message=SOMETHING_WRONG)
    return Response(view, status_code=200 if view.status == "ok" else 503)


async def openapi(description: Description, request: Request[Any, Any, Any]) -> Response[dict[str, Any]]:
    return cast("Response[dict[str, Any]]", _answer(request, description.json, MediaType.JSON))


async def docs(description: Description, request: Request[Any, Any, Any]) -> Response[str]:
    """Its style stands in it, and nothing else that a browser would have to trust."""
    csp = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
    return cast("Response[str]", _answer(request, description.html, MediaType.HTML, {"Content-Security-Policy": csp}))


def _answer(
    request: Request[Any, Any, Any], page: DescriptionPage, kind: MediaType, more: dict[str, str] | None = None
) -> Response[Any]:
    is_packed = "gzip" in request.headers.get("accept-encoding", "")
    etag = f'"{page.digest}{"-gzip" if is_packed else ""}"'
    headers = {"ETag": etag, "Vary": "Accept-Encoding", "Cache-Control": "no-cache", **(more or {})}
    if etag in request.headers.get("if-none-match", ""):
        return Response(None, status_code=304, headers=headers)
    if is_packed:
        return Response(page.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=kind)
    return Response(page.plain, headers=headers, media_type=kind)


HANDLERS: dict[str, Callable[..., Any]] = {"health": health, "openapi": openapi, "docs": docs}
