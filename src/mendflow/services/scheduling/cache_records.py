"""What pilots report of their caches, and what they are told because of it.

A pilot reports the changes since the version that this server says it has. After a restart a server has none and says
so, at once and not when the held answer is due: then the pilot reports everything. Nothing here is written to disk, and
it only affects which pilot gets which job."""

from itertools import islice

import msgspec

from mendflow.core.model.data import CacheAdvert, CacheUpdate, Holder, Neighbour
from mendflow.core.model.ids import PilotId
from mendflow.core.model.sync import Assignment, SyncRequest
from mendflow.core.scheduling.cache_index import CacheIndex, file_key
from mendflow.services.scheduling.neighbours import NeighbourRegistry
from mendflow.services.scheduling.pilot_records import PilotRecord

PASSED_FILES_MAX = 4_096
"""How many files of a pilot's cache another server is told of, when it has to be told everything."""

HOLDERS_OF_MAX = 256
"""For how many files of the jobs in one answer the pilot is told who has them."""


class CacheRegistry:
    def __init__(self, caches: CacheIndex) -> None:
        self._caches = caches
        self.neighbourhood = NeighbourRegistry()

    def hear(self, pilot: PilotRecord, request: SyncRequest) -> None:
        news = request.cache
        if news is not None:
            pilot.cache = msgspec.structs.replace(news, added=[], gone=[])  # all settings, without the content
            shares = news.folder and self.neighbourhood.sites.get(pilot.site) != "none"
            self._caches.hear(pilot.id, news, f"{pilot.owner}\n{pilot.host}" if shares else "")
            self.neighbourhood.meet(_card(pilot, pilot.cache))
        elif not request.cache_version and pilot.cache is not None:
            pilot.cache = None
            self.forget(pilot.id)

    def forget(self, id: PilotId) -> None:
        self._caches.forget(id)
        self.neighbourhood.leave(id)

    def known_version(self, pilot: PilotId) -> int:
        """The version of its cache that this server has."""
        shelf = self._caches.of(pilot)
        return shelf.version if shelf is not None else 0

    def holds(self, pilot: PilotId) -> bool:
        """Whether the pilot has any files that jobs could be kept back for."""
        shelf = self._caches.of(pilot)
        return shelf is not None and bool(shelf.files)

    def should_answer_at_once(self, pilot: PilotRecord, request: SyncRequest) -> bool:
        """Whether to tell the pilot at once which version this server has; once for each version of its cache, since it
        may have nothing more to report."""
        if request.front or request.cache_version in (self.known_version(pilot.id), pilot.cache_asked):
            return False
        pilot.cache_asked = request.cache_version
        return True

    def neighbours(self, request: SyncRequest) -> tuple[list[Neighbour] | None, int]:
        """The pilot's neighbours, None if it knows them, and their mark."""
        if request.front:
            return None, 0
        found, mark = self.neighbourhood.of(request.pilot)
        return (None if mark == request.neighbours else found), mark

    def holders(self, request: SyncRequest, jobs: list[Assignment]) -> list[Holder]:
        """Which pilots of the site have inputs of these jobs that this pilot has not, a few for each file."""
        if request.front or not self.neighbourhood.may_ask_site(request.pilot):
            return []
        own = self._caches.of(request.pilot)
        wanted = {file.sha256: None for job in jobs for file in job.spec.inputs.values()}
        return [
            Holder(digest, neighbour)
            for digest in islice(wanted, HOLDERS_OF_MAX)
            if own is None or file_key(digest) not in own.files
            for neighbour in self.neighbourhood.at_site(request.pilot, self._caches.holders(file_key(digest)))
        ]

    def changes_for_peer(self, pilot: PilotRecord, request: SyncRequest, seen: int) -> CacheUpdate | None:
        """The changes of the pilot's cache for another server, which has that version."""
        version = self.known_version(pilot.id)
        if seen == version or pilot.cache is None:
            return None
        news = request.cache
        if news is not None and news.base == seen and news.version == version:
            return news
        update = self._caches.full_update(pilot.id, PASSED_FILES_MAX)
        shared = pilot.cache
        if update is None:
            return None
        return msgspec.structs.replace(update, folder=shared.folder, address=shared.address, key=shared.key)

    def cards(self, pilots: list[PilotRecord]) -> list[CacheAdvert]:
        """How these pilots share their caches, for other servers."""
        return [_card(pilot, pilot.cache) for pilot in pilots if pilot.cache is not None]

    def size(self, pilot: PilotId) -> tuple[int, int]:
        """How many files a pilot has in its cache, and their bytes."""
        shelf = self._caches.of(pilot)
        return (len(shelf.files), shelf.bytes()) if shelf is not None else (0, 0)


def _card(pilot: PilotRecord, cache: CacheUpdate) -> CacheAdvert:
    near = Neighbour(pilot.id, pilot.host, cache.folder, cache.address, cache.key)
    return CacheAdvert(near, pilot.owner, pilot.site)
