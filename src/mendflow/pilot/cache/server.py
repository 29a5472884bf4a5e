"""Serves a pilot's cache to authenticated pilots of the same site.

One request transfers one file. The file is pinned meanwhile. It was hashed here and its seal is intact; the receiver
hashes it again."""

import logging
import socket
import socketserver
import threading
from contextlib import AbstractContextManager
from typing import BinaryIO, Protocol, cast

from mendflow.pilot.cache.contract import CacheEntry
from mendflow.pilot.cache.entries import is_digest
from mendflow.pilot.cache.signatures import PATH, SCHEME, is_signature_valid, new_challenge, new_secret

log = logging.getLogger("mendflow.pilot")

SENT_AT_ONCE = 8
"""Serve at most so many files at a time, as more would slow down the pilot's own jobs; further callers are refused."""

CALLERS_MAX = 64
PATIENCE_S = 20.0
_LINE_BYTES_MAX = 4096
_LINES_MAX = 32


class ServedCache(Protocol):
    def using(self, digest: str) -> AbstractContextManager[None]: ...

    def lookup(self, digest: str) -> CacheEntry | None: ...


class _BadRequest(Exception):
    pass


class CacheServer(socketserver.ThreadingTCPServer):
    """Listens as soon as it is constructed; `key` is the secret that callers must know."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, cache: ServedCache, host: str, port: int = 0) -> None:
        self.key = new_secret()
        self.cache = cache
        self.sending = threading.BoundedSemaphore(SENT_AT_ONCE)
        self._callers = threading.BoundedSemaphore(CALLERS_MAX)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Caller)
        self._thread = threading.Thread(target=self.serve_forever, name="mendflow-cache", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def process_request(self, request: object, client_address: object) -> None:
        if self._callers.acquire(blocking=False):
            super().process_request(cast(socket.socket, request), client_address)
        else:
            self.shutdown_request(cast(socket.socket, request))

    def process_request_thread(self, request: object, client_address: object) -> None:
        try:
            super().process_request_thread(cast(socket.socket, request), client_address)
        finally:
            self._callers.release()

    def handle_error(self, request: object, client_address: object) -> None:
        log.debug("a neighbour's request was broken off", exc_info=True)

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class _Caller(socketserver.StreamRequestHandler):
    """One connection, and the requests on it."""

    timeout = PATIENCE_S
    disable_nagle_algorithm = True

    def handle(self) -> None:
        challenge = ""
        try:
            while (asked := _request(cast(BinaryIO, self.rfile))) is not None:
                digest, claimed = asked
                serving = cast(CacheServer, self.server)
                if is_signature_valid(serving.key, challenge, digest, claimed):
                    challenge = ""
                    self._send(serving, digest)
                else:
                    challenge = new_challenge()
                    self._answer("401 Unauthorized", 0, f"WWW-Authenticate: {SCHEME} {challenge}\r\n")
        except _BadRequest:
            self._answer("400 Bad Request", 0)
        except OSError:
            return  # the caller is gone, or too slow

    def _send(self, serving: CacheServer, digest: str) -> None:
        if not serving.sending.acquire(blocking=False):
            self._answer("503 Service Unavailable", 0)
            return
        try:
            with serving.cache.using(digest):
                entry = serving.cache.lookup(digest)
                if entry is None:
                    self._answer("404 Not Found", 0)
                    return
                with open(entry.path, "rb") as file:
                    self._answer("200 OK", entry.bytes)
                    self.connection.sendfile(file, 0, entry.bytes)
        finally:
            serving.sending.release()

    def _answer(self, status: str, length: int, more: str = "") -> None:
        self.wfile.write(f"HTTP/1.1 {status}\r\n{more}Content-Length: {length}\r\n\r\n".encode())


def _request(stream: BinaryIO) -> tuple[str, str] | None:
    """The requested digest and its signature; None when the caller sends no more requests."""
    first = stream.readline(_LINE_BYTES_MAX)
    if not first:
        return None
    words = first.split()
    path = words[1].decode("ascii", "replace") if len(words) == 3 and words[0] == b"GET" else ""
    claimed = ""
    for _ in range(_LINES_MAX):
        line = stream.readline(_LINE_BYTES_MAX)
        name, _, value = line.decode("latin-1").partition(":")
        if name.strip().lower() == "authorization":
            claimed = value.strip().removeprefix(SCHEME).strip()
        if line in (b"\r\n", b"\n", b""):
            break
    else:
        raise _BadRequest
    digest = path.removeprefix(PATH)
    if not is_digest(digest):
        raise _BadRequest
    return digest, claimed
