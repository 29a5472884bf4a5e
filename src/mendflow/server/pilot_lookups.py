"""What pilots ask besides their exchange: where files can be read, and where outputs go; and small files that they send
together. Any server can answer, because all of it is in the store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import msgspec

from mendflow.core.model.data import LocateRequest, PlaceRequest, StoreRequest
from mendflow.operations.table import API
from mendflow.server.msgpack import decode_body, send_packed
from mendflow.server.request_body import read_body
from mendflow.services.api.domain import Domain

if TYPE_CHECKING:
    from litestar.types import Receive, Scope, Send

LOOKUP_BYTES_MAX: Final = 16 << 20
LOCATE_PATH: Final = f"{API}/pilots/locate"
PLACE_PATH: Final = f"{API}/pilots/place"
FILES_PATH: Final = f"{API}/pilots/files"
LOOKUP_PATHS: Final = frozenset({LOCATE_PATH, PLACE_PATH, FILES_PATH})

_locate_decoder = msgspec.msgpack.Decoder(LocateRequest)
_place_decoder = msgspec.msgpack.Decoder(PlaceRequest)
_files_decoder = msgspec.msgpack.Decoder(StoreRequest)
_encoder = msgspec.msgpack.Encoder()


class PilotLookups:
    def __init__(self, domain: Domain) -> None:
        self._domain = domain

    async def __call__(self, scope: Scope, receive: Receive, send: Send, who: str, projects: Iterable[str]) -> None:
        """`who` is the name of the token that the pilot has, `projects` are those that the token names."""
        await send_packed(self._answer(scope["path"], receive, who, frozenset(projects)), scope, send)

    async def _answer(self, path: str, receive: Receive, who: str, projects: frozenset[str]) -> bytes:
        body = await read_body(receive, LOOKUP_BYTES_MAX)
        if path == LOCATE_PATH:
            return _encoder.encode(await self._domain.locate(decode_body(_locate_decoder, body), projects=projects))
        if path == FILES_PATH:
            files = decode_body(_files_decoder, body)
            stored = await self._domain.store_files(files)
            if projects:
                await self._domain.file_readers.note_all_given(who, files.contents)
            return _encoder.encode(stored)
        return _encoder.encode(await self._domain.place(decode_body(_place_decoder, body), who=who))
