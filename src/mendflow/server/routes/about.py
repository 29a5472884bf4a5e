"""Questions about the server itself, and the API's own description.

The description is large and the same for everybody, and whoever asks for it need not show a token: so it is written
once, and kept as it is sent."""

import gzip
import hashlib
from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

from litestar import MediaType, Request, Response
from litestar.di import NamedDependency
from litestar.params import SkipValidation
from litestar.serialization import encode_json

from mendflow.core.model.views import Health
from mendflow.server.docs_page import page_of
from mendflow.server.routes.parameters import TheDomain

Description = NamedDependency[SkipValidation[dict[str, Any]]]
GZIP_LEVEL: Final = 6


class KeptPage(NamedTuple):
    """What is sent, as it is and compressed."""

    plain: bytes
    packed: bytes
    digest: str


_KEPT: dict[str, KeptPage] = {}


async def health(domain: TheDomain) -> Response[Health]:
    view = await domain.health()
    return Response(view, status_code=200 if view.status == "ok" else 503)


async def openapi(description: Description, request: Request[Any, Any, Any]) -> Response[dict[str, Any]]:
    page = _kept("openapi", lambda: encode_json(description))
    return cast("Response[dict[str, Any]]", _answer(request, page, MediaType.JSON))


async def docs(description: Description, request: Request[Any, Any, Any]) -> Response[str]:
    """Its style stands in it, and nothing else that a browser would have to trust."""
    csp = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
    page = _kept("docs", lambda: page_of(description).encode())
    return cast("Response[str]", _answer(request, page, MediaType.HTML, {"Content-Security-Policy": csp}))


def _kept(name: str, write: Callable[[], bytes]) -> KeptPage:
    if name not in _KEPT:
        plain = write()
        packed = gzip.compress(plain, GZIP_LEVEL, mtime=0)
        _KEPT[name] = KeptPage(plain, packed, hashlib.sha256(plain).hexdigest()[:32])
    return _KEPT[name]


def _answer(
    request: Request[Any, Any, Any], page: KeptPage, kind: MediaType, more: dict[str, str] | None = None
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
