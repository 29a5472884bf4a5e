"""A simulated pilot's cache: the product's index, sizes and change log, without a disk.

The index is what the server is told, and space is made before a file is added. Neighbours are those that the server
named. A pilot soon has links to new files of neighbours on its host, and asks some pilots of its site."""

from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Literal

from mendflow.core.caching.policies import policy_by_name
from mendflow.core.caching.sizes import cache_bytes, share_of_host
from mendflow.core.caching.space import CacheSpace
from mendflow.core.model.data import CacheUpdate, Holder, Neighbour
from mendflow.core.model.ids import PilotId
from mendflow.pilot.cache.changes import ChangeLog
from mendflow.pilot.cache.maintenance import LOOK_S
from mendflow.pilot.cache.neighbours import NeighbourSelector
from mendflow.sim.grid.scene import SiteScene


def _nobody() -> None:
    """The listener of a cache that reports to nobody."""


Where = Literal["own", "host", "site", "element"]
"""Where a file is: here, at a neighbour on the host or the site, or in no cache."""


class VirtualCache:
    """`all` are the caches of the whole grid, by pilot: a pilot that is not among them is gone."""

    def __init__(
        self,
        pilot: PilotId,
        host: str,
        site: SiteScene,
        all: Mapping[PilotId, "VirtualCache"],
        *,
        now_s: Callable[[], float],
        after: Callable[[float, Callable[[], None]], object],
        chance: Random,
    ) -> None:
        self.mark = 0  # version of the list of neighbours that it knows
        self.changed: Callable[[], None] = _nobody  # called when it has links that the server does not know of
        self._pilot = pilot
        self._host = host
        self._site = site
        self._all = all
        self.shelf = CacheSpace(cache_bytes(site.cache_bytes, site.threshold_bytes), policy_by_name(site.policy))
        self._news = ChangeLog(1)
        self._on_host: list[PilotId] = []
        self._after = after
        self._new: dict[str, int] = {}  # at neighbours on the host, and not linked yet: bytes by digest
        self._asking = NeighbourSelector(now_s, chance)
        self._now_s = now_s
        self._coming: dict[str, float] = {}  # when files that another slot of the pilot fetches will be here

    # exchange with the server

    @property
    def version(self) -> int:
        return self._news.version

    def news(self, seen: int) -> CacheUpdate | None:
        """The changes since that version; None if there are none."""
        if seen == self.version:
            return None
        base, added, gone = self._news.since(seen)
        shared, served = self._site.share != "none", self._site.share == "site"
        return CacheUpdate(
            version=self.version,
            base=base,
            added=added,
            gone=gone,
            folder=f"/{self._pilot}" if shared else "",
            address=self._pilot if served else "",
            key=self._pilot if served else "",
        )

    def set_neighbours(self, neighbours: list[Neighbour], mark: int) -> None:
        """Set the pilots whose caches may be used."""
        self.mark = mark
        known = set(self._on_host)
        self._on_host = [each.pilot for each in neighbours if each.host == self._host and each.folder]
        for other in self._neighbours():
            if other._pilot not in known:
                self._note_new_files({digest: other.shelf.uses(digest).bytes for digest in other.shelf})
        self._asking.set_neighbours(each for each in neighbours if each.host != self._host)

    def set_holders(self, holders: list[Holder]) -> None:
        """Set which pilots have the inputs of the jobs in the same answer."""
        if self._site.share == "site":
            self._asking.set_holders(each for each in holders if each.neighbour.host != self._host)

    # files

    def find(self, digest: str) -> Where:
        if digest in self.shelf or self._coming.get(digest, 0.0) > self._now_s():
            return "own"
        if any(digest in other.shelf for other in self._neighbours()):
            return "host"
        if self._site.share != "site":
            return "element"
        for neighbour in self._asking.worth_asking(digest):
            other = self._all.get(neighbour.pilot)
            if other is None:
                self._asking.record_silence(neighbour)
            elif digest in other.shelf:
                self._asking.record_answer(neighbour)
                return "site"
        return "element"

    def pin(self, digests: Iterable[str]) -> None:
        """A job uses these, here or once they are here; counts one use of those that are here."""
        for digest in digests:
            self.shelf.pin(digest)
            if digest in self.shelf:
                self.shelf.use(digest)

    def release(self, digests: Iterable[str]) -> None:
        for digest in digests:
            self.shelf.release(digest)

    def expect(self, digest: str, seconds: float) -> None:
        """A file will be here after so long. Others that need it wait for that."""
        self._coming[digest] = self._now_s() + seconds

    def wait_s(self, digest: str) -> float:
        """How long a file is still in transit; 0 if it is here."""
        return max(0.0, self._coming.get(digest, 0.0) - self._now_s())

    def take_in(self, digest: str, bytes: int, took_s: float) -> None:
        """A file has arrived or was made. It stays if there is space."""
        self._coming.pop(digest, None)
        if self._keep(digest, bytes, took_s):
            for other in self._neighbours():
                other._note_new_files({digest: bytes})

    def _keep(self, digest: str, bytes: int, took_s: float) -> bool:
        kept = digest not in self.shelf and self._make_room(digest, bytes)
        if kept:
            self.shelf.put(digest, bytes, cost_ms=took_s * 1000)
            self._news.added(digest, bytes)
        return kept

    def _note_new_files(self, files: Mapping[str, int]) -> None:
        """Neighbours on the host have these; the next maintenance round links them."""
        if files and not self._new:
            self._after(LOOK_S, self._link_from_neighbours)
        self._new.update(files)

    def _link_from_neighbours(self) -> None:
        new, self._new = self._new, {}
        there = [other.shelf for other in self._neighbours()]
        linked = [
            self._keep(digest, bytes, 0.0) for digest, bytes in new.items() if any(digest in each for each in there)
        ]
        if any(linked):
            self.changed()

    def _make_room(self, digest: str, bytes: int) -> bool:
        if bytes > self.shelf.free_bytes and self._on_host:
            self.shelf.size_bytes = self._own_part(digest)
        victims = self.shelf.victims(bytes)
        for digest in victims or ():
            self.shelf.evict(digest)
            self._news.gone(digest)
        return victims is not None

    def _own_part(self, coming: str) -> int:
        """How much this cache may hold beside those on its host with that file; a file that several have linked counts
        once."""
        near = self._neighbours()
        elsewhere = {digest: each.shelf.uses(digest).bytes for each in near for digest in each.shelf}
        elsewhere.pop(coming, None)
        return share_of_host(
            self._site.cache_bytes,
            self._site.threshold_bytes,
            pilots=len(near) + 1,
            elsewhere_bytes=sum(bytes for digest, bytes in elsewhere.items() if digest not in self.shelf),
        )

    def _neighbours(self) -> list["VirtualCache"]:
        return [self._all[each] for each in self._on_host if each in self._all]
