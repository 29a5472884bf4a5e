"""Sources of an input: files stored on the server, a storage element, a URL, a local path.

All fetch in the same way: continue a partial file, verify the whole, rename it into place. There is no fsync: a cache
hashes what it finds on disk before it trusts it again. The server's token is sent to the server only."""

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Annotated, Final

import msgspec

from mendflow.address_guard import AddressGuard
from mendflow.core.model.data import LOGICAL_PREFIX, ReplicaLocation, StorageElement
from mendflow.core.model.jobs import KEPT_PREFIX, digest_in
from mendflow.core.model.values import FileRef, is_digest
from mendflow.pilot.agent.http import CHUNK_BYTES, FileClient, ServerAway, ServerRefused
from mendflow.pilot.files.catalogue import FileCatalogue, NoFileCatalogue
from mendflow.pilot.isolation.allowed_transfers import TransferBounds, TransferCheck, any_transfer, unbounded
from mendflow.transfer.element import StorageClient
from mendflow.transfer.errors import BadFileUrl, DamagedFile, FileMissing, TransferFailed
from mendflow.transfer.fetch import always, fetch_file, pause
from mendflow.transfer.sources import write_all

log = logging.getLogger("mendflow.pilot")

NOT_FOUND: Final = 404
OPENED_MAX: Final = 64
PLAIN_STREAMS: Final = 8


class TransferSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Transfer settings that a repair has chosen after the defaults failed. None: the default, or the storage element's
    setting."""

    tries: Annotated[int, msgspec.Meta(ge=1, le=20)] | None = None
    timeout_ms: Annotated[int, msgspec.Meta(ge=100, le=3_600_000)] | None = None
    chunk_bytes: Annotated[int, msgspec.Meta(ge=1 << 10, le=64 << 20)] | None = None

    def of(self, storage: StorageElement) -> StorageElement:
        given = {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}
        return msgspec.structs.replace(storage, **given)


DEFAULT_TRANSFER: Final = TransferSettings()
_ANY: Final = StorageElement(name="", url="")
"""Retries and timeouts for URLs that belong to no storage element."""


class StoredFile:
    """A file stored on the server."""

    identity = ""
    size = -1

    def __init__(self, files: FileClient, digest: str, *, timeout_s: float, chunk_bytes: int) -> None:
        self._files, self._digest = files, digest
        self._timeout_s, self._chunk_bytes = timeout_s, chunk_bytes

    def send(self, descriptor: int, offset: int, grown: Callable[[int], None]) -> None:
        try:
            for piece in self._files.get(
                self._digest, offset=offset, timeout_s=self._timeout_s, chunk_bytes=self._chunk_bytes
            ):
                offset = write_all(descriptor, piece, offset)
                grown(offset)
        except ServerRefused as error:
            # Only the server itself knows the digest: a proxy on the way may not find the server.
            missing = error.status == NOT_FOUND and self._digest in str(error)
            raise (FileMissing if missing else TransferFailed)(str(error)) from None
        except ServerAway as error:
            raise TransferFailed(str(error), passing=True) from None


class OpenElements:
    """Storage elements, each opened once, with a limit on parallel transfers for each."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._opened: dict[bytes, StorageClient] = {}
        self._streams: dict[str, threading.Semaphore] = {}

    def of(self, storage: StorageElement) -> StorageClient:
        key = msgspec.msgpack.encode(storage)
        with self._guard:
            if (known := self._opened.get(key)) is not None:
                return known
        opened = StorageClient(storage)
        with self._guard:
            if len(self._opened) >= OPENED_MAX:
                del self._opened[next(iter(self._opened))]
            return self._opened.setdefault(key, opened)

    def stream(self, storage: StorageElement) -> AbstractContextManager[bool]:
        """Hold this while a file is being transferred."""
        with self._guard:
            return self._streams.setdefault(storage.name, threading.Semaphore(max(1, storage.streams)))


class InputSources:
    """`wanted` is called repeatedly and says whether files should still be fetched. `guard` says what is reached for
    addresses of the web that belong to no storage element. All methods block."""

    def __init__(
        self,
        files: FileClient,
        elements: OpenElements,
        catalogue: FileCatalogue | None = None,
        wanted: Callable[[], bool] = always,
        check_transfer: TransferCheck = any_transfer,
        bounds: TransferBounds = unbounded,
        guard: AddressGuard | None = None,
    ) -> None:
        self._guard = guard
        self._files = files
        self._elements = elements
        self._catalogue = catalogue or NoFileCatalogue()
        self._wanted = wanted
        self._check_transfer = check_transfer
        self._bounds = bounds

    def while_wanted(self, wanted: Callable[[], bool]) -> "InputSources":
        """The same sources, with this condition in addition to `wanted`."""
        return InputSources(
            self._files,
            self._elements,
            self._catalogue,
            lambda: self._wanted() and wanted(),
            self._check_transfer,
            self._bounds,
            self._guard,
        )

    def is_wanted(self) -> bool:
        return self._wanted()

    def fetch(
        self,
        source: str,
        target: str,
        ref: FileRef | None,
        transfer: TransferSettings = DEFAULT_TRANSFER,
        damaged: Callable[[str], None] = log.warning,
    ) -> tuple[str, int]:
        """Fetch a file; returns its digest and size. `source` is `kept:SHA256`, `lfn:NAME`, a URL or an absolute path.
        A replica with wrong content is reported to `damaged`, and the next is tried. Raises `TransferFailed`, and
        `BadFileUrl` for an invalid source."""
        if source.startswith(KEPT_PREFIX):
            return self._from_keeping(digest_in(source), target, ref, transfer)
        if source.startswith(LOGICAL_PREFIX):
            return self._from_nearest(source.removeprefix(LOGICAL_PREFIX), target, ref, transfer, damaged)
        near = self._element_of(source, ref, transfer)
        if near is None:
            if reason := self._check_transfer(source, False):
                raise BadFileUrl(reason)
            place = ReplicaLocation(element=plain(source), url=source)
            within, guard = self._bounds(source), self._guard
            return self._from_element(place, target, ref, transfer, within=within, guard=guard)
        return self._from_element(near, target, ref, transfer)

    def _from_keeping(
        self, digest: str, target: str, ref: FileRef | None, transfer: TransferSettings
    ) -> tuple[str, int]:
        if not is_digest(digest):
            raise BadFileUrl(f"{digest!r:.80} is no SHA-256")
        how = transfer.of(msgspec.structs.replace(_ANY, chunk_bytes=CHUNK_BYTES))
        origin = StoredFile(self._files, digest, timeout_s=how.timeout_ms / 1000, chunk_bytes=how.chunk_bytes)
        return fetch_file(lambda: origin, target, ref, tries=how.tries, durable=False, wanted=self._wanted)

    def _from_nearest(
        self, name: str, target: str, ref: FileRef | None, transfer: TransferSettings, damaged: Callable[[str], None]
    ) -> tuple[str, int]:
        """From the first replica that works. All are named by the catalogue, so a repair has no choice to make. If no
        replica may be read at all, retrying does not help."""
        reasons, hopeless = [], True
        for place in self._located(name, transfer):
            try:
                return self._from_element(place, target, ref, transfer)
            except (TransferFailed, BadFileUrl) as error:
                reasons.append(f"{place.element.name}: {error}")
                hopeless &= isinstance(error, BadFileUrl)
                if isinstance(error, DamagedFile):
                    damaged(f"{name} on {place.element.name}: {error}")
                if not self._wanted():
                    break
        if reasons and hopeless:
            raise BadFileUrl("; ".join(reasons))
        raise TransferFailed("; ".join(reasons) or "no replica of it is known")

    def _from_element(
        self,
        place: ReplicaLocation,
        target: str,
        ref: FileRef | None,
        transfer: TransferSettings,
        within: str = "",
        guard: AddressGuard | None = None,
    ) -> tuple[str, int]:
        element = self._elements.of(transfer.of(place.element))
        with self._elements.stream(place.element):
            return element.fetch(place.url, target, ref, durable=False, wanted=self._wanted, within=within, guard=guard)

    def _element_of(self, source: str, ref: FileRef | None, transfer: TransferSettings) -> ReplicaLocation | None:
        """The element that a replica's URL belongs to: it has the connection settings, the URL does not."""
        if ref is None or not ref.logical:
            return None
        try:
            return next((each for each in self._located(ref.logical, transfer) if each.url == source), None)
        except TransferFailed:
            return None

    def _located(self, name: str, transfer: TransferSettings) -> list[ReplicaLocation]:
        tries = transfer.of(_ANY).tries
        for turn in range(1, tries + 1):
            try:
                answer = self._catalogue.locate([name])
                break
            except ServerRefused as error:
                raise TransferFailed(str(error)) from None
            except ServerAway as error:
                if turn == tries or not self._wanted():
                    raise TransferFailed(str(error), passing=True) from None
            pause(turn)
        if name in answer.wrong:
            raise TransferFailed(answer.wrong[name])
        return answer.files.get(name, [])


def plain(source: str, name: str = "") -> StorageElement:
    """A URL as an element of its own, without any settings."""
    return StorageElement(name=name, url=source, streams=PLAIN_STREAMS)
