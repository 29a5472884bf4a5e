"""Places from which an input can be had: the server's keeping, a URL, a path that this machine sees.

Each gives the content in pieces, and raises `NoSource` with a reason when it does not. A source that is not the
server's is never shown the server's token."""

import http.client
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Annotated

import msgspec

from mendflow.core.model.jobs import KEPT
from mendflow.pilot.http import CHUNK_BYTES, FILE_TIMEOUT_S, Files, ServerAway, ServerRefused


class Transfer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How files are brought: the usual way, or as a repair has it after that did not do."""

    tries: Annotated[int, msgspec.Meta(ge=1, le=20)] = 4
    timeout_ms: Annotated[int, msgspec.Meta(ge=100, le=3_600_000)] = int(FILE_TIMEOUT_S * 1000)
    chunk_bytes: Annotated[int, msgspec.Meta(ge=1 << 10, le=64 << 20)] = CHUNK_BYTES


USUAL = Transfer()


class NoSource(Exception):
    """It could not be had from there. `passing`: it may well be had a moment later."""

    def __init__(self, reason: str, *, passing: bool = False) -> None:
        super().__init__(reason)
        self.passing = passing


class BadSource(Exception):
    """This names no place that a pilot can read from; the sentence says what does."""


def digest_in(source: str) -> str:
    """What the content of a kept file must be; of other places nothing is known."""
    return source.removeprefix(KEPT) if source.startswith(KEPT) else ""


def pieces(source: str, files: Files, transfer: Transfer = USUAL) -> Iterator[bytes]:
    """The content of a source."""
    scheme = urllib.parse.urlsplit(source).scheme
    if source.startswith(KEPT):
        return _kept(source.removeprefix(KEPT), files, transfer)
    if scheme in ("http", "https"):
        return _fetched(source, transfer)
    if scheme == "file":
        return _read(urllib.request.url2pathname(urllib.parse.urlsplit(source).path), transfer)
    if os.path.isabs(source):
        return _read(source, transfer)
    raise BadSource(f"{source!r} is no source: give a URL (http, https, file), an absolute path, or {KEPT}SHA256")


def _kept(digest: str, files: Files, transfer: Transfer) -> Iterator[bytes]:
    try:
        yield from files.get(digest, timeout_s=transfer.timeout_ms / 1000, chunk_bytes=transfer.chunk_bytes)
    except ServerRefused as error:
        raise NoSource(str(error)) from None
    except ServerAway as error:
        raise NoSource(str(error), passing=True) from None


def _fetched(url: str, transfer: Transfer) -> Iterator[bytes]:
    try:
        with urllib.request.urlopen(url, timeout=transfer.timeout_ms / 1000) as answer:
            length = answer.headers.get("Content-Length")
            size = 0
            while chunk := answer.read(transfer.chunk_bytes):
                size += len(chunk)
                yield chunk
    except urllib.error.HTTPError as error:
        passing = error.code in (408, 429, 502, 503, 504)
        raise NoSource(f"it answered {error.code} {error.reason}", passing=passing) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NoSource(str(error) or type(error).__name__, passing=True) from None
    if length is not None and length.isdigit() and size != int(length):
        raise NoSource(f"it ended after {size} of {length} bytes", passing=True)


def _read(path: str, transfer: Transfer) -> Iterator[bytes]:
    try:
        with open(path, "rb") as file:
            while chunk := file.read(transfer.chunk_bytes):
                yield chunk
    except OSError as error:
        raise NoSource(str(error)) from None
