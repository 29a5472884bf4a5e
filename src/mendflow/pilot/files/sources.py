"""Places from which an input can be had: the server's keeping, a storage element, a URL, a path that this machine sees.

All of them bring the file in the same way: on from where an earlier try ended, checked whole, in its place in one step.
Nothing waits for the disk: a cache hashes what it finds there before it trusts it again. A source that is not the
server's is never shown the server's token."""

import logging
import re
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Annotated, Final

import msgspec

from mendflow.core.model.data import LOGICAL_PREFIX, ReplicaLocation, StorageElement
from mendflow.core.model.jobs import KEPT_PREFIX
from mendflow.core.model.values import FileRef
from mendflow.pilot.agent.http import CHUNK_BYTES, FileClient, ServerAway, ServerRefused
from mendflow.pilot.files.catalogue import FileCatalogue, NoFileCatalogue
from mendflow.transfer.element import StorageClient
from mendflow.transfer.errors import BadFileUrl, DamagedFile, TransferFailed
from mendflow.transfer.fetch import always, fetch_file, pause
from mendflow.transfer.sources import write_all

log = logging.getLogger("mendflow.pilot")

OPENED_MAX: Final = 64
PLAIN_STREAMS: Final = 8
DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class TransferSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How files are brought, as a repair has it after the usual way did not do. None: as usual, or as the storage
    element has it."""

    tries: Annotated[int, msgspec.Meta(ge=1, le=20)] | None = None
    timeout_ms: Annotated[int, msgspec.Meta(ge=100, le=3_600_000)] | None = None
    chunk_bytes: Annotated[int, msgspec.Meta(ge=1 << 10, le=64 << 20)] | None = None

    def of(self, storage: StorageElement) -> StorageElement:
        given = {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}
        return msgspec.structs.replace(storage, **given)


DEFAULT_TRANSFER: Final = TransferSettings()
_ANY: Final = StorageElement(name="", url="")
"""Its tries and times are those of whatever is no element."""


def digest_in(source: str) -> str:
    """What the content of a stored file must be; of other places nothing is known."""
    return source.removeprefix(KEPT_PREFIX) if source.startswith(KEPT_PREFIX) else ""


def is_digest(text: str) -> bool:
    """Whether this can name a file by its content, and nothing else: it becomes a part of paths."""
    return DIGEST.fullmatch(text) is not None


class StoredFile:
    """A file stored on the server, to be copied from there."""

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
            raise TransferFailed(str(error)) from None
        except ServerAway as error:
            raise TransferFailed(str(error), passing=True) from None


class OpenElements:
    """Storage elements that were opened, each once, and how many files may be under way at each."""

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
        """To be held while a file is under way."""
        with self._guard:
            return self._streams.setdefault(storage.name, threading.Semaphore(max(1, storage.streams)))


class InputSources:
    """`wanted` says whether files are still worth bringing; it is asked again and again. All methods block."""

    def __init__(
        self,
        files: FileClient,
        elements: OpenElements,
        catalogue: FileCatalogue | None = None,
        wanted: Callable[[], bool] = always,
    ) -> None:
        self._files = files
        self._elements = elements
        self._catalogue = catalogue or NoFileCatalogue()
        self._wanted = wanted

    def while_wanted(self, wanted: Callable[[], bool]) -> "InputSources":
        """The same, for files that are worth bringing only as long as this says so too."""
        return InputSources(self._files, self._elements, self._catalogue, lambda: self._wanted() and wanted())

    def wanted(self) -> bool:
        return self._wanted()

    def fetch(
        self,
        source: str,
        target: str,
        ref: FileRef | None,
        transfer: TransferSettings = DEFAULT_TRANSFER,
        damaged: Callable[[str], None] = log.warning,
    ) -> tuple[str, int]:
        """Bring a file: its digest and size. `source` is `kept:SHA256`, `lfn:NAME`, a URL or an absolute path. Of a
        replica that is another file `damaged` is told, and the next is taken. Raises `TransferFailed`, and `BadFileUrl`
        for what is no source."""
        if source.startswith(KEPT_PREFIX):
            return self._from_keeping(digest_in(source), target, ref, transfer)
        if source.startswith(LOGICAL_PREFIX):
            return self._from_nearest(source.removeprefix(LOGICAL_PREFIX), target, ref, transfer, damaged)
        near = self._element_of(source, ref, transfer)
        return self._from_element(near or ReplicaLocation(element=plain(source), url=source), target, ref, transfer)

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
        """From the first of its places that has it. Each is one that the catalogue named, so there is nothing to choose
        for a repair. If each is one that no file may be read from, waiting does not help either."""
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
        raise TransferFailed("; ".join(reasons) or "no place is known where it is")

    def _from_element(
        self, place: ReplicaLocation, target: str, ref: FileRef | None, transfer: TransferSettings
    ) -> tuple[str, int]:
        element = self._elements.of(transfer.of(place.element))
        with self._elements.stream(place.element):
            return element.fetch(place.url, target, ref, durable=False, wanted=self._wanted)

    def _element_of(self, source: str, ref: FileRef | None, transfer: TransferSettings) -> ReplicaLocation | None:
        """The element that a replica's URL belongs to: how it is spoken to stands there, and not in the URL."""
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
    """A URL as an element of its own, with nothing else in it."""
    return StorageElement(name=name, url=source, streams=PLAIN_STREAMS)
