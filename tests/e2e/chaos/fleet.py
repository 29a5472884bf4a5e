"""Three servers and six pilots on one store, as real processes, with a switchboard before each server.

Whatever can be done to them by force is done here: killed, stopped, cut off, and brought back on the same folders. Each
pilot has a token of its own, so a switchboard knows who calls; and a word in its environment that all its processes
inherit, so that none is overlooked."""

import asyncio
import os
import signal
import socket
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from mendflow.client import SyncClient
from mendflow.pilot.files.work_folder import PilotIdentity
from mendflow.server.access import new_token
from tests.e2e.site import Site
from tests.servers.line import Switchboard, opened

SERVERS = ("one", "two", "three")
PILOTS = ("p1", "p2", "p3", "p4", "p5", "p6")
SLOTS = 3
ANSWER_S = 4.0
_SIGN = "MENDFLOW_CHAOS_PILOT"

T = TypeVar("T")


class StoreServer(Protocol):
    """What the store runs on."""

    def kill(self) -> None: ...
    def start(self) -> None: ...


class Fleet(Site):
    def __init__(self, folder: Path, url: str, store: StoreServer, *, lease_s: int) -> None:
        super().__init__(folder, url, lease_s=lease_s)
        self.lease_s = lease_s
        self.store = store
        self._tokens = {name: new_token(name, ["pilot" if name in PILOTS else "admin"]) for name in (*PILOTS, "me")}
        self._token_file = folder / "tokens"
        self._token_file.write_text("".join(f"{line}\n" for _, line in self._tokens.values()))
        self._token_file.chmod(0o600)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="switchboards")
        self._thread.start()
        self._stack = AsyncExitStack()
        self.boards = self._done(self._open())
        self.urls = {name: f"http://127.0.0.1:{board.port}" for name, board in self.boards.items()}
        self.server_names: dict[str, str] = {}  # by the ids that they have for good

    async def _open(self) -> dict[str, Switchboard]:
        callers = {self._tokens[name][0]: name for name in PILOTS}
        return {
            name: await self._stack.enter_async_context(opened(Switchboard(self.port_of(name), callers)))
            for name in SERVERS
        }

    def _done(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def begin(self, *, servers: tuple[str, ...] = SERVERS, pilots: tuple[str, ...] = PILOTS) -> SyncClient:
        """Start them, and return a client that asks any of the servers."""
        for name in servers:
            self.start_server(name)
        addresses = ",".join(f"http://127.0.0.1:{self.port_of(name)}" for name in servers)
        client = self.client(addresses)
        self.until(lambda: len(self._seen(client)) == len(servers), "all servers to be there")
        self.server_names = self._seen(client)
        for turn, name in enumerate(pilots):
            self.start_pilot(name, servers[turn % len(servers)])
        self.until(lambda: len(client.pilots()) == len(pilots), "all pilots to be there")
        return client

    def client(self, addresses: str = "") -> SyncClient:
        """One that asks any of the servers, and does not wait long for one that stands still."""
        addresses = addresses or ",".join(f"http://127.0.0.1:{self.port_of(name)}" for name in SERVERS)
        self._clients.append(made := SyncClient(addresses, self._tokens["me"][0], timeout_s=ANSWER_S))
        return made

    def start_server(self, name: str, *words: str, **environment: str) -> None:
        own = ["--tokens", str(self._token_file), "--url", self.urls[name], "--level", "1s"]
        super().start_server(name, *own, *words, **environment)

    def start_pilot(self, name: str, server: str) -> None:
        token = {"MENDFLOW_TOKEN": self._tokens[name][0], _SIGN: str(self.folder / name)}
        place = ["--server", self.urls[server], "--work", str(self.folder / name)]
        self._start(name, "pilot", *place, "--jobs", str(SLOTS), "--cpus", str(SLOTS), "--pass-env", _SIGN, **token)

    def pilot_id(self, name: str) -> str:
        return msgspec.json.decode((self.folder / name / "pilot.json").read_bytes(), type=PilotIdentity).pilot

    def _seen(self, client: SyncClient) -> dict[str, str]:
        """Our names of the servers, by their ids. One that is just starting has not said yet where it can be asked."""
        by_url = {url: name for name, url in self.urls.items()}
        return {view.id: by_url[view.url] for view in client.servers() if view.url in by_url}

    def listens(self, server: str) -> bool:
        """Whether it has started, and can be asked."""
        with socket.socket() as line:
            return line.connect_ex(("127.0.0.1", self.port_of(server))) == 0

    # Force

    def kill(self, name: str) -> None:
        """The process itself: a server, or a pilot's agent."""
        self.processes[name].kill()
        self.processes[name].wait()

    def kill_whole(self, pilot: str) -> None:
        """A pilot with all that it has started, as when its machine loses power: nobody sees another die first."""
        self.stop_whole(pilot)
        self._to_all(pilot, signal.SIGKILL)
        self.processes[pilot].wait()

    def stop(self, server: str) -> None:
        self.processes[server].send_signal(signal.SIGSTOP)

    def go_on(self, server: str) -> None:
        self.processes[server].send_signal(signal.SIGCONT)

    def stop_whole(self, pilot: str) -> None:
        """Let everything of a pilot stand still; the agent first, so that it starts nothing more."""
        self.processes[pilot].send_signal(signal.SIGSTOP)
        self._to_all(pilot, signal.SIGSTOP)

    def go_on_whole(self, pilot: str) -> None:
        for pid in self.processes_of(pilot):
            _send(pid, signal.SIGCONT)

    def part(self, pilot: str, server: str) -> None:
        self._loop.call_soon_threadsafe(self.boards[server].part, pilot)

    def join(self, pilot: str, server: str) -> None:
        self._loop.call_soon_threadsafe(self.boards[server].join, pilot)

    def _to_all(self, pilot: str, number: int) -> None:
        """Until nobody is left who has not got it: processes may start others meanwhile."""
        reached: set[int] = set()
        while new := self.processes_of(pilot) - reached:
            for pid in new:
                _send(pid, number)
            reached |= new

    def processes_of(self, pilot: str) -> set[int]:
        sign, found = f"{_SIGN}={self.folder / pilot}".encode(), set()
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    if sign in Path("/proc", entry, "environ").read_bytes().split(b"\0"):
                        found.add(int(entry))
                except OSError:
                    continue
        return found

    def close(self) -> None:
        for name in self.processes:
            if name in PILOTS:
                self.kill_whole(name)
        for name in SERVERS:
            if name in self.processes:
                self.go_on(name)
        super().close()
        self._done(self._stack.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextmanager
def fleet(folder: Path, url: str, store: StoreServer, *, lease_s: int) -> Iterator[Fleet]:
    made = Fleet(folder, url, store, lease_s=lease_s)
    try:
        yield made
    finally:
        made.close()


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def now_us() -> int:
    """By the clock that the jobs tell the time by."""
    return time.monotonic_ns() // 1000


def steady_us() -> int:
    """What that clock shows more than the time of day, which servers tell."""
    return now_us() - time.time_ns() // 1000
