"""Stored files, known by their SHA-256. Their content streams through; it is never held whole in memory."""

import re
from collections.abc import Callable
from typing import Annotated, Any

from litestar import Request, Response
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter, SkipValidation
from litestar.response import Stream

from mendflow.core.model.errors import InvalidRequest, TooLarge
from mendflow.core.model.principals import ADMIN, PILOT
from mendflow.core.model.values import FileRef
from mendflow.server.request_audit import note
from mendflow.server.request_body import body_chunks
from mendflow.server.routes.parameters import Text, TheCaller, TheDomain

FILE_BYTES_MAX = 64 << 30
NAME_CHARS_MAX = 255
BYTES = "application/octet-stream"

Digest = Annotated[
    str, PathParameter(pattern="^[0-9a-f]{64}$", description="The content's SHA-256, in small hexadecimal digits.")
]
OfCase = Annotated[
    str, QueryParameter(description="A case of yours that refers to the file, or the word `last`; or a job of it.")
]
BytesMax = NamedDependency[SkipValidation[int]]


def _announced(request: Request[Any, Any, Any]) -> int:
    length = request.headers.get("content-length", "0")
    return int(length) if length.isdecimal() and len(length) < 20 else 0


async def store_file(
    request: Request[Any, Any, Any],
    domain: TheDomain,
    caller: TheCaller,
    file_bytes_max: BytesMax,
    sha256: Digest,
    name: Text = "",
    linked: Text = "",
) -> FileRef:
    """The body is the content, or empty if `linked` names a file in the server's folder of incoming files. It is
    refused if it does not have that SHA-256."""
    if _announced(request) > file_bytes_max:
        raise TooLarge(f"the file is larger than the {file_bytes_max} bytes that are allowed", bytes_max=file_bytes_max)
    if len(name) > NAME_CHARS_MAX or "/" in name or "\0" in name:
        raise InvalidRequest("a file's name has no slash and at most 255 characters", field="name")
    note(object=f"{sha256} {name}" if name else "")
    if linked:
        return await domain.store_linked(name or sha256, linked, sha256=sha256)
    stored = await domain.store_file(name or sha256, body_chunks(request.receive, file_bytes_max), sha256=sha256)
    if not caller.roles & {ADMIN, PILOT} or caller.projects:
        await domain.file_readers.note_given(caller.name, sha256)
    return stored


def _headers(sha256: str, size: int) -> dict[str, str]:
    """Headers that keep a browser from showing the content as a page of this server."""
    return {
        "Content-Length": str(size),
        "Content-Disposition": "attachment",
        "X-Content-Type-Options": "nosniff",
        "ETag": f'"{sha256}"',
    }


_FROM = re.compile(r"bytes=(\d{1,18})-")


async def read_file(
    request: Request[Any, Any, Any],
    domain: TheDomain,
    sha256: Digest,
    of: OfCase = "",  # noqa: ARG001 - the gate reads it
) -> Stream:
    """The gate has seen that the case `of` refers to the file, if somebody asks who has to name one."""
    size = await domain.file_size(sha256)
    asked = _FROM.fullmatch(request.headers.get("range", ""))
    begin = int(asked[1]) if asked else 0
    if not 0 < begin < size:
        return Stream(domain.read_file(sha256), media_type=BYTES, headers=_headers(sha256, size))
    headers = {**_headers(sha256, size - begin), "Content-Range": f"bytes {begin}-{size - 1}/{size}"}
    return Stream(domain.read_file(sha256, begin), status_code=206, media_type=BYTES, headers=headers)


async def file_size(
    domain: TheDomain,
    sha256: Digest,
    of: OfCase = "",  # noqa: ARG001 - the gate reads it
) -> Response[None]:
    size = await domain.file_size(sha256)
    return Response(None, headers=_headers(sha256, size))


HANDLERS: dict[str, Callable[..., Any]] = {"store_file": store_file, "read_file": read_file, "file_size": file_size}
