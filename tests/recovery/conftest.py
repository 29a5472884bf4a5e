"""A server with a pilot, as real processes, whose levels are short."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mendflow.client import SyncClient
from mendflow.client.server_file import find_server
from mendflow.core.model.views import UserTaskView
from tests.patience import PATIENCE_S

EXAMPLES = Path(__file__).parents[2] / "examples"


class Site:
    """One server in a folder of its own, with a pilot of so many slots, and what a person does with it."""

    def __init__(self, folder: Path, *, slots: int = 4) -> None:
        self.folder = folder
        self.log = (folder / "serve.log").open("wb")
        words = ["serve", "--port", "0", "--data-dir", str(folder / "data"), "--jobs", str(slots)]
        levels = ["--level", "300 ms", "--level", "500 ms", "--level", "700 ms"]
        self.process = self._start(*words, *levels)
        self._pilots: list[subprocess.Popen[bytes]] = []
        self.until(lambda: find_server(folder / "data"), "the server to say where it is")
        found = find_server(folder / "data")
        assert found is not None
        self.url = found.url
        self.client = SyncClient(found.url)

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "mendflow", *words]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def pilot(self, host: str, *, slots: int) -> None:
        """One more pilot, on a machine of this name; it is here when this returns."""
        work = str(self.folder / host)
        words = ["--server", self.url, "--work", work, "--host", host, "--site", host, "--jobs", str(slots)]
        self._pilots.append(self._start("pilot", *words))
        self.until(lambda: any(each.host == host for each in self.client.pilots()), f"the pilot on {host}")

    @staticmethod
    def until(true: Callable[[], object], what: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while not true():
            assert time.monotonic() < end, f"waited {PATIENCE_S} s for {what}"
            time.sleep(0.02)

    def task(self, case: str, role: str) -> UserTaskView:
        """The task that is offered to this role, as soon as there is one."""
        found: list[UserTaskView] = []

        def offered() -> bool:
            found[:] = self.client.worklist(case=case, role=role, state="offered")
            return bool(found)

        self.until(offered, f"a task for {role}")
        return found[0]

    def ended(self, case: str) -> str:
        return self.client.wait(case, timeout_s=PATIENCE_S).status

    def did(self, case: str) -> list[str]:
        """The exlets that mended a case, in order."""
        found = self.client.decisions()
        return [each.exlet for each in sorted(found, key=lambda each: each.at) if each.case == case and each.exlet]

    def stop(self) -> None:
        self.client.close()
        for process in (*self._pilots, self.process):
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.log.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp("site"))
    yield site
    site.stop()
