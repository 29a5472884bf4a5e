"""Stages files in and out.

An input is fetched once by its digest, verified, and given to each attempt that needs it. Outputs are stored before the
job is reported as done, so nobody ever sees an incomplete output."""

import hashlib
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import PurePosixPath
from typing import Final, NamedTuple

import msgspec

from mendflow.address_guard import AddressGuard
from mendflow.core.caching.sizes import DEFAULT_SPACE_BYTES
from mendflow.core.data.path_arguments import PLACED
from mendflow.core.data.path_patterns import fixed_folder
from mendflow.core.model.faults import Fault
from mendflow.core.model.jobs import KEPT_PREFIX, FunctionRef, JobSpec, Measurements, digest_in, sources_of
from mendflow.core.model.values import FileRef, Value, content_kind, file_of, is_digest
from mendflow.pilot.agent.http import FileClient
from mendflow.pilot.agent.slot_work import has_own_folder
from mendflow.pilot.cache import entries
from mendflow.pilot.cache.contract import Cache, CacheEntry, CacheOrigin, LinkState
from mendflow.pilot.cache.disk import DiskCache
from mendflow.pilot.files.catalogue import FileCatalogue
from mendflow.pilot.files.linked_inputs import ChangedInputs, LinkedInput
from mendflow.pilot.files.module_bundles import unpack_modules
from mendflow.pilot.files.publishing import OutputPublisher
from mendflow.pilot.files.sources import (
    DEFAULT_TRANSFER,
    InputSources,
    OpenElements,
    TransferSettings,
)
from mendflow.pilot.files.staging_faults import StagingFailed, fault_of, missing_input_fault, staging_fault
from mendflow.pilot.files.staging_tally import StagingTally
from mendflow.pilot.files.stored_here import StoredHere
from mendflow.pilot.files.work_folder import WorkFolder, remove_tree
from mendflow.pilot.isolation.allowed_transfers import TransferBounds, TransferCheck, any_transfer, unbounded
from mendflow.pilot.slot.messages import FinishedAttempt
from mendflow.pilot.worker.module_sources import source_file
from mendflow.transfer.errors import BadFileUrl, FileMissing, TransferFailed
from mendflow.transfer.fetch import always

log = logging.getLogger("mendflow.pilot")

EMPTY: Final = hashlib.sha256().hexdigest()
EXECUTABLE_MODE: Final = 0o755
TOGETHER_MAX: Final = 8
"""So many inputs of one job are fetched in parallel; a storage element may allow fewer."""


class StagedFiles(NamedTuple):
    """What was staged for an attempt: the digests that must stay in the cache meanwhile, measures, and the inputs that
    are links into the cache."""

    pins: list[str]
    measures: Measurements
    links: list[LinkedInput]


class _Input(NamedTuple):
    """An input: its path in the job's folder, its digest and size if known, and its sources. A size of -1 is
    unknown."""

    path: str
    ref: FileRef | None
    sources: tuple[str, ...]


class _Argument(NamedTuple):
    """A stored part of an argument: a value that was spilled, or the content of one."""

    ref: FileRef
    is_spilled: bool


def stored_arguments(value: Value) -> Iterator[_Argument]:
    """All stored parts of a value. What stands for a path in the job's folder is an input, and is staged as such."""
    if isinstance(value, dict):
        digest = value.get("$spilled")
        if isinstance(digest, str):
            yield _Argument(FileRef(sha256=digest, bytes=-1, name=""), True)
            return
        if content_kind(value) and (ref := file_of(value)) is not None:
            yield _Argument(ref, False)
            return
        value = [] if PLACED in value else list(value.values())
    if isinstance(value, list):
        for element in value:
            yield from stored_arguments(element)


def check_inside(path: str) -> str:
    """The path, if it stays inside its folder."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or not pure.parts or "\0" in path:
        text = f"the path {path!r} leaves the job's folder: use a relative path without `..`"
        raise StagingFailed(staging_fault("badPath", text, path))
    return path


def needs_files(spec: JobSpec) -> bool:
    """Whether files must be staged before a slot can run the job."""
    if spec.inputs or spec.files or spec.replicas or spec.folders or any(use.path for use in spec.secrets):
        return True
    given = [each for each in (*spec.args, *spec.kwargs.values()) if isinstance(each, dict | list)]
    return bool(given) and any(True for _ in stored_arguments(given))


class FileStager:
    """Every method blocks and is meant for a thread; they may run side by side. `catalogue` knows where logical files
    are and where published ones go. Without `gives_links` no job gets links into the cache, even if it asks.
    `check_transfer` says which addresses files are transferred from and to, `bounds` what they may not lead out of,
    `guard` what of the web is reached."""

    def __init__(
        self,
        work_folder: WorkFolder,
        files: FileClient,
        *,
        cache: Cache | None = None,
        catalogue: FileCatalogue | None = None,
        gives_links: bool = True,
        check_transfer: TransferCheck = any_transfer,
        bounds: TransferBounds = unbounded,
        guard: AddressGuard | None = None,
    ) -> None:
        self._work_folder = work_folder
        self._gives_links = gives_links
        self._cache = cache if cache is not None else DiskCache(work_folder.cache, DEFAULT_SPACE_BYTES)
        self._leaving, self._gone = threading.Event(), threading.Event()
        self._stored = StoredHere(files, work_folder.stored)
        elements = OpenElements()
        self._fetching = InputSources(files, elements, catalogue, self.is_fetching, check_transfer, bounds, guard)
        self._publishing = OutputPublisher(
            work_folder,
            files,
            self._cache,
            self._stored,
            elements,
            catalogue,
            lambda: not self._gone.is_set(),
            check_transfer,
        )
        self._sources: dict[tuple[str, int, int], str] = {}
        self._code: dict[FunctionRef, str] = {}

    def stop_fetching(self) -> None:
        """Stop fetching: transfers in progress end soon, and continue after a restart."""
        self._leaving.set()

    def is_fetching(self) -> bool:
        """Whether files are still fetched: the pilot stays."""
        return not self._leaving.is_set()

    def stop_publishing(self) -> None:
        """Stop retrying to publish."""
        self._gone.set()

    # stage in

    def stage_in(self, spec: JobSpec, folder: str) -> StagedFiles:
        """Put all files where the job expects them."""
        pins: list[str] = []
        began, path = time.monotonic(), ""
        try:
            transfer = _transfer_of(spec)
            for path in (*spec.files.values(), *spec.folders):
                check_inside(path)
            path = ""
            if has_own_folder(spec):
                os.makedirs(folder, exist_ok=True)
            tally = StagingTally()
            self._stage_arguments(spec, _Route(self._fetching, transfer), pins)
            self._place_all(spec, folder, transfer, tally)
            for name, path in spec.files.items():
                above = fixed_folder(path) if name in spec.file_lists else os.path.dirname(path)
                os.makedirs(os.path.join(folder, above), exist_ok=True)
            for path in spec.folders:
                os.makedirs(os.path.join(folder, path), exist_ok=True)
            if tally.links:
                entries.wait_for_tick()
            return StagedFiles(pins, tally.measures(int((time.monotonic() - began) * 1000)), tally.links)
        except (OSError, StagingFailed) as error:
            self.release(pins)
            remove_tree(folder)
            raise StagingFailed(fault_of(error, folder, path)) from None

    def _stage_arguments(self, spec: JobSpec, way: "_Route", pins: list[str]) -> None:
        """Take what arguments refer to into the cache, and let it stay there while the job runs. Large files that the
        server stores on this disk are read where they are."""
        pending = deque(stored_arguments([spec.args, spec.kwargs]))
        while pending:
            ref, is_spilled = pending.popleft()
            ref = _by_digest(ref.sha256) if is_spilled else ref
            self._cache.pin(ref.sha256)
            self._stored.hold(ref.sha256)
            pins.append(ref.sha256)
            if self._stored.link(ref):
                continue
            entry = self._cached(_Input("", ref, (KEPT_PREFIX + ref.sha256,)), ref, way)
            if is_spilled:
                with open(entry.path, "rb") as file:
                    pending.extend(stored_arguments(msgspec.json.decode(file.read())))

    def _place_all(self, spec: JobSpec, folder: str, transfer: TransferSettings, tally: "StagingTally") -> None:
        wishes, faults = _inputs(spec), deque[Fault]()
        way = _Route(self._fetching.while_wanted(lambda: not faults), transfer, tally.add_damaged)

        def place(wish: _Input) -> None:
            try:
                self._place(wish, folder, way, tally, link=spec.link_inputs and self._gives_links)
            except (OSError, StagingFailed) as error:
                faults.append(fault_of(error, folder, wish.path))
                raise StagingFailed(faults[0]) from None
            finally:
                if faults:
                    remove_tree(folder)  # including what this thread created after the others had given up

        if spec.stage_in == "sequence" or len(wishes) < 2:
            for wish in wishes:
                place(wish)
            return
        pool = ThreadPoolExecutor(min(len(wishes), TOGETHER_MAX), thread_name_prefix="mendflow-stage")
        under_way = [pool.submit(place, wish) for wish in wishes]
        try:
            for each in as_completed(under_way):
                each.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _place(self, wish: _Input, folder: str, way: "_Route", tally: "StagingTally", *, link: bool) -> None:
        target = os.path.join(folder, wish.path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if wish.ref is None:
            tally.add(CacheOrigin.FETCHED, _fetch(wish, target, way))
            return
        digest = wish.ref.sha256
        if not link and wish.sources[0].startswith(KEPT_PREFIX) and self._stored.copy(wish.ref, target):
            if wish.ref.executable:
                os.chmod(target, EXECUTABLE_MODE)
            tally.add(CacheOrigin.SHARED, wish.ref.bytes)
            return
        with self._cache.using(digest):
            entry = self._cached(wish, wish.ref, way)
            if not way.sources.is_wanted():
                raise StagingFailed(missing_input_fault(wish.path, wish.sources, "it is no longer wanted"))
            # A link has the mode of the cache's file, so what is executable is always a copy.
            linked = link and not wish.ref.executable
            self._cache.give(digest, target, link=linked)
            if linked:
                tally.links.append(LinkedInput(wish.path, target, digest, os.lstat(target).st_ino))
            if wish.ref.executable:
                os.chmod(target, EXECUTABLE_MODE)
            tally.add(entry.origin, entry.bytes)

    def _cached(self, wish: _Input, ref: FileRef, way: "_Route") -> CacheEntry:
        """The file in the cache; fetched from the first source that works if it is not there yet."""

        def fetch(target: str) -> None:
            _fetch(wish, target, way)

        return self._cache.take_in(ref.sha256, fetch, size=max(0, ref.bytes), wanted=way.sources.is_wanted)

    def local_code(self, function: FunctionRef) -> str | None:
        """The folder of the function's code if it is known already; does not block."""
        if function.code is None:
            return function.folder
        known = self._code.get(function)
        if known is None:
            return None
        return known if self._digest_of(source_file(known, function.module)) == function.code.sha256 else None

    def stage_code(self, function: FunctionRef) -> str:
        folder = self._code[function] = self._code_folder(function)
        return folder

    def _code_folder(self, function: FunctionRef) -> str:
        """The folder to load the function's module from: the flow's own if its source is the deployed one and imports
        nothing beside it, otherwise a folder with what the server stores. What is beside the flow may be edited in the
        moment in which it is loaded."""
        code = function.code
        assert code is not None, "a function without a source needs no code folder"
        bundle = function.bundle
        path = source_file(function.folder, function.module) if function.folder and bundle is None else ""
        if path and self._digest_of(path) == code.sha256:
            return function.folder
        parts = function.module.split(".")
        if not all(part.isidentifier() for part in parts):
            raise StagingFailed(staging_fault("badModule", f"{function.module!r} is not the name of a Python module"))
        folder = os.path.join(self._work_folder.code, code.sha256 + (f"-{bundle.sha256[:16]}" if bundle else ""))
        target = os.path.join(folder, *parts) + ".py"
        try:
            if bundle is not None and not self._has_modules(function, folder):
                packed = os.path.join(folder, ".modules")
                self.place_stored(bundle, packed)
                unpack_modules(packed, folder)
            if self._digest_of(target) != code.sha256:
                self.place_stored(code, target)
        except OSError as error:
            raise StagingFailed(fault_of(error, target, "")) from None
        return folder

    def place_stored(self, stored: FileRef, target: str) -> None:
        """Put a file that the server stores at a place of the pilot's own, as a whole."""
        ref = _by_digest(stored.sha256)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        temporary = f"{target}.{threading.get_ident()}.tmp"
        with self._cache.using(ref.sha256):
            self._cached(
                _Input(stored.name, ref, (KEPT_PREFIX + ref.sha256,)), ref, _Route(self._fetching, DEFAULT_TRANSFER)
            )
            self._cache.give(ref.sha256, temporary, link=False)
        os.replace(temporary, target)

    def _has_modules(self, function: FunctionRef, folder: str) -> bool:
        """Whether a folder has the modules that the flow was deployed with."""
        marks = (mark.partition(" ") for mark in function.modules)
        return all(self._digest_of(os.path.join(folder, path)).startswith(digest) for digest, _, path in marks)

    def _digest_of(self, path: str) -> str:
        try:
            status = os.stat(path)
            key = (path, status.st_ctime_ns, status.st_size)
            if key not in self._sources:
                with open(path, "rb") as file:
                    self._sources[key] = hashlib.file_digest(file, "sha256").hexdigest()
            return self._sources[key]
        except OSError:
            return ""

    # stage out

    def keep(self, done: FinishedAttempt, may_rename: Callable[[], bool] = always) -> msgspec.Raw:
        """See `OutputPublisher.keep`."""
        return self._publishing.keep(done, may_rename)

    def tidy(self) -> None:
        """Remove what was staged for calls of an earlier agent, of which none runs any more."""
        self._stored.tidy()

    def check_links(self, links: Iterable[LinkedInput]) -> ChangedInputs:
        """Which of its linked inputs were changed while a job ran; they are in the cache no more."""
        found = ChangedInputs([], [])
        for each in links:
            state = self._cache.check_link(each.digest, each.target, each.inode)
            if state is not LinkState.INTACT:
                (found.by_it if state is LinkState.CHANGED_BY_HOLDER else found.by_somebody).append(each.path)
        return found

    def unlink(self, links: Iterable[LinkedInput]) -> None:
        """Remove the links into the cache from the folder of a job, before the folder itself is removed."""
        for each in links:
            self._cache.unlink(each.digest, each.target)

    def release(self, digests: Iterable[str]) -> None:
        """Let go of files that were staged for a job."""
        digests = list(digests)
        for digest in digests:
            self._stored.release(digest)
        self._cache.release(digests)


class _Route(NamedTuple):
    """How the files of a job are fetched."""

    sources: InputSources
    transfer: TransferSettings
    damaged: Callable[[str], None] = log.warning


def _fetch(wish: _Input, target: str, way: _Route) -> int:
    try:
        return way.sources.fetch(wish.sources[0], target, wish.ref, way.transfer, way.damaged)[1]
    except BadFileUrl as error:
        raise StagingFailed(staging_fault("badSource", f"input {wish.path}: {error}", wish.path)) from None
    except TransferFailed as error:
        gone = isinstance(error, FileMissing)
        raise StagingFailed(missing_input_fault(wish.path, wish.sources, str(error), gone=gone)) from None


def _inputs(spec: JobSpec) -> list[_Input]:
    """The inputs of a job. A file that the catalogue knows is looked up there, unless the job names a source for it."""
    wishes = []
    for path in (*spec.inputs, *(path for path in spec.replicas if path not in spec.inputs)):
        ref = spec.inputs.get(check_inside(path))
        sources = sources_of(spec, path)
        if chosen := digest_in(sources[0]):
            ref = ref if ref is not None and ref.sha256 == chosen else _by_digest(chosen, path)
        wishes.append(_Input(path, _known_ref(ref, path), sources))
    _check_disjoint([wish.path for wish in wishes])
    return wishes


def _check_disjoint(paths: list[str]) -> None:
    """Refuse inputs of which one is a file where another needs a folder. Checked before anything is fetched, so that
    the error always names the same one."""
    taken = {PurePosixPath(path) for path in paths}
    for path in paths:
        if over := taken.intersection(PurePosixPath(path).parents):
            text = f"{path} cannot be put into the job's folder: {min(over)} is a file there"
            raise StagingFailed(staging_fault("badPath", text, path))


def _known_ref(ref: FileRef | None, path: str) -> FileRef | None:
    """What is known of a file: a digest may be given without a size."""
    if ref is None:
        return None
    known = msgspec.structs.replace(_by_digest(ref.sha256, path), executable=ref.executable)
    return ref if ref.bytes > 0 or ref.sha256 == EMPTY else known


def _by_digest(digest: str, path: str = "") -> FileRef:
    if not is_digest(digest):
        what = f"input {path}" if path else "an argument"
        raise StagingFailed(staging_fault("badSource", f"{what}: {digest!r:.80} is no SHA-256", path))
    return FileRef(sha256=digest, bytes=-1, name="")


def _transfer_of(spec: JobSpec) -> TransferSettings:
    if not spec.transfer:
        return DEFAULT_TRANSFER
    try:
        return msgspec.convert(spec.transfer, TransferSettings)
    except msgspec.ValidationError as error:
        text = f"unknown or wrong transfer setting: {error}; there are tries, timeout_ms and chunk_bytes"
        raise StagingFailed(staging_fault("badTransfer", text)) from None
