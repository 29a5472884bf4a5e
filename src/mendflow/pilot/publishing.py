"""What a job made, on its way to where it is safe: the server's keeping, or a storage element.

In this order: hashed, written where nobody looks, checked, given its name, told. The name is not given when the lease
is over, since the job may be somebody else's then. Cut off anywhere, it is done again from the start, and what is
there already is found to be. An element that is away is waited for, and nobody is told meanwhile."""

import hashlib
import os
import time
from collections.abc import Callable
from typing import Final, NoReturn

import msgspec

from mendflow.core.model.data import Located, Placing, Publication, StorageElement
from mendflow.core.model.faults import Fault
from mendflow.core.model.jobs import Measures, Outcome
from mendflow.core.model.values import FileRef
from mendflow.pilot.cache.contract import Cache
from mendflow.pilot.home import Home
from mendflow.pilot.http import Files, ServerRefused
from mendflow.pilot.places import Nowhere, Places
from mendflow.pilot.sources import Elements, plain
from mendflow.pilot.stage_faults import StagingFailed, not_kept, not_published
from mendflow.pilot.trials import ElementAway, Trials
from mendflow.pilot.wire import Done
from mendflow.transfer.addresses import shown
from mendflow.transfer.fetching import always
from mendflow.transfer.problems import BadPlace, NoLongerOurs, TransferFailed

NAME_BYTES_MAX: Final = 200


class Publishing:
    """Every method blocks and is meant for a thread; they may run side by side."""

    def __init__(
        self,
        home: Home,
        files: Files,
        cache: Cache,
        elements: Elements,
        places: Places | None = None,
        wanted: Callable[[], bool] = always,
    ) -> None:
        self._home = home
        self._files = files
        self._cache = cache
        self._elements = elements
        self._places = places or Nowhere()
        self._wanted = wanted
        self._trials = Trials()
        self._hashed: dict[str, tuple[tuple[int, int, int, int], FileRef]] = {}

    def keep(self, done: Done, may_rename: Callable[[], bool] = always) -> msgspec.Raw:
        """Take all files of a finished attempt to where they are safe; the outcome with their references. Raises
        `ServerAway`, `ElementAway` and `NoLongerOurs` when it must be tried again later, if it is still wanted
        then."""
        outcome = msgspec.msgpack.decode(done.outcome, type=Outcome)
        folder = self._home.attempt(done.job, done.fence)
        began, path = time.monotonic(), ""
        try:
            for path in done.spills:
                self._upload(path, self._reference(path, "value.json"))
            refs = {}
            for name, path in done.files.items():
                refs[name] = self._reference(os.path.join(folder, path), path)
                if name not in done.publish:
                    self._upload(os.path.join(folder, path), refs[name])
                    self._cache.adopt(os.path.join(folder, path), refs[name].sha256)
            refs |= self._published(done, folder, refs, may_rename)
            self._deliver(done, folder, refs, may_rename)
            kept = {name: ref for name, ref in refs.items() if not _address(done, name)}
            outcome = msgspec.structs.replace(outcome, files=kept)
        except StagingFailed as failure:
            outcome = _spoiled(outcome, failure)
        except (OSError, ServerRefused) as error:
            outcome = _spoiled(outcome, StagingFailed(not_kept(path, error)))
        self._forget(done, folder)
        took_ms = int((time.monotonic() - began) * 1000) if done.files or done.spills else 0
        return msgspec.Raw(msgspec.msgpack.encode(_measured(outcome, done.brought, took_ms)))

    def _reference(self, path: str, name: str) -> FileRef:
        """What a file is. Remembered until it is safe: a server may be away for long, and the file be large."""
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            seal = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            known = self._hashed.get(path)
            if known is not None and known[0] == seal:
                return known[1]
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            ref = FileRef(sha256=digest, bytes=file.tell(), name=os.path.basename(name)[-NAME_BYTES_MAX:])
        self._hashed[path] = (seal, ref)
        return ref

    def _forget(self, done: Done, folder: str) -> None:
        self._trials.forget(done.key)
        for path in list(self._hashed):
            if path.startswith(folder + "/"):
                self._hashed.pop(path, None)

    def _upload(self, path: str, ref: FileRef) -> None:
        with open(path, "rb") as file:
            self._files.put(ref.sha256, ref.name, file, ref.bytes)

    def _published(
        self, done: Done, folder: str, refs: dict[str, FileRef], may_rename: Callable[[], bool]
    ) -> dict[str, FileRef]:
        """The references of those files that have logical names, which they have when this returns."""
        wishes = {
            name: Placing(publication=done.publish[name], file=refs[name])
            for name in refs
            if name in done.publish and not _address(done, name)
        }
        if not wishes:
            return {}
        answer = self._places.place(done.job, wishes, self._trials.avoided(done.key))
        for name, reason in answer.wrong.items():
            raise StagingFailed(self._trials.fault(done.key) or _refusal(done, name, "", reason))
        found = {}
        for name, wish in wishes.items():
            place = answer.files.get(name)
            if place is None:
                raise StagingFailed(_refusal(done, name, "", "the server has named no place for it"))
            path, replaces = os.path.join(folder, done.files[name]), answer.replaces.get(name, ())
            self._write(done, name, path, wish.file, place, may_rename, replaces=replaces)
            found[name] = msgspec.structs.replace(wish.file, logical=wish.publication.logical)
        return found

    def _deliver(self, done: Done, folder: str, refs: dict[str, FileRef], may_rename: Callable[[], bool]) -> None:
        """Take files to the URLs that the job names, where it alone says what may be overwritten."""
        for name, ref in refs.items():
            if url := _address(done, name):
                place = Located(element=plain(url, name=shown(url)), url=url)
                overwrite = done.publish[name].overwrite
                self._write(
                    done, name, os.path.join(folder, done.files[name]), ref, place, may_rename, overwrite=overwrite
                )

    def _write(
        self,
        done: Done,
        name: str,
        path: str,
        ref: FileRef,
        place: Located,
        may_rename: Callable[[], bool],
        *,
        replaces: tuple[str, ...] = (),
        overwrite: bool = False,
    ) -> None:
        storage = place.element
        try:
            element = self._elements.of(storage)
            with self._elements.stream(storage):
                element.publish(
                    path,
                    place.url,
                    ref,
                    may_rename,
                    mark=done.job,
                    turn=done.fence,
                    replaces=replaces,
                    overwrite=overwrite,
                    wanted=self._wanted,
                )
        except (TransferFailed, BadPlace) as error:
            if not self._wanted():
                raise NoLongerOurs(str(error)) from None
            self._give_up(done, name, storage, error)
        self._cache.adopt(path, ref.sha256)

    def _give_up(self, done: Done, name: str, storage: StorageElement, error: TransferFailed | BadPlace) -> NoReturn:
        """Not now, not there, or not at all."""
        passing = isinstance(error, TransferFailed) and error.passing
        if passing and self._trials.bears(done.key, storage, str(error)):
            raise ElementAway(str(error)) from None
        fault = _refusal(done, name, storage.name, str(error), passing=passing)
        chosen = done.publish[name].element or done.publish[name].url
        if not chosen and self._trials.give_up(done.key, storage.name, fault):
            raise ElementAway(str(error)) from None  # another may be near, too
        raise StagingFailed(fault) from None


def _address(done: Done, name: str) -> str:
    return done.publish[name].url if name in done.publish else ""


def _refusal(done: Done, name: str, element: str, reason: str, *, passing: bool = False) -> Fault:
    publication: Publication = done.publish[name]
    if publication.url:
        return not_published(done.files[name], "", element, reason, passing=passing)
    return not_published(done.files[name], publication.logical, element or publication.element, reason, passing=passing)


def _spoiled(outcome: Outcome, failure: StagingFailed) -> Outcome:
    fault = msgspec.structs.replace(failure.fault, log_tail=outcome.log_tail)
    return msgspec.structs.replace(outcome, fault=fault, outputs=None, files={})


def with_measures(outcome: msgspec.Raw, brought: Measures) -> msgspec.Raw:
    """An outcome that leaves no files, with what was measured while those that it needed were brought."""
    seen = msgspec.msgpack.decode(outcome, type=Outcome)
    return msgspec.Raw(msgspec.msgpack.encode(_measured(seen, brought)))


def _measured(outcome: Outcome, brought: Measures, stage_out_ms: int = 0) -> Outcome:
    """The outcome with what was measured outside of its slot."""
    measures = msgspec.structs.replace(
        outcome.measures,
        cached_files=brought.cached_files,
        cached_bytes=brought.cached_bytes,
        shared_files=brought.shared_files,
        shared_bytes=brought.shared_bytes,
        fetched_files=brought.fetched_files,
        fetched_bytes=brought.fetched_bytes,
        stage_in_ms=brought.stage_in_ms,
        stage_out_ms=stage_out_ms,
        damaged=brought.damaged,
    )
    return msgspec.structs.replace(outcome, measures=measures)
