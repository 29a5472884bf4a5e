"""The audit log as a stream of lines."""

from collections.abc import Callable
from typing import Annotated, Any

from litestar.params import QueryParameter
from litestar.response import Stream

from mendflow.server.routes.parameters import TheDomain

LINES_TYPE = "application/jsonl"
Since = Annotated[int, QueryParameter(ge=0, description="From this moment on, in milliseconds since 1970.")]
Until = Annotated[int, QueryParameter(ge=0, description="Before this moment; 0: until now.")]


async def export_audit(domain: TheDomain, since: Since = 0, until: Until = 0) -> Stream:
    return Stream(
        domain.export_audit(since, until), media_type=LINES_TYPE, headers={"X-Content-Type-Options": "nosniff"}
    )


HANDLERS: dict[str, Callable[..., Any]] = {"export_audit": export_audit}
