"""Runs the application inside an existing event loop, on a given port or any free one, until it is stopped. Signals are
handled by whoever owns the process."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import uvicorn

from mendflow.core.model.errors import Conflict
from mendflow.server.access import check_binding
from mendflow.server.connection_limits import ConnectionLimits, bounded_protocol
from mendflow.tls import BadTlsFile, ServerCertificate

if TYPE_CHECKING:
    from mendflow.server.app import Api
    from mendflow.server.pilot_api import PilotApi

log = logging.getLogger("mendflow.server")

STOP_GRACE_S = 0.5
STOP_S_MAX = 5
VISITORS_S_MAX = 1.5
VISITORS_LOOK_S = 0.02
"""Requests that are not answered by then, because the store is unreachable, are refused."""

QUICK_CLOSE_S = 0.1

ACCEPTED_AT_ONCE = 16
"""So many connections are accepted in each round of the event loop. uvloop accepts one for each socket that listens: a
busy loop has some fifty rounds a second, and whoever connects behind a few hundred others would wait for seconds."""

CERTIFICATE_LOOK_S = 5.0
CLOSED_S_MAX = 2
"""Within this time the remaining connections are closed, or cut."""


class _Uvicorn(uvicorn.Server):
    """Waits for its stop event instead of polling for it ten times a second. A TLS handshake has to be complete within
    `handshake_s`."""

    def __init__(self, config: uvicorn.Config, handshake_s: float) -> None:
        super().__init__(config)
        self._handshake_s = handshake_s
        self._stop_requested = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn does for sockets that listen already, which leaves a handshake a minute."""
        config, loop = self.config, asyncio.get_running_loop()

        def protocol() -> asyncio.Protocol:
            made: asyncio.Protocol = cast(Any, config.http_protocol_class)(
                config=config, server_state=self.server_state, app_state=self.lifespan.state
            )
            return made

        handshake_s = self._handshake_s if config.ssl is not None else None
        self.servers = [
            await loop.create_server(
                protocol, sock=each, ssl=config.ssl, backlog=config.backlog, ssl_handshake_timeout=handshake_s
            )
            for each in sockets or []
        ]
        self.started = True

    def ask_to_stop(self) -> None:
        self.should_exit = True
        self._stop_requested.set()

    async def main_loop(self) -> None:
        await self._stop_requested.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close at once if no connection is left; otherwise as uvicorn does, which looks ten times a second."""
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        give_up_at = time.monotonic() + QUICK_CLOSE_S
        while (self.server_state.connections or self.server_state.tasks) and time.monotonic() < give_up_at:
            await asyncio.sleep(0.002)
        if self.server_state.connections or self.server_state.tasks:
            await super().shutdown(sockets)
            return
        for listener in sockets or []:
            listener.close()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


class ListeningAddress:
    """A port that listens while nobody answers there yet: whoever connects waits until the server is ready.

    A server has its port before its cases go on, since what a case sends may say where to answer. It listens at once:
    a port that is only bound could be taken by another process, which would get those answers. `port` is the real port,
    also where 0 was asked for. Raises Conflict with the reason if the port cannot be had."""

    def __init__(self, host: str, port: int, *, tls: bool = False) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._scheme = "https" if tls else "http"
        self.host = host
        # The protocol is named because asyncio disables Nagle's delay only on sockets that name it.
        self.socket = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.socket.bind((host.strip("[]"), port))
            self.socket.listen(2048)
            self.socket.setblocking(False)
        except (OSError, OverflowError) as error:
            self.socket.close()
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise Conflict(
                f"cannot listen on {host}:{port}: {reason}; is another server running? "
                "Choose another port, or 0 for any"
            ) from error
        self.port: int = self.socket.getsockname()[1]

    @property
    def url(self) -> str:
        """An address that a client on this machine can use."""
        name = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"{self._scheme}://[{name}]:{self.port}" if ":" in name else f"{self._scheme}://{name}:{self.port}"

    @property
    def public_url(self) -> str:
        """An address that other machines can use, if this one listens to them."""
        if self.host in ("0.0.0.0", "", "::"):
            return f"{self._scheme}://{socket.getfqdn()}:{self.port}"
        return self.url

    def close(self) -> None:
        self.socket.close()


class HttpServer:
    """A running server."""

    def __init__(
        self,
        app: Api | PilotApi,
        address: ListeningAddress,
        server: _Uvicorn,
        task: asyncio.Task[None],
        certificate: ServerCertificate | None = None,
    ) -> None:
        self.app = app
        self.host = address.host
        self.port = address.port
        self.url = address.url
        self.certificate = certificate
        self._server = server
        self._task = task
        self._watching = asyncio.create_task(_watch(certificate)) if certificate is not None else None

    async def wait_for_visitors(self) -> None:
        """Answer those who are connected until they have gone, or for a moment: a command that has found this server
        may have more than one question."""
        give_up_at = time.monotonic() + VISITORS_S_MAX
        while self._server.server_state.connections and time.monotonic() < give_up_at:
            await asyncio.sleep(VISITORS_LOOK_S)

    async def stop(self) -> None:
        """Take no more requests, end event streams and held exchanges, let the rest finish, and close the port."""
        if self._watching is not None:
            self._watching.cancel()
        await self.app.stop(STOP_GRACE_S)
        self._server.ask_to_stop()
        await asyncio.wait([self._task], timeout=STOP_S_MAX)
        for request in list(self._server.server_state.tasks):
            request.cancel()
        await self._task

    async def finished(self) -> None:
        """Wait until somebody has stopped the server."""
        await asyncio.shield(self._task)


async def _watch(certificate: ServerCertificate) -> None:
    """Read the certificate again when its files change; one that cannot be used leaves the old one in use."""
    while True:
        await asyncio.sleep(CERTIFICATE_LOOK_S)
        reload_certificate(certificate)


def reload_certificate(certificate: ServerCertificate) -> None:
    try:
        if certificate.reload_if_changed():
            log.warning("the certificate of this server was read again; new connections get it")
    except BadTlsFile as error:
        log.error("the certificate stays the one before: %s", error)


async def serve(
    app: Api | PilotApi,
    host: str = "127.0.0.1",
    port: int = 0,
    certificate: ServerCertificate | None = None,
    limits: ConnectionLimits | None = None,
) -> HttpServer:
    """Start serving at an address; returns when its port is open."""
    return await serve_at(ListeningAddress(host, port, tls=certificate is not None), app, certificate, limits)


async def serve_at(
    address: ListeningAddress,
    app: Api | PilotApi,
    certificate: ServerCertificate | None = None,
    limits: ConnectionLimits | None = None,
) -> HttpServer:
    """As `serve`, at an address that listens already. Refuses to listen on a public address without a token."""
    limits = limits or ConnectionLimits()
    try:
        check_binding(address.host, app.access.tokens, issuer=app.access.issuer is not None)
    except BaseException:
        address.close()
        raise
    listener = address.socket
    config = uvicorn.Config(
        app,
        http=bounded_protocol(limits),
        ws="none",
        lifespan="off",
        interface="asgi3",
        loop="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=limits.idle_s,
        timeout_graceful_shutdown=STOP_S_MAX + CLOSED_S_MAX,
    )
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    if certificate is not None:
        config.load()
        config.ssl = certificate.context
    server = _Uvicorn(config, limits.header_s)
    listeners = [listener, *(listener.dup() for _ in range(ACCEPTED_AT_ONCE - 1))]
    task = asyncio.create_task(server.serve(sockets=listeners), name="mendflow-http")
    while not server.started:
        if task.done():
            for each in listeners:
                each.close()
            task.result()
            raise AssertionError("the HTTP server ended before it began")
        await asyncio.sleep(0.001)
    return HttpServer(app, address, server, task, certificate)
