"""A server and pilots as real processes, which tests kill and start again."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mendflow.client import SyncClient
from mendflow.core.model.errors import RequestError
from tests.longest_first import longest_first
from tests.patience import PATIENCE_S
from tests.servers.processes import free_port


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """When those are left out that are not wanted."""
    if processes := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "0")):
        items[:] = longest_first(items, lambda item: item.path.name, processes)


def descendants(pid: int) -> list[int]:
    """All processes below this one, nearest first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found: list[int] = []
    wave = [pid]
    while wave:
        wave = [child for parent in wave for child in children.get(parent, [])]
        found += wave
    return found


class World:
    """One server and some pilots in a folder of their own. Everything may be killed at any time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.lease_s = 8.0
        self.server: subprocess.Popen[bytes] | None = None
        self.pilots: dict[str, subprocess.Popen[bytes]] = {}
        self.client = SyncClient(self.url)
        self.log = (folder / "world.log").open("ab")

    def start_server(self) -> None:
        self.server = self._start(
            "serve",
            "--data-dir",
            str(self.folder / "data"),
            "--port",
            str(self.port),
            "--lease",
            f"{self.lease_s:.0f}",
            "--files-root",
            str(self.folder),
        )

    def start_pilot(self, name: str, slots: int = 2, *words: str) -> None:
        work = self.folder / "pilots" / name
        self.pilots[name] = self._start(
            "pilot", "--server", self.url, "--work", str(work), "--jobs", str(slots), "--cpus", str(slots), *words
        )

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "mendflow", *words]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def kill_server(self) -> None:
        assert self.server is not None
        self.server.kill()
        self.server.wait()

    def kill_pilot(self, name: str, *, whole: bool = False) -> None:
        """Kill the pilot's own process, or all that it started as well."""
        process = self.pilots[name]
        below = descendants(process.pid) if whole else []
        process.kill()
        for pid in below:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        process.wait()

    def wait_for_server(self) -> None:
        self.until(lambda: self.client.health().status == "ok", "the server to answer")

    @staticmethod
    def until(true: Callable[[], object], what: str, every: float = 0.05) -> None:
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                if true():
                    return
                last = "not yet"
            except RequestError as error:  # the server may be away just now
                last = error.message
            assert time.monotonic() < end, f"waited {PATIENCE_S:.0f} s for {what}; last: {last}"
            time.sleep(every)

    def stop(self) -> None:
        self.client.close()
        for process in self.pilots.values():
            process.terminate()
        for process in self.pilots.values():
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
        if self.server is not None:
            self.server.terminate()
            try:
                self.server.wait(10)
            except subprocess.TimeoutExpired:
                self.server.kill()
        self.log.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.stop()
    print((tmp_path / "world.log").read_text(errors="replace")[-6000:])  # shown of a test that failed
