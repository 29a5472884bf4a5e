"""Stores or publishes what a job made: on the server, or on a storage element.

The order: hash the file, write it under a temporary name, verify it, rename it, report it. It is not renamed when the
lease has ended, since the job may have been given to another pilot. If interrupted anywhere, it starts over, and finds
what is already done. If an element is away, the pilot waits and reports nothing meanwhile. What no element takes goes
to the server, so that no job is run again for it."""

import hashlib
import logging
import os
import time
from collections.abc import Callable, Iterator, Set
from io import BufferedReader
from typing import Final, NoReturn

import msgspec

from mendflow.core.data.path_patterns import name_below
from mendflow.core.model.data import OutputPlacement, Publication, ReplicaLocation, StorageElement
from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.jobs import Measurements, Outcome, StoredLog
from mendflow.core.model.references import SPILLED_KEY, references_in
from mendflow.core.model.values import FileRef, is_executable
from mendflow.pilot.agent.http import FileClient, ServerRefused
from mendflow.pilot.cache.contract import Cache
from mendflow.pilot.files.catalogue import FileCatalogue, NoFileCatalogue
from mendflow.pilot.files.own_files import open_own, opened_path
from mendflow.pilot.files.retries import ElementRetries, ElementUnavailable
from mendflow.pilot.files.sources import OpenElements, plain
from mendflow.pilot.files.staging_faults import StagingFailed, publication_fault, upload_fault
from mendflow.pilot.files.stored_here import StoredHere
from mendflow.pilot.files.work_folder import WorkFolder
from mendflow.pilot.isolation.allowed_transfers import TransferCheck, any_transfer
from mendflow.pilot.slot.logs import pack_log
from mendflow.pilot.slot.messages import FinishedAttempt
from mendflow.transfer.addresses import shown
from mendflow.transfer.errors import BadFileUrl, TargetOccupied, TransferFailed, WriterSuperseded
from mendflow.transfer.fetch import always

log = logging.getLogger("mendflow.pilot")

NAME_CHARS_MAX: Final = 200
SMALL_BYTES: Final = 256 << 10
TOGETHER_MAX: Final = 1000
TOGETHER_BYTES_MAX: Final = 4 << 20
"""Files up to this size are sent to the server with others, so many files and bytes in one request."""


class _UploadFailed(Exception):
    def __init__(self, path: str, reason: OSError | ServerRefused) -> None:
        super().__init__(path)
        self.path = path
        self.reason = reason


class OutputPublisher:
    """Every method blocks; call it in a thread. Thread-safe."""

    def __init__(
        self,
        work_folder: WorkFolder,
        files: FileClient,
        cache: Cache,
        stored: StoredHere,
        elements: OpenElements,
        catalogue: FileCatalogue | None = None,
        wanted: Callable[[], bool] = always,
        check_transfer: TransferCheck = any_transfer,
    ) -> None:
        self._work_folder = work_folder
        self._files = files
        self._cache = cache
        self._stored = stored
        self._elements = elements
        self._catalogue = catalogue or NoFileCatalogue()
        self._wanted = wanted
        self._check_transfer = check_transfer
        self._trials = ElementRetries()
        self._hashed: dict[str, tuple[tuple[int, int, int, int], FileRef]] = {}

    def keep(self, done: FinishedAttempt, may_rename: Callable[[], bool] = always) -> msgspec.Raw:
        """Store all files of a finished attempt; returns the outcome with their references. Raises `ServerAway`,
        `ElementUnavailable` and `WriterSuperseded` if the caller should retry later, as long as the result is
        wanted."""
        outcome = msgspec.msgpack.decode(done.outcome, type=Outcome)
        folder = self._work_folder.attempt(done.job, done.fence)
        began, path = time.monotonic(), ""
        refs: dict[str, FileRef] = {}
        lists: dict[str, list[FileRef]] = {}
        try:
            spilled = [self._reference(path, "value.json") for path in done.spills]
            _demand_spilled_here(outcome, {ref.sha256 for ref in spilled})
            for path, ref in zip(done.spills, spilled, strict=True):
                self._upload(path, ref)
            for path, ref in zip(done.contents, outcome.contents, strict=True):
                # The server hashes what it gets, and refuses what is not what the job's process said.
                if not self._give(path, ref):
                    self._upload(path, ref)
                    self._cache.adopt(path, ref.sha256)
            for name, path in done.files.items():
                own_name = os.path.basename(path)[-NAME_CHARS_MAX:]
                inside = os.path.dirname(os.path.normpath(path))
                refs[name] = self._reference(os.path.join(folder, path), own_name, inside)
            for name, listed in done.file_lists.items():
                lists[name] = []
                for path in listed.paths:
                    ref = self._reference(os.path.join(folder, path), name_below(path, listed.base))
                    lists[name].append(ref)
            for together in _grouped(_to_store(done, refs, lists)):
                self._store(folder, together)
            refs |= self._published(done, folder, refs, may_rename)
            self._write_to_urls(done, folder, refs, may_rename)
            kept = {name: ref for name, ref in refs.items() if not _address(done, name)}
            outcome = msgspec.structs.replace(outcome, files=kept, file_lists=lists)
        except _MadeUpValue as failure:
            outcome = _failed_outcome(outcome, failure)
        except StagingFailed as failure:
            made = msgspec.structs.replace(outcome, files=refs, file_lists=lists)
            outcome = self._rescued(done, folder, made, _failed_outcome(outcome, failure))
        except (OSError, ServerRefused, _UploadFailed) as error:
            told = (error.path, error.reason) if isinstance(error, _UploadFailed) else (path, error)
            outcome = _failed_outcome(outcome, StagingFailed(upload_fault(*told)))
        if done.log:
            outcome = self._with_log(outcome, folder)
        self._forget(done, folder)
        stored = bool(done.files or done.file_lists or done.spills or done.contents)
        took_ms = int((time.monotonic() - began) * 1000) if stored else 0
        return msgspec.Raw(msgspec.msgpack.encode(_measured(outcome, done.staging_measures, took_ms)))

    def _rescued(self, done: FinishedAttempt, folder: str, made: Outcome, failed: Outcome) -> Outcome:
        """The job has ended well, and only its files could not be taken to where they belong: the server stores them,
        so that they can be published without the job being run again. The outcome then has them beside its fault."""
        kept = {name: msgspec.structs.replace(ref, logical="") for name, ref in made.files.items()}
        if kept.keys() != done.files.keys() or made.file_lists.keys() != done.file_lists.keys():
            return failed
        try:
            for name in done.publish.keys() & kept.keys():
                self._upload(os.path.join(folder, done.files[name]), kept[name])
        except (OSError, ServerRefused) as error:
            log.warning("files of %s could neither be published nor stored: %s", done.job, error)
            return failed
        return msgspec.structs.replace(failed, files=kept, file_lists=made.file_lists, outputs=made.outputs)

    def _with_log(self, outcome: Outcome, folder: str) -> Outcome:
        """The outcome with a reference to the whole log, when that is stored. A log that cannot be is not worth a
        job's failure: the end of it is in the outcome."""
        packed_path = f"{folder}.log.gz"
        try:
            packed = pack_log(f"{folder}.log", packed_path)
            file = FileRef(sha256=packed.sha256, bytes=packed.bytes, name="log.gz")
            self._upload(packed_path, file)
            os.unlink(packed_path)
        except (OSError, ServerRefused) as error:
            log.warning("a log of %s could not be stored, but for its end: %s", folder, error)
            return outcome
        extent = packed.extent
        stored = StoredLog(file=file, bytes=extent.size, left_out_at=extent.gap_start, left_out_bytes=extent.left_out)
        return msgspec.structs.replace(outcome, log=stored)

    def _reference(self, path: str, name: str, folder: str = "") -> FileRef:
        """Digest and size of a file. Kept until it is stored, because a server may be away for long and the file may be
        large."""
        with self._opened(path) as file:
            status = os.fstat(file.fileno())
            seal = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            known = self._hashed.get(path)
            if known is not None and known[0] == seal:
                return known[1]
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            ref = FileRef(
                sha256=digest,
                bytes=file.tell(),
                name=name,
                executable=is_executable(status.st_mode),
                folder=folder,
            )
        self._hashed[path] = (seal, ref)
        return ref

    def _forget(self, done: FinishedAttempt, folder: str) -> None:
        self._trials.forget(done.key)
        for path in list(self._hashed):
            if path.startswith(folder + "/"):
                self._hashed.pop(path, None)

    def _opened(self, path: str) -> BufferedReader:
        return open_own(path, str(self._work_folder.attempts))

    def _upload(self, path: str, ref: FileRef) -> None:
        with self._opened(path) as file:
            self._files.put(ref.sha256, os.path.basename(ref.name)[-NAME_CHARS_MAX:], file, ref.bytes)

    def _give(self, path: str, ref: FileRef) -> bool:
        """Whether a server on this machine took a large file as it is: so it is on the disk once, and not a second time
        in the cache."""
        return self._stored.give(path, ref, os.path.basename(ref.name)[-NAME_CHARS_MAX:])

    def _store(self, folder: str, files: list[tuple[str, FileRef]]) -> None:
        """Upload files of a folder, all small or only one, and add them to the cache."""
        try:
            if len(files) > 1:
                self._files.put_many({ref.sha256: self._content(folder, path, ref) for path, ref in files})
            else:
                [(path, ref)] = files
                if self._give(os.path.join(folder, path), ref):
                    return  # this is the only copy, and the server's
                self._upload(os.path.join(folder, path), ref)
        except (OSError, ServerRefused) as error:
            if len(files) == 1:
                raise _UploadFailed(files[0][0], error) from error
            for each in files:  # one of them is refused, and which is to be known
                self._store(folder, [each])
            return
        for path, ref in files:
            self._cache.adopt(os.path.join(folder, path), ref.sha256)

    def _content(self, folder: str, path: str, ref: FileRef) -> bytes:
        with self._opened(os.path.join(folder, path)) as file:
            return file.read(ref.bytes)

    def _published(
        self, done: FinishedAttempt, folder: str, refs: dict[str, FileRef], may_rename: Callable[[], bool]
    ) -> dict[str, FileRef]:
        """The references of files with logical names; they are published when this returns."""
        wishes = {
            name: OutputPlacement(publication=done.publish[name], file=refs[name])
            for name in refs
            if name in done.publish and not _address(done, name)
        }
        if not wishes:
            return {}
        answer = self._catalogue.place(done.job, wishes, self._trials.avoided_elements(done.key))
        for name, reason in answer.wrong.items():
            raise StagingFailed(self._trials.fault(done.key) or _refusal(done, name, "", reason, lasting=True))
        found = {}
        for name, wish in wishes.items():
            place = answer.files.get(name)
            if place is None:
                raise StagingFailed(_refusal(done, name, "", "the server named no storage element for it"))
            path, replaces = os.path.join(folder, done.files[name]), answer.replaces.get(name, ())
            self._write(done, name, path, wish.file, place, may_rename, replaces=replaces)
            found[name] = msgspec.structs.replace(wish.file, logical=wish.publication.logical)
        return found

    def _write_to_urls(
        self, done: FinishedAttempt, folder: str, refs: dict[str, FileRef], may_rename: Callable[[], bool]
    ) -> None:
        """Write files to the URLs that the job names; the job's own settings decide what may be overwritten."""
        for name, ref in refs.items():
            if url := _address(done, name):
                try:
                    reason = self._check_transfer(url, True)
                except TransferFailed as error:
                    raise StagingFailed(
                        _refusal(done, name, shown(url), str(error), lasting=not error.passing)
                    ) from error
                if reason:
                    raise StagingFailed(_refusal(done, name, shown(url), reason, lasting=True))
                place = ReplicaLocation(element=plain(url, name=shown(url)), url=url)
                overwrite = done.publish[name].overwrite
                self._write(
                    done, name, os.path.join(folder, done.files[name]), ref, place, may_rename, overwrite=overwrite
                )

    def _write(
        self,
        done: FinishedAttempt,
        name: str,
        path: str,
        ref: FileRef,
        place: ReplicaLocation,
        may_rename: Callable[[], bool],
        *,
        replaces: tuple[str, ...] = (),
        overwrite: bool = False,
    ) -> None:
        storage = place.element
        try:
            element = self._elements.of(storage)
            with self._elements.stream(storage), self._opened(path) as file:
                element.publish(
                    opened_path(file),
                    place.url,
                    ref,
                    may_rename,
                    mark=done.job,
                    turn=done.fence,
                    replaces=replaces,
                    overwrite=overwrite,
                    wanted=self._wanted,
                )
        except (TransferFailed, BadFileUrl, OSError) as error:
            if not self._wanted():
                raise WriterSuperseded(str(error)) from None
            self._give_up(done, name, storage, TransferFailed(str(error)) if isinstance(error, OSError) else error)
        self._cache.adopt(path, ref.sha256)

    def _give_up(
        self, done: FinishedAttempt, name: str, storage: StorageElement, error: TransferFailed | BadFileUrl
    ) -> NoReturn:
        """Decide after a failure: retry later, use another element, or fail."""
        passing = isinstance(error, TransferFailed) and error.passing
        if passing and self._trials.should_wait(done.key, storage, str(error)):
            raise ElementUnavailable(str(error)) from None
        lasting = isinstance(error, BadFileUrl | TargetOccupied)
        fault = _refusal(done, name, storage.name, str(error), passing=passing, lasting=lasting)
        chosen = done.publish[name].element or done.publish[name].url
        if not chosen and self._trials.give_up(done.key, storage.name, fault):
            raise ElementUnavailable(str(error)) from None  # another element may be near, too
        raise StagingFailed(fault) from None


def _address(done: FinishedAttempt, name: str) -> str:
    return done.publish[name].url if name in done.publish else ""


def _refusal(
    done: FinishedAttempt, name: str, element: str, reason: str, *, passing: bool = False, lasting: bool = False
) -> Fault:
    publication: Publication = done.publish[name]
    logical = "" if publication.url else publication.logical
    element = element if publication.url else element or publication.element
    return publication_fault(done.files[name], logical, element, reason, passing=passing, lasting=lasting)


def _to_store(
    done: FinishedAttempt, refs: dict[str, FileRef], lists: dict[str, list[FileRef]]
) -> Iterator[tuple[str, FileRef]]:
    """The files that the server is to store, by their paths in the job's folder."""
    yield from ((done.files[name], ref) for name, ref in refs.items() if name not in done.publish)
    for name, listed in done.file_lists.items():
        yield from zip(listed.paths, lists[name], strict=True)


def _grouped(files: Iterator[tuple[str, FileRef]]) -> Iterator[list[tuple[str, FileRef]]]:
    """A large file alone, small ones together."""
    small: list[tuple[str, FileRef]] = []
    size = 0
    for path, ref in files:
        if ref.bytes > SMALL_BYTES:
            yield [(path, ref)]
            continue
        if len(small) >= TOGETHER_MAX or size + ref.bytes > TOGETHER_BYTES_MAX:
            yield small
            small, size = [], 0
        small.append((path, ref))
        size += ref.bytes
    if small:
        yield small


class _MadeUpValue(StagingFailed):
    """A job says that a value was stored which it did not leave."""


def _demand_spilled_here(outcome: Outcome, made: Set[str]) -> None:
    """Refuse a value that stands for a file which the job did not leave: its own code can write any digest there, and
    the server believes its pilot."""
    for place, reference in references_in(outcome.outputs):
        if SPILLED_KEY in reference and reference[SPILLED_KEY] not in made:
            text = f"`{place}` stands for a stored value that the job did not leave; return the value itself"
            fault = Fault(name="notData", category=Category.OUTPUT, message=text, stage=AttemptStage.STAGE_OUT)
            raise _MadeUpValue(fault)


def _failed_outcome(outcome: Outcome, failure: StagingFailed) -> Outcome:
    fault = msgspec.structs.replace(failure.fault, log_tail=outcome.log_tail)
    return msgspec.structs.replace(outcome, fault=fault, outputs=None, files={}, file_lists={}, contents=())


def add_measures(outcome: msgspec.Raw, staging_measures: Measurements) -> msgspec.Raw:
    """An outcome without files, with the measures of its staging."""
    seen = msgspec.msgpack.decode(outcome, type=Outcome)
    return msgspec.Raw(msgspec.msgpack.encode(_measured(seen, staging_measures)))


def _measured(outcome: Outcome, staging_measures: Measurements, stage_out_ms: int = 0) -> Outcome:
    """The outcome with measures that were taken outside its slot."""
    measures = msgspec.structs.replace(
        outcome.measures,
        cached_files=staging_measures.cached_files,
        cached_bytes=staging_measures.cached_bytes,
        shared_files=staging_measures.shared_files,
        shared_bytes=staging_measures.shared_bytes,
        fetched_files=staging_measures.fetched_files,
        fetched_bytes=staging_measures.fetched_bytes,
        stage_in_ms=staging_measures.stage_in_ms,
        stage_out_ms=stage_out_ms,
        damaged=staging_measures.damaged,
    )
    return msgspec.structs.replace(outcome, measures=measures)
