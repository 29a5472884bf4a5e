"""Counts where the files of one job came from, and which replicas were found damaged on the way."""

import logging
import threading
from typing import Final

from mendflow.core.model.jobs import Measurements
from mendflow.pilot.cache.contract import CacheOrigin
from mendflow.pilot.files.linked_inputs import LinkedInput

log = logging.getLogger("mendflow.pilot")

DAMAGED_MAX: Final = 8
DAMAGED_CHARS_MAX: Final = 400


class StagingTally:
    """Several threads may add to it."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._files = dict.fromkeys(CacheOrigin, 0)
        self._bytes = dict.fromkeys(CacheOrigin, 0)
        self._damaged: list[str] = []
        self.links: list[LinkedInput] = []

    def add(self, origin: CacheOrigin, size: int) -> None:
        with self._guard:
            self._files[origin] += 1
            self._bytes[origin] += size

    def add_damaged(self, replica: str) -> None:
        """A replica's content does not match its digest."""
        log.warning("a replica does not have the content that the catalogue says: %s", replica)
        with self._guard:
            if len(self._damaged) < DAMAGED_MAX:
                self._damaged.append(replica[:DAMAGED_CHARS_MAX])

    def measures(self, took_ms: int) -> Measurements:
        """A file from another pilot's cache counts as cached, too."""
        if not any(self._files.values()):
            return Measurements()
        files, sizes = self._files, self._bytes
        return Measurements(
            cached_files=files[CacheOrigin.OWN] + files[CacheOrigin.SHARED],
            cached_bytes=sizes[CacheOrigin.OWN] + sizes[CacheOrigin.SHARED],
            shared_files=files[CacheOrigin.SHARED],
            shared_bytes=sizes[CacheOrigin.SHARED],
            fetched_files=files[CacheOrigin.FETCHED],
            fetched_bytes=sizes[CacheOrigin.FETCHED],
            stage_in_ms=took_ms,
            damaged=tuple(self._damaged),
        )
