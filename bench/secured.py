"""What the audit log and TLS cost: the same work by a server with both, and by one with neither, in turns.
`python -m bench.secured [--rounds N] [--jobs N] [--operations N]`.

Each round starts a server with a pilot, runs a case of many small jobs, and then sets limits by several callers at
once. The processor's time of the server is told beside the rates: on a busy machine it says more."""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.run import tell
from mendflow.client import Client
from mendflow.core.model.errors import RequestError
from mendflow.core.model.flow import Flow
from mendflow.core.model.named_limits import LimitCount
from mendflow.formats import load
from mendflow.tls import ClientTls

CALLERS = 16
START_S = 120.0
MODES = ("neither", "audit", "both")
FLOW = "name: many\njobs:\n  one:\n    for-each: {{i: {{from: 1, to: {jobs}}}}}\n    run: 'true'\n"


class Measured(NamedTuple):
    jobs_per_s: float
    operations_per_s: float
    job_cpu_ms: float
    operation_cpu_ms: float


def certificate(folder: Path) -> tuple[Path, Path]:
    cert, key = folder / "cert.pem", folder / "key.pem"
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=bench"]
    subprocess.run(
        ["openssl", "req", "-x509", *new, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True
    )
    return cert, key


def measure(mode: str, folder: Path, pair: tuple[Path, Path], jobs: int, operations: int) -> Measured:
    folder.mkdir()
    words = ["--no-audit"] if mode == "neither" else []
    words += ["--tls-cert", str(pair[0]), "--tls-key", str(pair[1])] if mode == "both" else []
    place = ["--data-dir", str(folder / "data"), "--port", "0", "--jobs", "2"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([sys.executable, "-m", "mendflow", "serve", *place, *words], stdout=log, stderr=log)
        try:
            tls = ClientTls(pin=f"file:{pair[0]}" if mode == "both" else "")
            (folder / "many.yaml").write_text(FLOW.format(jobs=jobs))
            flow = load(folder / "many.yaml")
            return asyncio.run(_work(_url(folder / "log"), tls, server.pid, flow, jobs, operations))
        finally:
            server.terminate()
            server.wait()


def _url(log: Path) -> str:
    give_up_at = time.monotonic() + START_S
    while True:
        for line in log.read_text().splitlines():
            if line.startswith("mendflow serves "):
                return line.split()[2]
        assert time.monotonic() < give_up_at, log.read_text()
        time.sleep(0.05)


async def _work(url: str, tls: ClientTls, pid: int, flow: Flow, jobs: int, operations: int) -> Measured:
    async with Client(url, tls=tls) as client:
        await client.deploy(flow)
        while not await client.pilots():
            await asyncio.sleep(0.05)
        began, cpu = time.monotonic(), _cpu_s(pid)
        case = await client.start("many", {})
        while (await client.case(case.id)).status == "running":
            await asyncio.sleep(0.02)
        assert (await client.case(case.id)).status == "completed"
        jobs_s, jobs_cpu = time.monotonic() - began, _cpu_s(pid) - cpu
        began, cpu = time.monotonic(), _cpu_s(pid)
        await asyncio.gather(*(_set_limits(client, each, operations // CALLERS) for each in range(CALLERS)))
        done = operations // CALLERS * CALLERS
        took, used = time.monotonic() - began, _cpu_s(pid) - cpu
    return Measured(jobs / jobs_s, done / took, jobs_cpu / jobs * 1000, used / done * 1000)


async def _set_limits(client: Client, caller: int, count: int) -> None:
    for number in range(count):
        try:
            await client.set_limit(f"limit-{caller}-{number % 10}", LimitCount(number + 1))
        except RequestError as error:
            raise SystemExit(f"the server refused: {error.message}") from error


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.secured", description="What the audit log and TLS cost.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--operations", type=int, default=1600)
    options = parser.parse_args(arguments)
    found: dict[str, list[Measured]] = {mode: [] for mode in MODES}
    with tempfile.TemporaryDirectory(prefix="mendflow-bench-") as place:
        pair = certificate(Path(place))
        for number in range(options.rounds):
            for mode in MODES:
                folder = Path(place) / f"{mode}-{number}"
                found[mode].append(measure(mode, folder, pair, options.jobs, options.operations))
                tell(f"{mode}: {_shown(found[mode][-1])}")
    best = {mode: Measured(*_best(each)) for mode, each in found.items()}
    for mode, each in best.items():
        plain = best["neither"]
        parts = [each.jobs_per_s / plain.jobs_per_s, each.operations_per_s / plain.operations_per_s]
        print(f"{mode}, the best of {options.rounds}: {_shown(each)}; {parts[0]:.2f} and {parts[1]:.2f} of neither")
    return 0


def _best(rounds: Sequence[Measured]) -> tuple[float, float, float, float]:
    rates = [max(each[place] for each in rounds) for place in (0, 1)]
    times = [min(each[place] for each in rounds) for place in (2, 3)]
    return rates[0], rates[1], times[0], times[1]


def _shown(each: Measured) -> str:
    return (
        f"{each.jobs_per_s:,.0f} jobs/s ({each.job_cpu_ms:.2f} ms of the server's processor each),"
        f" {each.operations_per_s:,.0f} operations/s ({each.operation_cpu_ms:.2f} ms)"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
