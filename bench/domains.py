"""How much slower a job is that is done in a connected domain: no-op jobs at home, and the same through a peer on
loopback. Two servers on SQLite with full sync, each with a pilot of two slots. `python -m bench.domains 500` prints a
row for each."""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.ours import PATIENCE_S, many
from bench.subject import WORKERS
from mendflow.client import SyncClient
from mendflow.core.model.domains import ConnectionSpec, InvitationSpec
from mendflow.core.model.errors import RequestError
from mendflow.core.model.flow import JobActivity
from mendflow.wiring import find_server

SINGLE_RUNS = 20


class BenchDomains:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self.clients = {name: self._serve(name) for name in ("home", "away")}
        home, away = self.clients["home"], self.clients["away"]
        token = away.invite_domain("home", InvitationSpec(urls=(self._url("home"),))).token
        home.connect_domain("away", ConnectionSpec(urls=(self._url("away"),), token=token))
        self._until(lambda: bool(home.pilots() and away.pilots()))

    def _url(self, name: str) -> str:
        found = find_server(self.folder / name)
        assert found is not None
        return found.url

    def _serve(self, name: str) -> SyncClient:
        data = self.folder / name
        self._start("serve", "--data-dir", str(data), "--port", "0", "--domain", name)
        self._until(lambda: find_server(data) is not None)
        work, slots = str(self.folder / f"work-{name}"), str(WORKERS)
        self._start("pilot", "--server", self._url(name), "--work", work, "--jobs", slots, "--cpus", slots)
        return SyncClient(self._url(name))

    def _start(self, *words: str) -> None:
        with (self.folder / "log").open("ab") as log:
            self._processes.append(subprocess.Popen([sys.executable, "-m", "mendflow", *words], stdout=log, stderr=log))

    def _until(self, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                if holds():
                    return
            except RequestError:
                pass
            assert time.monotonic() < end, (self.folder / "log").read_text()[-2000:]
            time.sleep(0.02)

    def close(self) -> None:
        for client in self.clients.values():
            client.close()
        for process in self._processes:
            process.terminate()
            process.wait()

    def run(self, flow: str, jobs: int) -> float:
        """How long a case of so many jobs takes, in seconds."""
        home, began = self.clients["home"], time.perf_counter()
        case = home.start(flow, {"jobs": jobs}).id
        while home.case(case).status == "running":
            time.sleep(0.002 if jobs == 1 else 0.02)
        assert home.case(case).status == "completed", home.case(case).fault
        return time.perf_counter() - began


def main() -> None:
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    with tempfile.TemporaryDirectory(prefix="mendflow-bench-") as folder:
        domains = BenchDomains(Path(folder))
        try:
            for name, domain in (("at-home", ""), ("through-a-peer", "away")):
                flow = many(name, JobActivity(name="true", command="true", domain=domain))
                domains.clients["home"].deploy(flow)
                domains.run(name, 20)
                single_ms = statistics.median(domains.run(name, 1) for _ in range(SINGLE_RUNS)) * 1000
                seconds = domains.run(name, jobs)
                print(f"{name:>15}: {jobs / seconds:7.1f} jobs/s, one job {single_ms:7.1f} ms", flush=True)
        finally:
            domains.close()


if __name__ == "__main__":
    main()
