"""The servers that a pilot may talk to: those of its options, and those that a server named.

All share one store, so any of them will do: a pilot whose server is away sends the same request to the next. The list
is kept in the work folder, so that a restarted agent knows it too. A server names only live servers; one that was down
then may be the only one up now, so earlier ones are kept, and tried last."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from mendflow.core.model.sync import servers_mark
from mendflow.pilot.agent.http import ServerAddress
from mendflow.pilot.files.work_folder import write_atomically
from mendflow.tls import NO_TLS_SETTINGS, ClientTls

log = logging.getLogger("mendflow.pilot")

BEFORE_MAX: Final = 8
"""How many servers to remember that are no longer named."""


class KnownServers(msgspec.Struct, frozen=True):
    """`current`: who lives; `before`: who did earlier, the latest first."""

    current: list[str] = []
    before: list[str] = []


class ServerAddresses:
    """`address` is where the pilot speaks now; `mark` stands for what it was told. `on_move` is called with each
    address that it goes to by itself."""

    def __init__(self, initial_urls: str, token: str, kept: Path, tls: ClientTls = NO_TLS_SETTINGS) -> None:
        """`initial_urls` are addresses with commas between them. Raises ValueError for what is none."""
        self._initial = [ServerAddress(url.strip(), token, tls) for url in initial_urls.split(",") if url.strip()]
        if not self._initial:
            raise ValueError("give the address of a server, such as http://127.0.0.1:8765")
        self._token, self._tls = token, tls
        self._kept = kept
        self.on_move: Callable[[ServerAddress], None] = _nobody
        self.address = self._initial[0]
        self._remembered = self._read()
        self.mark = servers_mark(self._remembered.current)

    def _read(self) -> KnownServers:
        try:
            return msgspec.json.decode(self._kept.read_bytes(), type=KnownServers)
        except (OSError, msgspec.MsgspecError):
            return KnownServers()

    def set_urls(self, urls: list[str]) -> None:
        """Set the list of servers."""
        known = dict.fromkeys([*self._remembered.current, *self._remembered.before])
        before = [url for url in known if url not in urls]
        self._remembered, self.mark = KnownServers(urls, before[:BEFORE_MAX]), servers_mark(urls)
        try:
            write_atomically(self._kept, msgspec.json.encode(self._remembered))
        except OSError as error:
            log.warning("the list of servers cannot be written to the work folder: %s", error)

    def use(self, address: ServerAddress) -> None:
        """The given server has a new address."""
        self._initial[0] = self.address = address
        self._token = address.token

    def move_on(self) -> bool:
        """Switch to the next server; False if there is no other."""
        known = self._known()
        if len(known) < 2:
            return False
        urls = [address.url for address in known]
        place = urls.index(self.address.url) if self.address.url in urls else -1
        self.address = known[(place + 1) % len(known)]
        self.on_move(self.address)
        return True

    def _known(self) -> list[ServerAddress]:
        """Named servers first: the given addresses may be long outdated."""
        initial_urls = {address.url: address for address in self._initial}
        known: dict[str, ServerAddress] = {}
        for url in (*self._remembered.current, *initial_urls, *self._remembered.before):
            try:
                known.setdefault(url, initial_urls.get(url) or ServerAddress(url, self._token, self._tls))
            except ValueError:
                continue
        return list(known.values())


def _nobody(address: ServerAddress) -> None: ...
