"""A pilot's cache together with its neighbours': its allowed size, the files it links from them and serves to them, and
its reports to the server."""

import logging
import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from mendflow.core.caching.policies import policy_by_name
from mendflow.core.caching.sizes import (
    DEFAULT_SPACE_BYTES,
    DEFAULT_THRESHOLD_SHARE,
    cache_bytes,
    limit_to_disk,
    share_of_host,
)
from mendflow.core.model.data import CacheUpdate, Holder, Neighbour, Sharing
from mendflow.core.model.errors import InvalidRequest
from mendflow.pilot.cache.allocation import GIVE_WAY_S
from mendflow.pilot.cache.disk import DiskCache
from mendflow.pilot.cache.host_sharing import HostSharing, promise
from mendflow.pilot.cache.server import CacheServer
from mendflow.pilot.cache.site_sharing import SiteSharing

log = logging.getLogger("mendflow.pilot")

MERGED_AT_ONCE = 8
"""At most so many files are merged per round: each is read completely, and jobs need the disk too."""


class CacheOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`space_bytes` is the disk that a pilot is given; `threshold_bytes` of it stay free for its jobs, and the disk is
    never filled further than that either. `address` is where neighbours of the site reach this pilot, as HOST or
    HOST:PORT; if empty, the address of this machine towards the server."""

    space_bytes: int = DEFAULT_SPACE_BYTES
    threshold_bytes: int | None = None
    policy: str = "lru"
    share: Sharing = "host"
    address: str = ""

    @property
    def kept_free_bytes(self) -> int:
        if self.threshold_bytes is not None:
            return self.threshold_bytes
        return self.space_bytes // DEFAULT_THRESHOLD_SHARE


class SharedCache:
    """Staging uses `disk`; the rest is for the pilot's main loop and its exchange with the server."""

    def __init__(
        self,
        folder: Path,
        options: CacheOptions,
        *,
        host: str,
        first_version: int,
        memory: Path | None = None,
        patience_s: float = GIVE_WAY_S,
    ) -> None:
        """The folder `memory` keeps neighbours and usage counts, so that a restarted pilot has space for its files and
        knows their value."""
        self.mark = 0  # version of the list of neighbours that it knows
        self._folder = folder
        self._options = options
        self._host = host
        self._on_host, self._on_site = HostSharing(memory and memory / "neighbours.json"), SiteSharing()
        self._serving: CacheServer | None = None
        self._address = ""
        self._told_bytes = -1
        policy = policy_by_name(options.policy)
        alive = self._on_host.look()
        size_bytes = self._size_bytes(
            held_bytes=_used_bytes(folder),
            elsewhere_bytes=self._on_host.elsewhere_bytes(set(os.listdir(folder)), str(folder)),
            pilots=alive + 1,
        )
        sharers = (self._on_host, self._on_site)
        uses = memory and memory / "cache.uses"
        self.disk = DiskCache(
            folder,
            size_bytes,
            policy,
            first_version=first_version,
            sharers=sharers,
            memory=uses,
            beside=self,
            patience_s=patience_s,
        )

    def serve(self, server_url: str) -> None:
        """Serve files to neighbours of the site, if the options say so."""
        if self._options.share != "site":
            return
        host, port = _place(self._options.address) if self._options.address else (_address_towards(server_url), 0)
        try:
            self._serving = CacheServer(self.disk, host, port)
        except OSError as error:
            text = f"the cache cannot be served at {host}:{port} ({error}): give a --share-address of this machine"
            raise InvalidRequest(text) from None
        self._address = f"[{host}]:{self._serving.port}" if ":" in host else f"{host}:{self._serving.port}"

    def close(self) -> None:
        self.disk.remember()
        if self._serving is not None:
            self._serving.close()
            self._serving = None

    # exchange with the server

    @property
    def version(self) -> int:
        return self.disk.news.version

    def news(self, seen: int) -> CacheUpdate | None:
        """The changes since that version; None if there are none."""
        if seen == self.version:
            return None
        base, added, gone = self.disk.news_since(seen)
        return CacheUpdate(
            version=self.version,
            base=base,
            added=added,
            gone=gone,
            folder=str(self._folder) if self._options.share != "none" else "",
            address=self._address,
            key=self._serving.key if self._serving is not None else "",
        )

    def set_neighbours(self, neighbours: list[Neighbour], mark: int) -> None:
        """Set the pilots whose caches may be used."""
        share = self._options.share
        self.mark = mark
        self._on_host.set_neighbours(each for each in neighbours if share != "none" and each.host == self._host)
        self._on_site.set_neighbours(each for each in neighbours if share == "site" and each.host != self._host)

    def set_holders(self, holders: list[Holder]) -> None:
        """Set which pilots have the inputs of the jobs in the same answer."""
        if self._options.share == "site":
            self._on_site.set_holders(each for each in holders if each.neighbour.host != self._host)

    # periodic

    def rebalance(self) -> None:
        """Adapt the size to the neighbours and the disk, and link their new files. Blocks on disk access."""
        alive, new = self._on_host.look(), self._on_host.news()
        self._resize(set(new), pilots=alive + 1)
        own = self.disk.digests()
        for digest in new:
            if digest not in own:
                self.disk.link_in(digest, self._on_host.link)
        for digest, twin in self._on_host.find_duplicates(own, str(self._folder))[:MERGED_AT_ONCE]:
            if self.disk.merge(digest, twin):
                self._on_host.record_merge(digest)
        self._resize(set(), pilots=alive + 1)
        self.disk.look_at_links()

    def _resize(self, coming: set[str], *, pilots: int) -> None:
        """Set the allowed size if these files are linked. A link to a neighbour's file uses no additional space."""
        own, folder = self.disk.digests(), str(self._folder)
        promised_bytes = self._on_host.promised_bytes()
        elsewhere_bytes = self._on_host.elsewhere_bytes(own, folder, coming=coming)
        linked_bytes = self._on_host.elsewhere_bytes(own, folder) - elsewhere_bytes
        self.disk.resize(
            self._size_bytes(
                held_bytes=self.disk.held_bytes + linked_bytes,
                elsewhere_bytes=elsewhere_bytes + promised_bytes,
                pilots=pilots,
            )
        )

    # before a file is fetched

    def bring(self, bytes: int) -> None:
        if bytes != self._told_bytes and self._options.share != "none":
            try:
                promise(str(self._folder), bytes)
                self._told_bytes = bytes
            except OSError as error:
                log.warning("the space reserved in the cache cannot be written for other pilots: %s", error)

    def room(self, own: set[str]) -> tuple[int, int] | None:
        promised_bytes = self._on_host.promised_bytes()
        alive = self._on_host.look()
        if not alive:
            return None
        space, kept_free = self._options.space_bytes, self._options.kept_free_bytes
        elsewhere_bytes = self._on_host.elsewhere_bytes(own, str(self._folder)) + promised_bytes
        return cache_bytes(space, kept_free, pilots=alive + 1) - elsewhere_bytes, cache_bytes(space, kept_free)

    def _size_bytes(self, *, held_bytes: int, elsewhere_bytes: int, pilots: int) -> int:
        space, kept_free = self._options.space_bytes, self._options.kept_free_bytes
        size = share_of_host(space, kept_free, pilots=pilots, elsewhere_bytes=elsewhere_bytes)
        disk = os.statvfs(self._folder)
        free_bytes = disk.f_bavail * disk.f_frsize
        return limit_to_disk(size, held_bytes=held_bytes, free_bytes=free_bytes, threshold_bytes=kept_free)


def _used_bytes(folder: Path) -> int:
    return sum(entry.stat(follow_symlinks=False).st_size for entry in os.scandir(folder))


def _place(text: str) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host:
        raise InvalidRequest(f"--share-address {text!r} is not an address; write HOST or HOST:PORT")
    return host, port or 0


def _address_towards(server_url: str) -> str:
    """This machine's address on the route to the server; sends nothing."""
    parts = urlsplit(server_url if "//" in server_url else f"//{server_url}")
    try:
        found = socket.getaddrinfo(parts.hostname, parts.port or 80, type=socket.SOCK_DGRAM)[0]
        with socket.socket(found[0], socket.SOCK_DGRAM) as line:
            line.connect(found[4])
            return str(line.getsockname()[0])
    except OSError:
        return "127.0.0.1"
