"""What a pilot does about containers: find images for its jobs, and remove containers that nobody watches."""

import asyncio
import logging
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from mendflow.core.model.containers import RUNTIMES
from mendflow.core.model.faults import Fault
from mendflow.lazy import LazyModule
from mendflow.pilot.containers.runtime import ContainerOptions, ContainerRuntime, notes_folder
from mendflow.pilot.containers.start import ContainerNotes

if TYPE_CHECKING:
    from mendflow.pilot.containers import images, recent_start_faults, records
else:  # most pilots run no containers
    images = LazyModule("mendflow.pilot.containers.images")
    records = LazyModule("mendflow.pilot.containers.records")
    recent_start_faults = LazyModule("mendflow.pilot.containers.recent_start_faults")

log = logging.getLogger("mendflow.pilot")

LOOK_EVERY_MS: Final = 2_000
"""How often a pilot looks for containers that nobody watches."""


class PilotContainers:
    """`runtime` is None if the pilot has none: jobs with containers do not come then. `own_accounts`: jobs have other
    accounts than the pilot."""

    def __init__(
        self, runtime: ContainerRuntime | None, options: ContainerOptions, cache: Path, *, own_accounts: bool = False
    ) -> None:
        self._runtime = runtime
        self._options = options
        self._cache = cache
        self._own_accounts = own_accounts
        self._is_used = False
        self._look = asyncio.Lock()
        self._next_look = 0
        self._told: set[str] = set()
        self._recent: recent_start_faults.RecentStartFaults | None = None
        self.notes = (
            ContainerNotes(str(notes_folder(cache)), runtime.kind, runtime.command) if runtime is not None else None
        )

    @cached_property
    def images(self) -> "images.ImageStore":
        """The images of this machine; loaded when the first job asks for one."""
        self._is_used = True
        return images.ImageStore(
            self._runtime, self._options, self._cache, own_accounts=self._own_accounts, refusal=self._refusal
        )

    def judged(self, outcome: msgspec.Raw) -> msgspec.Raw:
        """The outcome of an attempt that was given a container; whether the machine starts any is seen over several."""
        if self._recent is None:
            self._recent = recent_start_faults.RecentStartFaults()
        return self._recent.judged(outcome)

    def _refusal(self) -> Fault | None:
        return self._recent.refusal() if self._recent is not None else None

    def stop(self) -> None:
        """Fetch nothing more: the pilot leaves."""
        if self._is_used:
            self.images.stop()

    def must_look(self, now: int) -> bool:
        """Whether it is time to look for leftovers again. A slot that was killed is not dead at once, and a removal may
        fail or be killed itself, so one look when a slot is lost would not do."""
        if self.notes is None or now < self._next_look or self._look.locked():
            return False
        self._next_look = now + LOOK_EVERY_MS
        return True

    async def remove_leftovers(self) -> None:
        """Remove containers that nobody watches, and what is left of images that were fetched when their pilot was
        killed. Without a folder for notes no container was ever started here."""
        if self.notes is None or not os.access(self.notes.folder, os.F_OK):
            return
        if self.notes.kind == RUNTIMES[0]:
            await asyncio.to_thread(images.remove_parts, self._cache)
        await self.remove_unwatched()

    async def remove_unwatched(self) -> None:
        """Remove containers on this machine whose slots are dead, of this pilot and of others of the same user."""
        if self.notes is None or not has_files(self.notes.folder):
            return
        async with self._look:
            failed = {*await asyncio.to_thread(records.remove_leftovers, self.notes)}
        for name in failed - self._told:
            log.warning("the container %s of a job that is over cannot be removed now; it is tried again", name)
        self._told = failed


def has_files(folder: str) -> bool:
    """Whether there is anything in a folder; not if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is not None
    except OSError:
        return False


NO_CONTAINERS = PilotContainers(None, ContainerOptions(), Path())
