"""The servers that a pilot may speak to: those that it was given, and those that it was told of.

All share one store, and any of them will do: a pilot whose server is away goes to the next and says there what it would
have said here. What it was told lies in its work folder, so that an agent that starts again knows it too. It is told of
those that live; one that was away then may be the only one that is there now, so those of before are not forgotten, and
are tried when all others are away."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from mendflow.core.model.sync import servers_mark
from mendflow.pilot.agent.http import ServerAddress
from mendflow.pilot.files.work_folder import write_atomically

log = logging.getLogger("mendflow.pilot")

BEFORE_MAX: Final = 8
"""How many are remembered that it is not told of any more."""


class KnownServers(msgspec.Struct, frozen=True):
    """`current`: who lives; `before`: who did earlier, the latest first."""

    current: list[str] = []
    before: list[str] = []


class ServerAddresses:
    """`address` is where the pilot speaks now; `mark` stands for what it was told. `on_move` is called with each
    address that it goes to by itself."""

    def __init__(self, initial_urls: str, token: str, kept: Path) -> None:
        """`initial_urls` are addresses with commas between them. Raises ValueError for what is none."""
        self._initial = [ServerAddress(url.strip(), token) for url in initial_urls.split(",") if url.strip()]
        if not self._initial:
            raise ValueError("give the address of a server, such as http://127.0.0.1:8765")
        self._token = token
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
        """Which servers there are now."""
        known = dict.fromkeys([*self._remembered.current, *self._remembered.before])
        before = [url for url in known if url not in urls]
        self._remembered, self.mark = KnownServers(urls, before[:BEFORE_MAX]), servers_mark(urls)
        try:
            write_atomically(self._kept, msgspec.json.encode(self._remembered))
        except OSError as error:
            log.warning("the addresses of the servers cannot be written: %s", error)

    def use(self, address: ServerAddress) -> None:
        """The server that it was given is somewhere else now."""
        self._initial[0] = self.address = address
        self._token = address.token

    def move_on(self) -> bool:
        """Go to the next one; False if there is no other."""
        known = self._known()
        if len(known) < 2:
            return False
        urls = [address.url for address in known]
        place = urls.index(self.address.url) if self.address.url in urls else -1
        self.address = known[(place + 1) % len(known)]
        self.on_move(self.address)
        return True

    def _known(self) -> list[ServerAddress]:
        """What it was told of comes first: what it was given once may long be gone."""
        initial_urls = {address.url: address for address in self._initial}
        known: dict[str, ServerAddress] = {}
        for url in (*self._remembered.current, *initial_urls, *self._remembered.before):
            try:
                known.setdefault(url, initial_urls.get(url) or ServerAddress(url, self._token))
            except ValueError:
                continue
        return list(known.values())


def _nobody(address: ServerAddress) -> None: ...
