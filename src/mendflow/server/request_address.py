"""What a request's address has to be: text, in UTF-8, percent-encoded or not, without the character NUL, which is in no
name and which not every store can be asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from mendflow.core.model.errors import InvalidRequest
from mendflow.server.error_bodies import BAD_TEXT

if TYPE_CHECKING:
    from litestar.types import HTTPScope

WITH_NUL = "the {} has the character NUL, which is in no name here"
REPLACED = "\ufffd"
"""What the HTTP server puts where bytes are no text."""


def demand_text(scope: HTTPScope) -> None:
    """Refuse a path or a query that is no text: what it would be read as is not what was sent."""
    if REPLACED in scope["path"]:
        _decode("path", scope["raw_path"])
    if "\0" in scope["path"]:
        raise InvalidRequest(WITH_NUL.format("path"), field="path")
    if (query := scope["query_string"]) and (b"%" in query or not query.isascii()):
        _decode("query", query)
        if b"\0" in unquote_to_bytes(query):
            raise InvalidRequest(WITH_NUL.format("query"), field="query")


def _decode(what: str, encoded: bytes) -> None:
    try:
        unquote_to_bytes(encoded).decode()
    except UnicodeDecodeError:
        raise InvalidRequest(BAD_TEXT.format(what), field=what) from None
