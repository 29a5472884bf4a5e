"""Folders of failed attempts stay on their pilot for a time, in bounds: the oldest goes first, and all go when the disk
is short. What an agent that was killed has left is found by the next one in the same work folder."""

import logging
import os
import time
from typing import NamedTuple

from mendflow.pilot.bounds import KeepLimits
from mendflow.pilot.files.disk_usage import used_bytes
from mendflow.pilot.files.work_folder import WorkFolder, remove_attempt
from mendflow.pilot.slot.kept_attempts import KEPT_SUFFIX

log = logging.getLogger("mendflow.pilot")


class _Kept(NamedTuple):
    kept_at_ms: int
    folder: str


class KeptFolders:
    """Every method blocks and is meant for a thread, one at a time."""

    def __init__(self, work_folder: WorkFolder, limits: KeepLimits) -> None:
        self._attempts = str(work_folder.attempts)
        self._limits = limits
        self._bytes: dict[str, int] = {}

    def names(self) -> set[str]:
        """The attempts whose folders are kept."""
        return {os.path.basename(each.folder) for each in self._all()}

    def sweep(self, *, short: bool = False) -> None:
        """Remove what is kept beyond its time or the bounds; everything if the disk is short."""
        limits, now_ms, total = self._limits, int(time.time() * 1000), 0
        for place, kept in enumerate(sorted(self._all(), reverse=True)):
            total += self._size(kept.folder)
            is_old = now_ms - kept.kept_at_ms > limits.age_ms
            if short or is_old or place >= limits.number or total > limits.bytes:
                total -= self._bytes.pop(kept.folder, 0)
                if short:
                    log.warning("%s of a failed attempt is removed, because the disk is short", kept.folder)
                remove_attempt(kept.folder)

    def _all(self) -> list[_Kept]:
        found = []
        with os.scandir(self._attempts) as entries:
            for entry in entries:
                if entry.name.endswith(KEPT_SUFFIX):
                    try:
                        kept_at = entry.stat(follow_symlinks=False).st_mtime_ns // 1_000_000
                    except OSError:
                        continue  # it is just being removed
                    found.append(_Kept(kept_at, entry.path.removesuffix(KEPT_SUFFIX)))
        return found

    def _size(self, folder: str) -> int:
        """Nobody works there any more, so it stays as large as it was."""
        if folder not in self._bytes:
            self._bytes[folder] = used_bytes(folder, enough=self._limits.bytes + 1)
        return self._bytes[folder]
