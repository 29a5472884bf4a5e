"""What tokens, the gate, the audit log and TLS cost together: the same work by a server with all of them, and by one
with none. `python -m bench.secured [--pairs N] [--jobs N]`.

Both halves of a pair run right after each other, and who begins changes from pair to pair. Each half starts a server
with a pilot of two slots; a user starts cases of many small jobs over HTTP, one after the other, and waits for their
ends. With everything on, that user is an author of a project and not an administrator, so that each request is looked
at. What counts is the ratio within a pair. The processor's time of the server is told beside the rates: on a busy
machine it says more. What is wanted: at least nine tenths of the jobs."""

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.pairs import Pair, median_estimate, pair
from bench.run import machine, tell
from mendflow.client import Client
from mendflow.core.model.access_tokens import TokenRequest
from mendflow.formats import load
from mendflow.server.access import new_token
from mendflow.tls import ClientTls

START_S = 120.0
PAUSE_S = 0.02
PROJECT = "genomics"
WANTED_SHARE = 0.1
FLOW = "name: many\njobs:\n  one:\n    for-each: {{i: {{from: 1, to: {jobs}}}}}\n    run: 'true'\n"


def certificate(folder: Path) -> tuple[Path, Path]:
    cert, key = folder / "cert.pem", folder / "key.pem"
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=bench"]
    subprocess.run(
        ["openssl", "req", "-x509", *new, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True
    )
    return cert, key


def measure(folder: Path, certificate: tuple[Path, Path], *, secured: bool, jobs: int, cases: int) -> tuple[float, ...]:
    """Seconds a job, and seconds of the server's processor a job."""
    folder.mkdir()
    root, line = new_token("root", ["admin"])
    words = ["serve", "--data-dir", str(folder / "data"), "--port", "0"]
    if secured:
        (folder / "tokens").touch(0o600)
        (folder / "tokens").write_text(f"{line}\n")
        cert, key = certificate
        words += ["--tokens", str(folder / "tokens"), "--tls-cert", str(cert), "--tls-key", str(key)]
    else:
        words += ["--no-audit"]
    (folder / "many.yaml").write_text(FLOW.format(jobs=jobs))
    begun: list[subprocess.Popen[bytes]] = []
    with (folder / "log").open("wb") as log:

        def begin(*words: str, **more: str) -> int:
            environment = {**os.environ, **more}
            process = subprocess.Popen(
                [sys.executable, "-m", "mendflow", *words], stdout=log, stderr=log, env=environment
            )
            begun.append(process)
            return process.pid

        try:
            pid, pin = begin(*words), f"file:{certificate[0]}" if secured else ""
            url, token = _url(folder / "log"), root if secured else ""
            pilot = ["pilot", "--server", url, "--work", str(folder / "work"), "--jobs", "2", "--cpus", "2"]
            begin(*pilot, MENDFLOW_TOKEN=token, MENDFLOW_TLS_PIN=pin)
            return asyncio.run(_work(url, ClientTls(pin=pin), token, pid, folder / "many.yaml", jobs, cases))
        finally:
            for process in reversed(begun):
                process.terminate()
                process.wait()


def _url(log: Path) -> str:
    give_up_at = time.monotonic() + START_S
    while True:
        for line in log.read_text().splitlines():
            if line.startswith("mendflow serves "):
                return line.split()[2]
        assert time.monotonic() < give_up_at, log.read_text()
        time.sleep(0.05)


async def _work(url: str, tls: ClientTls, root: str, pid: int, flow: Path, jobs: int, cases: int) -> tuple[float, ...]:
    async with Client(url, tls=tls, token=root) as client:
        while not await client.pilots():
            await asyncio.sleep(PAUSE_S)
        token = ""
        if root:
            token = (await client.create_token(TokenRequest(name="ann", projects={PROJECT: "author"}))).token
    async with Client(url, tls=tls, token=token) as client:
        await client.deploy(load(flow), project=PROJECT)
        await _run_case(client)
        began, cpu = time.perf_counter(), _cpu_s(pid)
        for _ in range(cases):
            await _run_case(client)
        return (time.perf_counter() - began) / jobs / cases, (_cpu_s(pid) - cpu) / jobs / cases


async def _run_case(client: Client) -> None:
    case = await client.start("many", {})
    while (seen := await client.case(case.id)).status == "running":
        await asyncio.sleep(PAUSE_S)
    assert seen.status == "completed", seen


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.secured", description="What tokens, audit and TLS cost.")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=500, help="of a case")
    parser.add_argument("--cases", type=int, default=4, help="of each half of a pair")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    took: list[Pair] = []
    used: list[Pair] = []
    with tempfile.TemporaryDirectory(prefix="mendflow-bench-") as place:
        made = certificate(Path(place))
        for number in range(options.pairs):

            def one(secured: bool, number: int = number) -> tuple[float, ...]:
                folder = Path(place) / f"{number}-{secured}"
                return measure(folder, made, secured=secured, jobs=options.jobs, cases=options.cases)

            for found, each in zip((took, used), pair(one, number), strict=True):
                found.append(each)
            tell(f"jobs/s: {1 / took[-1].without:,.0f} without, {1 / took[-1].with_it:,.0f} with; load {_load()}")
    print(machine())
    for name, pairs in (("of the jobs are lost", took), ("of the server's processor is more", used)):
        share = median_estimate([each.share for each in pairs])
        print(f"{share.value:6.1%} {name} (between {share.low:.1%} and {share.high:.1%}; {len(pairs)} pairs)")
    for name, kind in (("without", False), ("with it", True)):
        rates = sorted(1 / (each.with_it if kind else each.without) for each in took)
        cpu = median_estimate([(each.with_it if kind else each.without) * 1000 for each in used])
        print(
            f"{name}: {rates[len(rates) // 2]:,.0f} jobs/s ({rates[0]:,.0f} to {rates[-1]:,.0f}),"
            f" {cpu.value:.2f} ms of the server's processor a job"
        )
    print(f"load of the machine: {_load()}")
    kept = median_estimate([each.share for each in took]).value <= WANTED_SHARE
    print("kept" if kept else "NOT kept")
    return 0 if kept else 1


def _load() -> str:
    return " ".join(f"{each:.1f}" for each in os.getloadavg())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
