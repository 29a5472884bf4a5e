"""The pilot's two HTTP clients: a fast one for exchanges, and a threaded one for whole files.

The exchange client is written by hand on an asyncio transport: a general client spends more time on one small request
than the rest of the pilot spends on the job, and slows the start. Files use the standard library's client in threads,
where their size delays nothing else."""

import asyncio
import http.client
import os
import secrets
import ssl
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from mendflow.core.model.data import StoreRequest
from mendflow.tls import CLOSED, NO_TLS_SETTINGS, BadTlsFile, ClientTls, explain

FILES_PATH = "/api/v1/pilots/files"
CHUNK_BYTES = 1 << 18
FILE_TIMEOUT_S = 60.0
PASSING = (429, 502, 503, 504)
"""Answers of a server, or of a proxy before it, after which the same request may be sent again."""
CONNECT_TIMEOUT_S = 10.0
"""Connect timeout. Shorter where the whole answer is wanted sooner: a machine that is down refuses nothing, and another
server may be up."""


class ServerAway(Exception):
    """No answer arrived; the server may or may not have read the request."""


class ServerRefused(Exception):
    """The server answered with an error status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"the server answered {status}: {text}")
        self.status = status


class ServerAddress:
    """The server's address, and the headers of each request."""

    def __init__(self, url: str, token: str, tls: ClientTls = NO_TLS_SETTINGS) -> None:
        self.url, self.token, self.client_tls = url, token, tls
        parts = urllib.parse.urlsplit(url if "//" in url else f"http://{url}")
        bare = "//" not in url and parts.port is None  # a name, not an address
        if parts.scheme not in ("http", "https") or not parts.hostname or bare:
            raise ValueError(f"{url!r} is not the address of a server: give one such as http://127.0.0.1:8765")
        self.tls = parts.scheme == "https"
        self.host = parts.hostname
        self.port = parts.port or (443 if self.tls else 80)
        self.base = parts.path.rstrip("/")
        self.netloc = parts.netloc.rpartition("@")[2]
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    def context(self) -> ssl.SSLContext | None:
        """For a new connection. Raises BadTlsFile."""
        return self.client_tls.context() if self.tls else None


class _Connection(asyncio.Protocol):
    """One connection, with one request at a time."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None
        self._head: tuple[int, int, bool] | None = None  # status, content length (-1: chunked), keep-alive
        self._body_at = 0
        self.transport: asyncio.Transport | None = None
        self.usable = self.answered = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.usable = True

    def connection_lost(self, exc: Exception | None) -> None:
        self.usable = False
        self._fail(f"the connection was closed ({(exc and explain(exc)) or exc or 'by the server'})")

    def _fail(self, reason: str) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ServerAway(reason))

    def ask(self, request: bytes) -> "asyncio.Future[tuple[int, bytes]]":
        assert self.transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self._answer

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self.answered = True
        try:
            answer = self._try_parse()
        except ValueError as error:
            self._fail(f"what came back is not HTTP ({error})")
            self.close()
            return
        if answer is not None and self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)

    def _try_parse(self) -> tuple[int, bytes] | None:
        if self._head is None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return None
            self._head = _head(bytes(self._buffer[:end]))
            self._body_at = end + 4
        status, length, keep = self._head
        if length < 0:
            chunked = _decode_chunked(self._buffer, self._body_at)
            if chunked is None:
                return None
            body, end = chunked
        else:
            end = self._body_at + length
            if len(self._buffer) < end:
                return None
            body = bytes(self._buffer[self._body_at : end])
        del self._buffer[:end]
        self._head = None
        if not keep:
            self.close()
        return status, body

    def close(self) -> None:
        self.usable = False
        if self.transport is not None:
            self.transport.close()


def _head(text: bytes) -> tuple[int, int, bool]:
    lines = text.split(b"\r\n")
    status = int(lines[0].split(b" ", 2)[1])
    length, keep = 0, not lines[0].startswith(b"HTTP/1.0")
    for line in lines[1:]:
        name, _, value = line.partition(b":")
        name, value = name.strip().lower(), value.strip().lower()
        if name == b"content-length":
            length = int(value)
        elif name == b"transfer-encoding" and b"chunked" in value:
            length = -1
        elif name == b"connection":
            keep = value != b"close"
    return status, length, keep


def _decode_chunked(buffer: bytearray, at: int) -> tuple[bytes, int] | None:
    """The body and the end of it, or None while it is incomplete."""
    parts: list[bytes] = []
    while True:
        line_end = buffer.find(b"\r\n", at)
        if line_end < 0:
            return None
        size = int(bytes(buffer[at:line_end]).split(b";")[0], 16)
        start = line_end + 2
        if len(buffer) < start + size + 2:
            return None
        if size == 0:
            end = buffer.find(b"\r\n", start)
            return (b"".join(parts), end + 2) if end >= 0 else None
        parts.append(bytes(buffer[start : start + size]))
        at = start + size + 2


class ExchangeClient:
    """A small pool of connections for requests whose answer the server may hold back."""

    def __init__(self, address: ServerAddress, path: str) -> None:
        self._path = path
        self._idle: list[_Connection] = []
        self.move(address)

    def move(self, address: ServerAddress) -> None:
        """Switch to another server."""
        self.close()
        self._address = address
        headers = {"Host": address.netloc, "Content-Type": "application/msgpack", **address.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._head = f"POST {address.base}{self._path} HTTP/1.1\r\n{lines}Content-Length: ".encode()

    async def post(self, body: bytes, timeout_s: float) -> bytes:
        request = b"%s%d\r\n\r\n%s" % (self._head, len(body), body)
        address = self._address
        connection = await self._connection(min(CONNECT_TIMEOUT_S, timeout_s))
        try:
            status, answer = await asyncio.wait_for(connection.ask(request), timeout_s)
        except TimeoutError:
            connection.close()
            raise ServerAway(f"no answer within {timeout_s:g} s") from None
        except ServerAway:
            if address.tls and not connection.answered:
                raise ServerAway(f"{address.netloc}: {CLOSED}") from None
            raise
        except BaseException:
            connection.close()
            raise
        if address is not self._address:
            connection.close()  # another server has been chosen meanwhile
        elif connection.usable:
            self._idle.append(connection)
        if status in PASSING:
            raise ServerAway(f"the server answered {status}: {answer[:200].decode(errors='replace')}")
        if status >= 300:
            raise ServerRefused(status, answer[:500].decode(errors="replace"))
        return answer

    async def _connection(self, timeout_s: float) -> _Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
        loop = asyncio.get_running_loop()
        try:
            context = self._address.context()
            _, protocol = await asyncio.wait_for(
                loop.create_connection(_Connection, self._address.host, self._address.port, ssl=context), timeout_s
            )
        except (OSError, TimeoutError, BadTlsFile) as error:
            why = explain(error) or str(error)
            raise ServerAway(f"cannot connect to {self._address.netloc}: {why}") from None
        return protocol

    def close(self) -> None:
        for connection in self._idle:
            connection.close()
        self._idle.clear()


class FileClient:
    """Reads and writes stored files of the server. Every method blocks; call it in a thread. `incoming` is the folder
    of a server on this machine where files that it is to store can be linked."""

    _incoming: Path | None = None

    def __init__(self, address: ServerAddress, incoming: Path | None = None) -> None:
        self._address = address
        self._incoming = incoming

    def move(self, address: ServerAddress) -> None:
        """Switch to another server."""
        self._address = address

    def _connect(self, timeout_s: float = FILE_TIMEOUT_S) -> http.client.HTTPConnection:
        host, port = self._address.host, self._address.port
        try:
            if (context := self._address.context()) is not None:
                return http.client.HTTPSConnection(
                    host, port, timeout=timeout_s, blocksize=CHUNK_BYTES, context=context
                )
        except BadTlsFile as error:
            raise ServerAway(str(error)) from None
        return http.client.HTTPConnection(host, port, timeout=timeout_s, blocksize=CHUNK_BYTES)

    def get(
        self, sha256: str, *, offset: int = 0, timeout_s: float = FILE_TIMEOUT_S, chunk_bytes: int = CHUNK_BYTES
    ) -> Iterator[bytes]:
        """The content from `offset` on, also if the server ignores the range and sends all of it."""
        connection = self._connect(timeout_s)
        headers = {**self._address.headers, **({"Range": f"bytes={offset}-"} if offset else {})}
        try:
            connection.request("GET", f"{self._address.base}/api/v1/files/{sha256}", headers=headers)
            response = connection.getresponse()
            _check(response)
            passed = offset if response.status == 206 else 0
            while chunk := response.read(chunk_bytes):
                passed += len(chunk)
                if passed > offset:
                    yield chunk[offset - passed :] if passed - len(chunk) < offset else chunk
        except (OSError, http.client.HTTPException) as error:
            raise ServerAway(str(error)) from None
        finally:
            connection.close()

    def ask(self, path: str, body: bytes) -> bytes:
        """Send one request that is not an exchange."""
        connection = self._connect()
        headers = {**self._address.headers, "Content-Type": "application/msgpack"}
        try:
            connection.request("POST", f"{self._address.base}{path}", body=body, headers=headers)
            response = connection.getresponse()
            _check(response)
            return response.read()
        except (OSError, http.client.HTTPException) as error:
            raise ServerAway(str(error)) from None
        finally:
            connection.close()

    def give(self, sha256: str, name: str, path: str) -> bool:
        """Give the server a file by a link, without copying it. False where that is not possible: then it is sent. The
        file stays where it is, and nobody may write to it any more."""
        link = secrets.token_hex(8)
        try:
            if self._incoming is None or os.lstat(path).st_nlink != 1:
                return False
            os.link(path, self._incoming / f"{link}.linked", follow_symlinks=False)
        except OSError:
            return False
        try:
            self._put(sha256, {"name": name, "linked": link}, b"", 0)
        except ServerRefused:
            return False
        finally:
            (self._incoming / f"{link}.linked").unlink(missing_ok=True)
        return True

    def stored_path(self, sha256: str) -> str:
        """Where a server on this machine stores the file, if it does; empty otherwise."""
        if self._incoming is None:
            return ""
        path = self._incoming.parent / sha256[:2] / sha256
        return str(path) if path.is_file() else ""

    def put(self, sha256: str, name: str, content: BinaryIO, size: int) -> None:
        self._put(sha256, {"name": name}, content, size)

    def _put(self, sha256: str, words: dict[str, str], content: BinaryIO | bytes, size: int) -> None:
        connection = self._connect()
        query = urllib.parse.urlencode(words)
        headers = {**self._address.headers, "Content-Length": str(size), "Content-Type": "application/octet-stream"}
        try:
            path = f"{self._address.base}/api/v1/files/{sha256}?{query}"
            connection.request("PUT", path, body=content, headers=headers)
            response = connection.getresponse()
            _check(response)
            response.read()
        except (OSError, http.client.HTTPException) as error:
            raise ServerAway(str(error)) from None
        finally:
            connection.close()

    def put_many(self, contents: dict[str, bytes]) -> None:
        """Store small files, by their SHA-256, with one request."""
        self.ask(FILES_PATH, msgspec.msgpack.encode(StoreRequest(contents=contents)))


def _check(response: http.client.HTTPResponse) -> None:
    if response.status < 300:
        return
    text = response.read(500).decode(errors="replace")
    if response.status in PASSING:
        raise ServerAway(f"the server answered {response.status}: {text}")
    raise ServerRefused(response.status, text)
