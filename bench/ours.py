"""mendflow as it is used: a server process on SQLite with full sync, a pilot process with two slots, and the client,
all over loopback. `python -m bench.ours python=2000` answers as the peers do."""

import subprocess
import sys
import time
from pathlib import Path

from bench.subject import WORKERS, CaseReference, Kind, answer
from mendflow.client import SyncClient
from mendflow.core.model.errors import Unreachable
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Activity, Flow, ForEach, Input, JobActivity, Sequence
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import FunctionRef
from mendflow.wiring import find_server

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_S = 120.0


def function(name: str) -> FunctionRef:
    return FunctionRef(module="bench.subject", name=name, folder=str(ROOT))


def many(name: str, body: JobActivity) -> Flow:
    """As many turns at once as the input says."""
    each = ForEach(name="each", first=0, last=Expr("int(inputs.jobs) - 1"), body=body)
    return Flow(name=FlowName(name), inputs={"jobs": Input(type="number", required=True)}, body=each)


def chain(jobs: int) -> Flow:
    """Jobs that each take what the one before gave."""
    hops: list[Activity] = [JobActivity(name="hop1", function=function("step"), args=(0,))]
    for number in range(2, jobs + 1):
        taken = f"${{{{ jobs.hop{number - 1}.outputs }}}}"
        hops.append(JobActivity(name=f"hop{number}", function=function("step"), args=(taken,)))
    outputs = {"hops": f"${{{{ jobs.hop{jobs}.outputs }}}}"}
    return Flow(name=FlowName(f"chain-{jobs}"), body=Sequence(name="hops", body=tuple(hops)), outputs=outputs)


class Mendflow(CaseReference):
    def start(self) -> None:
        self._chains: set[int] = set()
        data = self.folder / "data"
        self.server = self._process(*self.serving(data))
        end = time.monotonic() + PATIENCE_S
        while (found := find_server(data)) is None:
            assert time.monotonic() < end and self.server.poll() is None, self._log()
            time.sleep(0.02)
        self.client = SyncClient(found.url)
        self.at_end(self.client.close)
        work = str(self.folder / "work")
        self._process(
            "mendflow", "pilot", "--server", found.url, "--work", work, "--jobs", str(WORKERS), "--cpus", str(WORKERS)
        )
        while not self._pilots():
            assert time.monotonic() < end, self._log()
            time.sleep(0.02)
        self.client.deploy(many("python", JobActivity(name="noop", function=function("noop"), args=("${{ item }}",))))
        self.client.deploy(many("shell", JobActivity(name="true", command="true")))

    def _pilots(self) -> bool:
        try:
            return bool(self.client.pilots())
        except Unreachable:
            return False

    def serving(self, data: Path) -> tuple[str, ...]:
        """The module that is the server, and what it is told."""
        return ("mendflow", "serve", "--data-dir", str(data), "--port", "0")

    def _process(self, *words: str) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen([sys.executable, "-m", *words], stdout=log, stderr=log)
        self.at_end(process.wait)
        self.at_end(process.terminate)
        return process

    def _log(self) -> str:
        return (self.folder / "log").read_text()

    def define(self, kind: Kind, jobs: int) -> None:
        if kind is Kind.CHAIN and jobs not in self._chains:
            self.client.deploy(chain(jobs))
            self._chains.add(jobs)

    def python(self, jobs: int) -> None:
        self._case("python", {"jobs": jobs})

    def shell(self, jobs: int) -> None:
        self._case("shell", {"jobs": jobs})

    def chain(self, jobs: int) -> None:
        self.define(Kind.CHAIN, jobs)
        self._case(f"chain-{jobs}", {})

    def _case(self, name: str, inputs: dict[str, int]) -> None:
        started = self.client.start(name, inputs)
        ended = self.client.wait(started.id)
        assert ended.status == "completed", f"{ended.fault}\n{self._log()}"

    def server_peak_bytes(self) -> int:
        status = Path(f"/proc/{self.server.pid}/status").read_text()
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(peak.split()[1]) * 1024


def big_case(jobs: int = 100_000) -> dict[str, float]:
    """Many jobs in one case: how long, and how much memory the server took at most."""
    with Mendflow() as subject:
        subject.python(20)
        started = time.perf_counter()
        subject.python(jobs)
        seconds = time.perf_counter() - started
        return {"jobs": jobs, "seconds": seconds, "server_peak_bytes": subject.server_peak_bytes()}


if __name__ == "__main__":
    answer(Mendflow)
