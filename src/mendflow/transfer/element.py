"""The client of a storage element: files are fetched and published completely or not at all.

Every exception of a protocol becomes one kind of error, which says whether a retry may help, and contains no secret."""

import errno
import hashlib
import os
import posixpath
import tempfile
import urllib.parse
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from mendflow.address_guard import AddressGuard
from mendflow.core.data.paths import OutsideElement, path_inside, place_below
from mendflow.core.data.protocols import LOCAL, OBJECTS, WEB
from mendflow.core.model.data import StorageElement
from mendflow.core.model.values import FileRef
from mendflow.transfer.addresses import FileAddress, address_of, shown
from mendflow.transfer.client_programs import GlobusFiles, OpenSshFiles, ProgramFile
from mendflow.transfer.errors import BadFileUrl, DamagedFile, FileMissing, TargetOccupied, TransferFailed
from mendflow.transfer.fetch import always, fetch_file, pause
from mendflow.transfer.file_systems import file_system, options_from_url, options_of, redacted
from mendflow.transfer.partial_files import TransferSource
from mendflow.transfer.rooted_paths import escapes_root, place_inside
from mendflow.transfer.sources import LASTING_ERRORS, FsspecFile, LocalFile, WebFile, call_with_timeout, identity_of
from mendflow.transfer.targets import (
    ASIDE,
    DiskWriter,
    ObjectWriter,
    ProgramWriter,
    RenameWriter,
    TargetWriter,
    publish,
)

COPIES: Final = "fsspec.spec"
"""The class whose rename copies and removes; a file system with an atomic rename overrides it."""

PASSING_ERRORS: Final = frozenset(
    {errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN, errno.EHOSTDOWN, errno.ENOSPC, errno.EDQUOT}
)
"""Errors of network disks, and of a full one, that may pass."""

NOTHING: Final = hashlib.sha256().hexdigest()

LASTING_NAMES: Final = ("NoCredentialsError", "PartialCredentialsError", "ParamValidationError", "NoRegionError")


class ElementFile(NamedTuple):
    """A file of an element. `path` is below its URL; `identity` changes with the content, as far as that is known
    without reading it."""

    path: str
    bytes: int
    identity: str


class StorageClient:
    """Every method blocks; call it in a thread. Thread-safe."""

    def __init__(self, storage: StorageElement, environment: Mapping[str, str] = os.environ) -> None:
        self.storage = storage
        self.root = address_of(storage.url)
        options, self._secrets = options_of(storage, environment)
        self._timeout_s = storage.timeout_ms / 1000
        local = self.root.protocol == "file"
        web = self.root.protocol in WEB and not options
        self._system: Any = None if local or web else self._opened(options)

    def _opened(self, options: dict[str, Any]) -> Any:
        try:
            in_url = options_from_url(self.root.protocol, self.root.url)
            self._secrets |= {str(in_url[name]) for name in ("password",) if in_url.get(name)}
            return file_system(self.root.protocol, {**in_url, **options}, self.storage.timeout_ms)
        except BadFileUrl as error:
            raise BadFileUrl(redacted(str(error), self._secrets)) from None
        except TransferFailed as error:
            raise self._without_secrets(error) from None

    # fetch

    def fetch(
        self,
        url: str,
        target: str,
        ref: FileRef | None = None,
        *,
        resume: bool = True,
        durable: bool = True,
        wanted: Callable[[], bool] = always,
        within: str = "",
        guard: AddressGuard | None = None,
    ) -> tuple[str, int]:
        """Fetch a file to `target`; returns its digest and size. With `ref` its content must match. A partial file is
        kept beside `target`, and with `ref` the next call continues it. If it is of this machine, it must be `within`
        this folder when it is opened, too; if it is of the web, the `guard` must allow whatever is reached for it."""
        place = self._place(url)
        try:
            return fetch_file(
                lambda: self._origin(place, within, guard),
                target,
                ref,
                tries=self.storage.tries,
                resume=resume,
                durable=durable,
                wanted=wanted,
            )
        except DamagedFile as error:
            if not self.storage.name:
                raise
            # Files of several projects lie on an element: what another one is like is not told.
            text = "it arrived damaged, or is another file than was expected there"
            raise DamagedFile(text, passing=error.passing) from None
        except TransferFailed as error:
            raise self._without_secrets(error) from None

    # publish

    def publish(
        self,
        source: str,
        url: str,
        ref: FileRef,
        may_rename: Callable[[], bool] = always,
        *,
        mark: str = "",
        turn: int = 0,
        replaces: Collection[str] = (),
        overwrite: bool = False,
        wanted: Callable[[], bool] = always,
    ) -> None:
        """Write a file to its place, with one atomic step at the end, and only if `may` still allows it then. `mark`
        identifies the owner and `turn` the attempt: leftovers of earlier ones are removed. An existing file stays, and
        TargetOccupied is raised, unless its digest is in `replaces`, or anything may be overwritten."""
        place = self._place(url)
        if self.storage.read_only:
            raise TransferFailed(f"storage element {self.storage.name} is read-only")
        turns = range(1, self.storage.tries + 1)
        for each in turns:
            try:
                with self._held(place, create=True) as held:
                    writing = self._writing(held, mark, turn)
                    there = self._look(place)
                    if there is not None and self._is(place, there, ref, replaces, overwrite=overwrite):
                        writing.forget()
                        return
                    over = there.identity if there is not None else ""
                    publish(writing, source, ref, may_rename, over=over, now=lambda: self._identity(place))
                    return
            except TransferFailed as error:
                if not error.passing or each == turns[-1] or not wanted():
                    raise self._without_secrets(error) from None
            except OSError as error:
                passing = error.errno in PASSING_ERRORS
                if not passing or each == turns[-1] or not wanted():
                    raise TransferFailed(str(error), passing=passing) from None
            pause(each)

    def _writing(self, place: FileAddress, mark: str, turn: int) -> TargetWriter:
        if place.protocol in LOCAL:
            return DiskWriter(place.path, mark, turn)
        if place.protocol in OBJECTS:
            return ObjectWriter(self._system, place.path, self._translate, self._timeout_s)
        if isinstance(self._system, OpenSshFiles):
            return ProgramWriter(self._system, self._system._strip_protocol(place.path), mark, turn)
        if self._system is None or type(self._system).mv.__module__ == COPIES:
            raise TransferFailed(f"{place.protocol}:// has no atomic rename: files can only be read from there")
        path = self._system._strip_protocol(place.path)
        return RenameWriter(self._system, path, self._translate, self._timeout_s, mark, turn)

    def _is(
        self, place: FileAddress, there: ElementFile, ref: FileRef, replaces: Collection[str], *, overwrite: bool
    ) -> bool:
        """Whether the same file is there already: a repeated attempt has nothing to do. Raises TargetOccupied for
        another one that may not be replaced."""
        known = there.bytes == ref.bytes or replaces
        digest = self._digest(place, there) if known else ""
        if digest == ref.sha256:
            return True
        if overwrite or (digest and digest in replaces):
            return False
        raise TargetOccupied(  # whose it is, and what, is not for everyone who finds it there
            f"another file lies at {shown(place.url)}, which this job did not write, and it is left as it is; "
            "move it away, or take another name"
        )

    def _digest(self, place: FileAddress, there: ElementFile) -> str:
        if place.protocol in LOCAL:
            return self._local(place).digest()
        if place.protocol in ("s3", "s3a"):
            digest = self._ask(lambda: self._system.metadata(place.path)).get("sha256")
            if isinstance(digest, str) and len(digest) == len(NOTHING):
                return digest
        return self.digest(place.url) if there.bytes else NOTHING

    def _identity(self, place: FileAddress) -> str:
        """The identity of what is there now; empty if there is nothing."""
        there = self._look(place)
        return there.identity if there is not None else ""

    # queries

    def stat(self, url: str) -> ElementFile | None:
        """The file at a place; None if there is none."""
        return self._look(self._place(url))

    def digest(self, url: str) -> str:
        """The SHA-256 of the file at a place, by reading all of it, through a temporary file if it is remote."""
        place = self._place(url)
        if place.protocol in LOCAL:
            try:
                return self._local(place).digest()
            except OSError as error:
                raise TransferFailed(str(error)) from None
        with tempfile.TemporaryDirectory(prefix="mendflow-") as folder:
            return self.fetch(url, os.path.join(folder, "file"), resume=False)[0]

    def list(self, prefix: str = "") -> Sequence[ElementFile]:
        """All files below a path of the element, except unfinished ones."""
        top = self._place(place_below(self.storage.url, prefix) if prefix else self.storage.url)
        if top.protocol in LOCAL:
            found = _walked(top.path, os.path.realpath(self.root.path))
        elif self._system is None or isinstance(self._system, OpenSshFiles | GlobusFiles):
            raise TransferFailed(f"{top.protocol}:// cannot be listed")
        else:
            found = self._listed(top)
        return sorted(each for each in found if not posixpath.basename(each.path).startswith(ASIDE))

    def _listed(self, top: FileAddress) -> Iterator[ElementFile]:
        root = self._system._strip_protocol(self.root.path).rstrip("/") + "/"
        try:
            infos = self._ask(lambda: self._system.find(top.path, detail=True))
        except FileMissing:
            return
        for name, info in infos.items():
            if name.startswith(root):
                yield ElementFile(name.removeprefix(root), int(info["size"] or 0), identity_of(info))

    def remove(self, url: str) -> None:
        """Remove a file; a missing one is no error."""
        place = self._place(url)
        if self.storage.read_only:
            raise TransferFailed(f"storage element {self.storage.name} is read-only")
        if place.protocol in LOCAL:
            try:
                with self._held(place) as held:
                    os.unlink(held.path)
            except FileNotFoundError:
                pass
            except OSError as error:
                raise TransferFailed(str(error)) from None
        elif self._look(place) is not None:
            self._ask(lambda: self._system.rm_file(place.path))

    def reach(self) -> None:
        """Raise if the element does not answer from here."""
        if self.root.protocol in LOCAL:
            if not os.access(self.root.path, os.R_OK | os.X_OK | (0 if self.storage.read_only else os.W_OK)):
                raise TransferFailed(f"{self.root.path} does not exist, or this user may not use it")
        elif self._system is None:
            WebFile(self.root.url, timeout_s=self._timeout_s, chunk_bytes=self.storage.chunk_bytes).reach()
        elif not isinstance(self._system, GlobusFiles):  # of which nothing is told before a file is fetched
            self._ask(lambda: self._system.ls(self.root.path))

    # connection

    def _place(self, url: str) -> FileAddress:
        """A place within this element: by its text, and on a disk with all links followed."""
        storage = self.storage
        if url == storage.url:
            return self.root
        try:
            path_inside(storage.url, url)
        except OutsideElement as error:
            raise BadFileUrl(redacted(error.message, self._secrets)) from None
        place = address_of(url)
        if place.protocol in LOCAL and escapes_root(self.root.path, place.path):
            raise BadFileUrl(f"{url!r} leads out of the storage element {storage.name or storage.url} by a link")
        return place

    @contextmanager
    def _held(self, place: FileAddress, *, create: bool = False) -> Iterator[FileAddress]:
        """A place on a disk, so that no link can lead out of the element while something is done there."""
        if place.protocol not in LOCAL or place == self.root:
            yield place
            return
        with place_inside(self.root.path, place.path, create=create) as path:
            yield place._replace(path=path)

    def _local(self, place: FileAddress, within: str = "") -> LocalFile:
        return LocalFile(place.path, within if place == self.root else self.root.path)

    def _origin(self, place: FileAddress, within: str, guard: AddressGuard | None) -> TransferSource:
        if place.protocol in LOCAL:
            return self._local(place, within)
        chunk_bytes = self.storage.chunk_bytes
        if self._system is None:
            return WebFile(place.url, timeout_s=self._timeout_s, chunk_bytes=chunk_bytes, guard=guard)
        if isinstance(self._system, OpenSshFiles | GlobusFiles):
            return ProgramFile(self._system, place.url, timeout_s=self._timeout_s)
        return FsspecFile(self._system, place.path, self._translate, timeout_s=self._timeout_s, chunk_bytes=chunk_bytes)

    def _look(self, place: FileAddress) -> ElementFile | None:
        if place.protocol not in LOCAL and (self._system is None or isinstance(self._system, GlobusFiles)):
            raise TransferFailed(f"{place.protocol}:// tells nothing of a file before it is read")
        path = posixpath.relpath(_path(place), _path(self.root))
        try:
            if place.protocol in LOCAL:
                file = self._local(place)
                return ElementFile(path, file.size, file.identity)
            info = self._ask(lambda: self._system.info(place.path))
        except FileMissing:
            return None
        return ElementFile(path, int(info["size"] or 0), identity_of(info)) if info.get("type") != "directory" else None

    def _ask(self, call: Callable[[], Any]) -> Any:
        return call_with_timeout(call, self._translate, self._timeout_s)

    def _without_secrets(self, error: TransferFailed) -> TransferFailed:
        return type(error)(redacted(str(error), self._secrets), passing=error.passing)

    def _translate(self, error: Exception) -> Exception:
        """A protocol's exception as an error that says whether a retry may help."""
        if isinstance(error, TransferFailed):
            return error
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return error  # the local disk is full
        lasting = isinstance(error, (*LASTING_ERRORS, ValueError, TypeError)) or type(error).__name__ in LASTING_NAMES
        text = redacted(str(error) or type(error).__name__, self._secrets)
        if isinstance(error, FileNotFoundError):
            return FileMissing(f"there is no such file: {text}")
        return TransferFailed(text, passing=not lasting)


def _path(address: FileAddress) -> str:
    if address.protocol in LOCAL:
        return os.path.realpath(address.path)
    return "/" + urllib.parse.urlsplit(address.path).netloc + urllib.parse.urlsplit(address.path).path


def _walked(top: str, root: str) -> Iterator[ElementFile]:
    """Files of a folder and below; links that lead elsewhere are not followed."""
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            try:
                file = LocalFile(path)
            except TransferFailed:
                continue  # it was removed meanwhile, or is not a plain file
            if os.path.commonpath([root, real := os.path.realpath(path)]) == root:
                yield ElementFile(os.path.relpath(real, root), file.size, file.identity)
