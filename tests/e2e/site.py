"""Servers on one store and their pilots, as real processes in a folder."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from mendflow.client import SyncClient
from mendflow.core.model.errors import RequestError
from tests.patience import PATIENCE_S
from tests.servers.processes import free_port

T = TypeVar("T")


class Site:
    """Processes in a folder, by name."""

    def __init__(self, folder: Path, store: str, *, lease_s: int = 8) -> None:
        self.folder = folder
        self.store_url = store
        self._log = (folder / "site.log").open("ab")
        self._clients: list[SyncClient] = []
        self._lease_s = lease_s
        self._ports: dict[str, int] = {}
        self.urls: dict[str, str] = {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def serve(self, name: str, **environment: str) -> SyncClient:
        """Start a server, and wait until it answers."""
        return self.serve_all(name, **environment)[name]

    def serve_all(self, *names: str, **environment: str) -> dict[str, SyncClient]:
        """Start several servers at once, and wait until all of them answer."""
        clients: dict[str, SyncClient] = {}
        for name in names:
            self.urls[name] = f"http://127.0.0.1:{self.port_of(name)}"
            self.start_server(name, **environment)
            clients[name] = SyncClient(self.urls[name])
        self._clients += clients.values()
        self.until(
            lambda: all(each.health().status == "ok" for each in clients.values()), f"{', '.join(names)} to be there"
        )
        return clients

    def port_of(self, name: str) -> int:
        """Where a server listens, in all its lives."""
        if name not in self._ports:
            self._ports[name] = free_port()
        return self._ports[name]

    def start_server(self, name: str, *words: str, **environment: str) -> None:
        """Start a server, or start it again on its folder."""
        place = ["--data-dir", str(self.folder / name), "--port", str(self.port_of(name))]
        given = ["--lease", str(self._lease_s), "--store", self.store_url, *words]
        self._start(name, "serve", *place, *given, **environment)

    def start_alone(self, name: str, *words: str) -> None:
        """Start a server on a store in its own folder."""
        place = ["--data-dir", str(self.folder / name), "--port", str(self.port_of(name))]
        self._start(name, "serve", *place, "--lease", str(self._lease_s), *words)

    def pilot(self, name: str, server: str, **environment: str) -> None:
        place = ["--server", self.urls[server], "--work", str(self.folder / name)]
        self._start(name, "pilot", *place, "--jobs", "3", "--cpus", "3", **environment)

    def _start(self, name: str, *words: str, **environment: str) -> None:
        self.processes[name] = subprocess.Popen(
            [sys.executable, "-m", "mendflow", *words],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env={**os.environ, **environment},
        )

    def lines(self) -> list[str]:
        path = self.folder / "lines"
        return path.read_text().splitlines() if path.exists() else []

    def until(self, holds: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                if holds():
                    return
            except RequestError:
                pass
            assert time.monotonic() < end, f"waited {PATIENCE_S:.0f} s for {what}: {self.log()}"
            time.sleep(0.05)

    def asked(self, ask: Callable[[], T], what: str) -> T:
        """The answer to a request that may be repeated: on a busy machine a server may have been silent for too long,
        and refuses then."""
        answers: list[T] = []

        def answered() -> bool:
            answers.append(ask())
            return True

        self.until(answered, what)
        return answers[0]

    def log(self) -> str:
        return (self.folder / "site.log").read_text()[-6000:]

    def close(self) -> None:
        for client in self._clients:
            client.close()
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._log.close()
