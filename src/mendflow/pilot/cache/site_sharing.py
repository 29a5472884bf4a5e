"""Fetches files from the caches of pilots on other machines of the site. A file is accepted only if its digest
matches."""

import hashlib
import http.client
import logging
import random
import time
import urllib.parse
from collections.abc import Callable, Iterable

from mendflow.core.model.data import Holder, Neighbour
from mendflow.pilot.cache import entries
from mendflow.pilot.cache.disk import ArrivalKind
from mendflow.pilot.cache.neighbours import NeighbourSelector
from mendflow.pilot.cache.signatures import PATH, SCHEME, signature

log = logging.getLogger("mendflow.pilot")

ASKING_S_MAX = 3.0
CONNECT_S = 1.0
PIECE_S = 20.0
_PIECE_BYTES = 1 << 20


class SiteSharing:
    """A `NeighbourSource`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._asking = NeighbourSelector(clock, random.Random())

    def set_neighbours(self, neighbours: Iterable[Neighbour]) -> None:
        """Set the pilots of the site that serve their caches."""
        self._asking.set_neighbours(neighbours)

    def set_holders(self, holders: Iterable[Holder]) -> None:
        """Set the holders of files that are needed soon."""
        self._asking.set_holders(holders)

    def bring(self, digest: str, target: str) -> ArrivalKind | None:
        began = self._clock()
        for neighbour in self._asking.worth_asking(digest):
            if self._clock() - began > ASKING_S_MAX:
                return None
            try:
                found = _fetch(neighbour, digest, target)
            except (OSError, http.client.HTTPException, ValueError) as error:
                log.debug("pilot %s did not serve a file from its cache: %s", neighbour.pilot, error)
                found = False
                self._asking.record_silence(neighbour)
            if found:
                self._asking.record_answer(neighbour)
                return ArrivalKind.HASHED
            entries.discard(target)
        return None


def _fetch(neighbour: Neighbour, digest: str, target: str) -> bool:
    """True if it had the file; False or an exception for any other answer."""
    parts = urllib.parse.urlsplit(f"//{neighbour.address}")
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 0, timeout=CONNECT_S)
    try:
        connection.request("GET", PATH + digest)
        asked = connection.getresponse()
        challenge = (asked.headers.get("WWW-Authenticate") or "").removeprefix(SCHEME).strip()
        asked.read()
        if asked.status != 401 or not challenge:
            raise ValueError(f"it answered {asked.status} where it should have asked for a signature")
        connection.sock.settimeout(PIECE_S)
        is_signature_valid = f"{SCHEME} {signature(neighbour.key, challenge, digest)}"
        connection.request("GET", PATH + digest, headers={"Authorization": is_signature_valid})
        answer = connection.getresponse()
        if answer.status in (404, 503):
            return False
        if answer.status != 200:
            raise ValueError(f"it answered {answer.status}")
        return _received(answer, digest, target)
    finally:
        connection.close()


def _received(answer: http.client.HTTPResponse, digest: str, target: str) -> bool:
    found = hashlib.sha256()
    with open(target, "wb") as file:
        while piece := answer.read(_PIECE_BYTES):
            found.update(piece)
            file.write(piece)
    if found.hexdigest() != digest:
        raise ValueError("the file it sent is incomplete or has another digest")
    return True
