"""What tokens, the gate, the audit log and TLS cost together: the same work by a server with all of them and by one
with none, in turns, in one run. `python -m bench.secured [SECONDS]` takes about so long, and ends with a verdict.

Both servers run at the same time, each with a pilot of two slots, and only one of them has work at a time. A round is a
case of many small jobs, which a user starts over HTTP and asks about until it has ended. With everything on, that user
is an author of a project and not an administrator, so that each request is looked at. Both halves of a pair run right
after each other, and who begins changes from pair to pair. A process may be a little faster or slower than its twin for
its whole life, so both are started anew several times. Measured are the time by the clock and the processor time of the
server, which other programs' turns do not count in. The verdict follows from the bounds of the share that is lost."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median

from bench.pairs import MedianEstimate, Pair, median_estimate
from bench.proxy import processor_s
from bench.run import machine, tell
from mendflow.client import Client
from mendflow.core.model.access_tokens import TokenRequest
from mendflow.formats import load
from mendflow.server.access import new_token
from mendflow.tls import ClientTls

SECONDS = 180.0
SERVER_STARTS = 3
START_S = 120.0
PAUSE_S = 0.02
JOBS = 400
PROJECT = "genomics"
SHARE_MAX = 0.1
FLOW = "name: many\njobs:\n  one:\n    for-each: {{i: {{from: 1, to: {jobs}}}}}\n    run: 'true'\n"


def certificate(folder: Path) -> tuple[Path, Path]:
    cert, key = folder / "cert.pem", folder / "key.pem"
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=bench"]
    subprocess.run(
        ["openssl", "req", "-x509", *new, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True
    )
    return cert, key


class MeasuredPair:
    """One of the two servers, with its pilot and its user."""

    def __init__(self, folder: Path, *, secured: bool) -> None:
        self._folder, self._secured = folder, secured
        self._begun: list[subprocess.Popen[bytes]] = []
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "MeasuredPair":
        self._folder.mkdir()
        try:
            await self._begin()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
        for process in reversed(self._begun):
            process.terminate()
            process.wait()

    async def _begin(self) -> None:
        folder, pin, root = self._folder, "", ""
        words = ["serve", "--data-dir", str(folder / "data"), "--port", "0"]
        if self._secured:
            cert, key = certificate(folder)
            root, line = new_token("root", ["admin"])
            (folder / "tokens").touch(0o600)
            (folder / "tokens").write_text(f"{line}\n")
            words += ["--tokens", str(folder / "tokens"), "--tls-cert", str(cert), "--tls-key", str(key)]
            pin = f"file:{cert}"
        else:
            words += ["--no-audit"]
        log = self._stack.enter_context((folder / "log").open("wb"))
        self._server = self._start(log.fileno(), *words)
        url = await self._url()
        work = ["--work", str(folder / "work"), "--jobs", "2", "--cpus", "2"]
        self._start(log.fileno(), "pilot", "--server", url, *work, MENDFLOW_TOKEN=root, MENDFLOW_TLS_PIN=pin)
        tls, token = ClientTls(pin=pin), ""
        async with Client(url, tls=tls, token=root) as client:
            while not await client.pilots():
                await asyncio.sleep(PAUSE_S)
            if root:
                token = (await client.create_token(TokenRequest(name="ann", projects={PROJECT: "author"}))).token
        self._user = await self._stack.enter_async_context(Client(url, tls=tls, token=token))
        (folder / "many.yaml").write_text(FLOW.format(jobs=JOBS))
        await self._user.deploy(load(folder / "many.yaml"), project=PROJECT)
        await self.round()

    def _start(self, log: int, *words: str, **more: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "mendflow", *words]
        self._begun.append(subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **more}))
        return self._begun[-1]

    async def _url(self) -> str:
        give_up_at = time.monotonic() + START_S
        while True:
            told = (self._folder / "log").read_text()
            for line in told.splitlines():
                if line.startswith("mendflow serves "):
                    return line.split()[2]
            assert time.monotonic() < give_up_at and self._server.poll() is None, told
            await asyncio.sleep(PAUSE_S)

    async def round(self) -> tuple[float, float]:
        """Seconds a job, by the clock and of the server's processor."""
        began, cpu = time.perf_counter(), processor_s(self._server.pid)
        case = await self._user.start("many", {})
        while (seen := await self._user.case(case.id)).status == "running":
            await asyncio.sleep(PAUSE_S)
        assert seen.status == "completed", seen
        return (time.perf_counter() - began) / JOBS, (processor_s(self._server.pid) - cpu) / JOBS


async def measure(folder: Path, seconds: float) -> list[tuple[Pair, Pair]]:
    """Pairs of rounds without and with everything: by the clock, and by the server's processor."""
    found: list[tuple[Pair, Pair]] = []
    for number in range(SERVER_STARTS):
        async with AsyncExitStack() as stack:
            begins = number % 2 == 0
            servers = {
                kind: await stack.enter_async_context(MeasuredPair(folder / f"{number}-{kind}", secured=kind))
                for kind in (begins, not begins)
            }
            until = time.monotonic() + seconds / SERVER_STARTS
            while time.monotonic() < until:
                first = len(found) % 2 == 0
                took = {kind: await servers[kind].round() for kind in (first, not first)}
                wall, processor = (Pair(*both) for both in zip(took[False], took[True], strict=True))
                found.append((wall, processor))
        tell(f"{len(found)} pairs, {_shares(_estimate(found, 0))} of the jobs are lost; load {_load()}")
    return found


def verdict(found: Sequence[tuple[Pair, Pair]]) -> tuple[str, bool]:
    """What was found in words, and whether the share that is lost is certainly less than wanted."""
    wall, processor = _estimate(found, 0), _estimate(found, 1)
    rates = [1 / median(each[0][kind] for each in found) for kind in (0, 1)]
    used_ms = [1000 * median(each[1][kind] for each in found) for kind in (0, 1)]
    kept = wall.high < SHARE_MAX
    said = "is less than" if kept else "is more than" if wall.low > SHARE_MAX else "is not shown to be less than"
    return (
        f"{len(found)} pairs of {JOBS} jobs, {rates[0]:,.0f} jobs/s without and {rates[1]:,.0f} with:\n"
        f"  throughput  {_shares(wall)} is lost\n"
        f"  processor   {_shares(processor)} of {used_ms[1]:.2f} ms of the server a job ({used_ms[0]:.2f} without)\n"
        f"The throughput that tokens, gate, audit log and TLS take {said} {SHARE_MAX:.0%}.",
        kept,
    )


def _estimate(found: Sequence[tuple[Pair, Pair]], which: int) -> MedianEstimate:
    return median_estimate([both[which].share for both in found])


def _shares(found: MedianEstimate) -> str:
    return f"{found.value:.1%} ({found.low:.1%} to {found.high:.1%})"


def _load() -> str:
    return " ".join(f"{each:.1f}" for each in os.getloadavg())


def main(words: Sequence[str]) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    seconds = float(words[0]) if words else SECONDS
    with tempfile.TemporaryDirectory(prefix="mendflow-bench-") as folder:
        found = asyncio.run(measure(Path(folder), seconds * 0.85))
    print(machine())
    told, kept = verdict(found)
    print(told)
    print(f"load of the machine: {_load()}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
