"""What is left of attempts that are over: results until they are judged, files until the server has them, and folders
until nobody needs them."""

import asyncio
import logging
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import msgspec

from mendflow.core.model.jobs import Measures
from mendflow.pilot.attempts import Attempts, Held
from mendflow.pilot.background import Background
from mendflow.pilot.home import BESIDE, Home, remove_attempt, write_whole
from mendflow.pilot.http import ServerAway
from mendflow.pilot.publishing import with_measures
from mendflow.pilot.staging import Staging
from mendflow.pilot.trials import ElementAway
from mendflow.pilot.works import has_own_folder
from mendflow.transfer.problems import NoLongerOurs

log = logging.getLogger("mendflow.pilot")

KEEP_AGAIN_S = 1.0
KEEP_AGAIN_S_MAX = 30.0
PUBLISHED_MAX = 8
"""Results whose files go to storage elements, at a time. They have threads of their own: one that does not answer holds
up nothing else."""

_ENCODER = msgspec.msgpack.Encoder()
_NOTHING = Measures()


class Keeping:
    """`told` is called when there is a result to be reported. `holds` says whether the lease does: no published file
    gets its name when it does not."""

    def __init__(
        self,
        home: Home,
        attempts: Attempts,
        staging: Staging,
        background: Background,
        *,
        keep: bool,
        told: Callable[[], None],
        holds: Callable[[], bool],
    ) -> None:
        self._home = home
        self._attempts = attempts
        self._staging = staging
        self._background = background
        self._keep = keep
        self._told = told
        self._holds = holds
        self._threads = ThreadPoolExecutor(PUBLISHED_MAX, thread_name_prefix="mendflow-publish")

    def take(self, held: Held) -> None:
        """Report a result, when its files are safe with the server."""
        done = held.done
        assert done is not None
        if done.files or done.spills:
            held.state = "keeping"
            self._background.go(self._keep_files(held))
        else:
            outcome = done.outcome if done.brought == _NOTHING else with_measures(done.outcome, done.brought)
            self._attempts.report(held, outcome)
            self._told()

    async def _keep_files(self, held: Held) -> None:
        """The result is told only when its files are safe, however long the server is away; and a storage element, as
        long as it has asked for."""
        pause_s = KEEP_AGAIN_S
        while not held.forgotten and held.key in self._attempts.all:
            assert held.done is not None
            if held.done.publish and not self._holds():
                await asyncio.sleep(KEEP_AGAIN_S)  # written now, it could not be given its name
                continue
            try:
                outcome = await asyncio.get_running_loop().run_in_executor(
                    self._threads if held.done.publish else None,
                    self._staging.keep,
                    held.done,
                    lambda: self._holds() and not held.forgotten,
                )
            except (ServerAway, NoLongerOurs):
                await asyncio.sleep(KEEP_AGAIN_S)
                continue
            except ElementAway:
                await asyncio.sleep(pause_s)
                pause_s = min(KEEP_AGAIN_S_MAX, 2 * pause_s)
                continue
            held.done = msgspec.structs.replace(
                held.done, outcome=outcome, files={}, spills=[], publish={}, brought=_NOTHING
            )
            self._attempts.report(held, outcome)
            self._told()
            return

    def put_away(self, held: Held) -> None:
        """Nobody needs the result or the folder of this attempt any more."""
        assert held.done is not None
        if held.slot < 0:
            self._home.result(*held.key).unlink(missing_ok=True)
        if held.done.folder and not self._keep:
            self._remove(held)
        self._staging.release(held.pins)

    def drop(self, held: Held) -> None:
        """Nor of this one, which never started, or whose end nobody wants to know."""
        self._staging.release(held.pins)
        if held.spec is not None and has_own_folder(held.spec):
            self._remove(held)

    def _remove(self, held: Held) -> None:
        self._background.go(asyncio.to_thread(remove_attempt, self._home.attempt(*held.key)))

    def sweep(self) -> None:
        """Remove folders of attempts that nobody has any more."""
        known = {os.path.basename(self._home.attempt(*key)) for key in self._attempts.all}
        for entry in os.scandir(self._home.attempts):
            owner = next((entry.name.removesuffix(end) for end in BESIDE if entry.name.endswith(end)), entry.name)
            if owner not in known and not self._keep:
                remove_attempt(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry.path)

    def store_unjudged(self) -> None:
        """Results that the server has not judged wait on disk for the next agent."""
        for held in self._attempts.all.values():
            if held.done is not None:
                try:
                    write_whole(self._home.result(*held.key), _ENCODER.encode(held.done))
                except OSError as error:
                    log.error("the result of %s is lost: %s", held.job, error)
