"""Two domains as real processes, with a relay on the way to each of them."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Protocol, Self

from mendflow.client import SyncClient
from mendflow.core.model.domains import ConnectionSpec, InvitationSpec
from mendflow.core.model.errors import RequestError
from tests.e2e.bad_line import BadLine
from tests.patience import PATIENCE_S
from tests.servers.processes import free_port

LEASE_S = 4


class Line(Protocol):
    """A relay to a server."""

    cut: bool

    @property
    def url(self) -> str: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def get_bad(self) -> None: ...
    def get_good(self) -> None: ...


class TwoDomains:
    """North sends, south does the work; each reaches the other through a relay. Leases on work there last
    `domain_lease_s`; 0: as long as they do by default."""

    def __init__(
        self, folder: Path, seed: int, domain_lease_s: int = 4 * LEASE_S, lines: Callable[[int, int], Line] = BadLine
    ) -> None:
        self.folder = folder
        self._domain_lease_s = domain_lease_s
        self._log = (folder / "site.log").open("ab")
        self.ports = {name: free_port() for name in ("north", "south")}
        self.lines = {name: lines(port, seed) for name, port in self.ports.items()}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.clients: dict[str, SyncClient] = {}

    def __enter__(self) -> "TwoDomains":
        for name, line in self.lines.items():
            line.__enter__()
            self.serve(name)
            self.clients[name] = SyncClient(f"http://127.0.0.1:{self.ports[name]}")
        for name in self.ports:
            self.until(partial(self.answers, name), f"{name} to be there")
            self._start(
                f"pilot of {name}", "pilot", "--server", f"http://127.0.0.1:{self.ports[name]}", "--work",
                str(self.folder / f"work-{name}"), "--jobs", "4", "--cpus", "4",
            )  # fmt: skip
        north, south = self.clients["north"], self.clients["south"]
        invitation = south.invite_domain("north", InvitationSpec(urls=(self.lines["north"].url,)))
        north.connect_domain("south", ConnectionSpec(urls=(self.lines["south"].url,), token=invitation.token))
        self.until(lambda: north.connected_domain("south").state == "connected", "the two to be connected")
        return self

    def answers(self, name: str) -> bool:
        return self.clients[name].health().status == "ok"

    def __exit__(self, *_: object) -> None:
        for client in self.clients.values():
            client.close()
        for process in self.processes.values():
            process.kill()
            process.wait()
        for line in self.lines.values():
            line.__exit__()
        self._log.close()

    def serve(self, name: str) -> None:
        place = ["--data-dir", str(self.folder / name), "--port", str(self.ports[name]), "--domain", name]
        leases = ["--lease", str(LEASE_S), "--domain-lease", str(self._domain_lease_s)]
        self._start(name, "serve", *place, *leases)

    def _start(self, name: str, *words: str) -> None:
        command = [sys.executable, "-m", "mendflow", *words]
        quiet = subprocess.DEVNULL
        self.processes[name] = subprocess.Popen(command, stdin=quiet, stdout=self._log, stderr=self._log)

    def start(self, jobs: int, calls: int) -> str:
        given = {"jobs": list(range(jobs)), "calls": list(range(calls)), "log": str(self.folder / "lines")}
        return self.clients["north"].start("many", given).id

    def kill(self, name: str) -> None:
        os.kill(self.processes[name].pid, signal.SIGKILL)
        self.processes[name].wait()

    def until(self, holds: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
        end = time.monotonic() + patience_s
        while True:
            try:
                if holds():
                    return
            except RequestError:
                pass
            said = (self.folder / "site.log").read_text()[-4000:]
            assert time.monotonic() < end, f"waited {patience_s:.0f} s for {what}: {said}"
            time.sleep(0.1)

    def torment(self, over: threading.Event, seed: int, pause_s: float) -> None:
        """Kill servers, cut lines, and mend both, until it is over."""
        chance = Random(seed)
        while not over.wait(chance.uniform(0.3, 1.7) * pause_s):
            name = chance.choice(["north", "south"])
            if chance.random() < 0.5:
                self.kill(name)
                over.wait(chance.uniform(0, 2))
                self.serve(name)
            else:
                cut = [name] if chance.random() < 0.5 else ["north", "south"]
                for each in cut:
                    self.lines[each].cut = True
                over.wait(chance.choice([0.5, 3.0, LEASE_S * 2.0]))
                for each in cut:
                    self.lines[each].cut = False
