"""Delivers ended attempts: keeps results until the server acknowledges them, uploads files, and removes folders that
nobody needs."""

import asyncio
import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import msgspec

from mendflow.core.model.jobs import Measurements
from mendflow.core.model.references import SPILLED_KEY
from mendflow.pilot.agent.attempts import Attempts, HeldAttempt
from mendflow.pilot.agent.background import DetachedTasks
from mendflow.pilot.agent.http import ServerAway
from mendflow.pilot.agent.slot_work import has_own_folder
from mendflow.pilot.files.kept_folders import KeptFolders
from mendflow.pilot.files.memory_folders import remove_attempt_memory, remove_memory
from mendflow.pilot.files.publishing import add_measures
from mendflow.pilot.files.retries import ElementUnavailable
from mendflow.pilot.files.staging import FileStager
from mendflow.pilot.files.work_folder import BESIDE, WorkFolder, remove_attempt, write_atomically
from mendflow.transfer.errors import WriterSuperseded

log = logging.getLogger("mendflow.pilot")

KEEP_AGAIN_S = 1.0
KEEP_AGAIN_S_MAX = 30.0
PUBLISHED_MAX = 8
"""So many results publish their files in parallel. They have their own thread pool: a storage element that does not
answer delays nothing else."""

SWEEP_EVERY_S = 10.0
SWEEP_AFTER_KEPT = 50
"""After so many seconds, or so many attempts that failed, kept folders are looked through."""

_ENCODER = msgspec.msgpack.Encoder()
_NOTHING = Measurements()
_SPILLED = SPILLED_KEY.encode()


class ResultDelivery:
    """`on_result` is called when there is a result to be reported. `holds` says whether the lease does: no published
    file gets its name when it does not. `kept_folders` are those of failed attempts; None if none is to be kept."""

    def __init__(
        self,
        work_folder: WorkFolder,
        attempts: Attempts,
        staging: FileStager,
        background: DetachedTasks,
        *,
        keep_all: bool,
        kept_folders: KeptFolders | None,
        on_result: Callable[[], None],
        holds: Callable[[], bool],
    ) -> None:
        self._work_folder = work_folder
        self._attempts = attempts
        self._staging = staging
        self._background = background
        self._keep = keep_all
        self._kept_folders = kept_folders
        self._sweep_at = 0.0
        self._is_sweeping = False
        self._kept_since = 0
        self._on_result = on_result
        self._holds = holds
        self._threads = ThreadPoolExecutor(PUBLISHED_MAX, thread_name_prefix="mendflow-publish")

    def take(self, held: HeldAttempt) -> None:
        """Report a result once its linked inputs were looked at and its files are stored."""
        if held.links:
            held.state = "keeping"
            self._background.start(self._look_at_links(held))
        else:
            self._store_or_report(held)

    async def _look_at_links(self, held: HeldAttempt) -> None:
        changed = await asyncio.to_thread(self._staging.check_links, held.links)
        assert held.done is not None
        held.done = msgspec.structs.replace(held.done, outcome=changed.with_messages(held.done.outcome))
        if changed.spoils_result:
            held.done = msgspec.structs.replace(held.done, files={}, file_lists={}, spills=[], contents=[], publish={})
        if held.key in self._attempts.all and not held.is_abandoned:
            self._store_or_report(held)

    def _store_or_report(self, held: HeldAttempt) -> None:
        done = held.done
        assert done is not None
        says_stored = not done.stored and _SPILLED in bytes(done.outcome)
        if done.files or done.file_lists or done.spills or done.contents or done.log or says_stored:
            held.state = "keeping"
            self._background.start(self._keep_files(held))
        else:
            outcome = (
                done.outcome if done.staging_measures == _NOTHING else add_measures(done.outcome, done.staging_measures)
            )
            self._attempts.report(held, outcome)
            self._on_result()

    async def _keep_files(self, held: HeldAttempt) -> None:
        """Store or publish the files, then report the result. Waits for the server without limit, and for a storage
        element as long as that element's settings say."""
        pause_s = KEEP_AGAIN_S
        while not held.is_abandoned and held.key in self._attempts.all:
            assert held.done is not None
            if held.done.publish and not self._holds():
                await asyncio.sleep(KEEP_AGAIN_S)  # without the lease, a file written now could not get its name
                continue
            try:
                outcome = await asyncio.get_running_loop().run_in_executor(
                    self._threads if held.done.publish else None,
                    self._staging.keep,
                    held.done,
                    lambda: self._holds() and not held.is_abandoned,
                )
            except (ServerAway, WriterSuperseded):
                await asyncio.sleep(KEEP_AGAIN_S)
                continue
            except ElementUnavailable:
                await asyncio.sleep(pause_s)
                pause_s = min(KEEP_AGAIN_S_MAX, 2 * pause_s)
                continue
            held.done = msgspec.structs.replace(
                held.done,
                outcome=outcome,
                files={},
                spills=[],
                contents=[],
                publish={},
                staging_measures=_NOTHING,
                log=False,
                stored=True,
            )
            self._attempts.report(held, outcome)
            self._on_result()
            return

    def clean_up(self, held: HeldAttempt) -> None:
        """Remove the result and the folder of an acknowledged attempt."""
        assert held.done is not None
        if held.slot < 0:
            self._work_folder.result(*held.key).unlink(missing_ok=True)
        if held.secrets:
            remove_attempt_memory(self._work_folder.attempt(*held.key))  # its slot has, unless it was killed
        if held.done.kept:
            self._kept_since += 1
        elif held.done.folder and not self._keep:
            self._remove(held)
        self._staging.release(held.pins)

    def drop(self, held: HeldAttempt) -> None:
        """Remove what is left of an attempt that never started, or whose result is not wanted."""
        self._staging.release(held.pins)
        if held.secrets:
            remove_attempt_memory(self._work_folder.attempt(*held.key))
        if held.spec is not None and has_own_folder(held.spec):
            self._remove(held)

    def _remove(self, held: HeldAttempt) -> None:
        self._background.start(asyncio.to_thread(self._remove_folder, held))

    def _remove_folder(self, held: HeldAttempt) -> None:
        self._staging.unlink(held.links)
        folder = self._work_folder.attempt(*held.key)
        remove_attempt_memory(folder)
        remove_attempt(folder)

    def maintain(self, *, short: bool) -> None:
        """See from time to time that no more folders of failed attempts are kept than may be. To be called often."""
        if self._kept_folders is None or self._is_sweeping:
            return
        if time.monotonic() >= self._sweep_at or self._kept_since >= SWEEP_AFTER_KEPT:
            self._is_sweeping = True
            self._background.start(self._sweep_kept(self._kept_folders, short=short))

    async def end(self) -> None:
        """The last look: also what failed a moment ago is kept within the bounds."""
        if self._kept_folders is not None and self._kept_since and not self._is_sweeping:
            await self._sweep_kept(self._kept_folders, short=False)

    async def _sweep_kept(self, kept_folders: KeptFolders, *, short: bool) -> None:
        self._kept_since = 0
        try:
            await asyncio.to_thread(kept_folders.sweep, short=short)
        finally:
            self._is_sweeping, self._sweep_at = False, time.monotonic() + SWEEP_EVERY_S

    def sweep(self) -> None:
        """Remove folders of attempts that are no longer held."""
        if not self._attempts.all:
            self._staging.tidy()
        known = {os.path.basename(self._work_folder.attempt(*key)) for key in self._attempts.all}
        remove_memory(str(self._work_folder.folder), but=frozenset(known))
        known |= self._kept_folders.names() if self._kept_folders is not None else set()
        for entry in os.scandir(self._work_folder.attempts):
            owner = next((entry.name.removesuffix(end) for end in BESIDE if entry.name.endswith(end)), entry.name)
            if owner not in known and not self._keep:
                remove_attempt(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry.path)

    def store_unjudged(self) -> None:
        """Write results that the server has not acknowledged to disk, for the next agent."""
        for held in self._attempts.all.values():
            if held.done is not None:
                try:
                    write_atomically(self._work_folder.result(*held.key), _ENCODER.encode(held.done))
                except OSError as error:
                    log.error("the result of %s is lost: %s", held.job, error)
