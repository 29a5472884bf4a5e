"""How much one hostile user costs the others. `python -m bench.hostile [OPTIONS]`; `--help` tells them.

A real server with tokens and pilots, each user a process. Honest users of one project run cases of short jobs and list
the cases, first alone, then beside a user of another project who sends whatever is expensive (`bench.hostile_user`).
What is wanted: `GET /cases` in less than 250 ms in 99 of 100 cases, no lease lost, and at least half of the jobs.

Alone, the honest users run as many cases as get done, which shows what the machine can do. Beside the hostile user
they want a share of that (`--load`, three fifths), by the clock: a server that is asked for more than the machine can
do makes everybody wait, hostile user or not, and for how long says nothing about either. `--load 1` lets them ask for
all they can get beside the hostile user too, which shows what share is left to them.

Users and pilots stand for other machines: the server has one half of the processors and the disk, and all others have
the other half of the processors; pilots work in memory where there is a file system for that. The hostile user's
process gives way to the other users and the pilots, for the same reason.

Requests are sent by the clock, and not when the one before was answered: whoever waits for a server that stands still
would otherwise send none meanwhile, and count it once."""

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import Any

import aiohttp

from bench.hostile_user import HostileUser
from bench.ours import PATIENCE_S, many
from bench.run import machine, tell
from mendflow.client import Client
from mendflow.core.model.access_tokens import TokenRequest
from mendflow.core.model.flow import JobActivity
from mendflow.server.access import new_token
from mendflow.wiring import ServerAnnouncement, find_server

JOBS_PER_CASE = 20
CASES_TOGETHER = 2
LIST_EVERY_S = 0.1
PAUSE_S = 0.05
LOAD = 0.6
NICENESS = 10
TOKEN = "MENDFLOW_TOKEN"
MEMORY_FOLDER = "/dev/shm"
HONEST, HOSTILE = "genomics", "intruders"
KINDS = ("previews", "loops", "paths", "flood", "huge", "half", "slow")


class Figures:
    """What the honest users met."""

    def __init__(self) -> None:
        self.jobs = 0
        self.list_s: list[float] = []

    def at_ms(self, share: float) -> float:
        """So long have so many of the requests taken at most."""
        ordered = sorted(self.list_s)
        return round(ordered[int(len(ordered) * share)] * 1000, 1) if ordered else 0.0


async def honest_users(url: str, tokens: Sequence[str], end: float, figures: Figures, rate: float = 0.0) -> None:
    """The first lists cases, the others run some: so many jobs a second, or else as many as get done."""
    async with contextlib.AsyncExitStack() as opened:
        clients = [await opened.enter_async_context(Client(url, token=token)) for token in tokens[1:]]

        async def run_case(client: Client) -> None:
            started = await client.start("shell", {"jobs": JOBS_PER_CASE})
            while (seen := await client.case(started.id)).status in ("running", "starting"):
                await asyncio.sleep(PAUSE_S)
                if time.monotonic() > end:
                    return
            assert seen.status == "completed", seen
            figures.jobs += JOBS_PER_CASE

        async def run_cases(client: Client) -> None:
            while time.monotonic() < end:
                await run_case(client)

        async def run_by_clock() -> None:
            async with asyncio.TaskGroup() as running:
                due = time.monotonic()
                for client in itertools.cycle(clients):
                    if due >= end:
                        break
                    running.create_task(run_case(client))
                    due += JOBS_PER_CASE / rate
                    await asyncio.sleep(max(0.0, due - time.monotonic()))

        async def list_cases() -> None:
            headers = {"authorization": f"Bearer {tokens[0]}"}
            async with aiohttp.ClientSession(headers=headers) as http, asyncio.TaskGroup() as asked:

                async def ask() -> None:
                    begun = time.perf_counter()
                    async with http.get(f"{url}/api/v1/cases") as response:
                        await response.read()
                        assert response.status == 200, response.status
                    figures.list_s.append(time.perf_counter() - begun)

                due = time.monotonic()
                while due < end:
                    asked.create_task(ask())
                    due += LIST_EVERY_S
                    await asyncio.sleep(max(0.0, due - time.monotonic()))

        runs = [run_by_clock()] if rate else [run_cases(each) for each in clients for _ in range(CASES_TOGETHER)]
        await asyncio.gather(list_cases(), *runs)


def main(arguments: Sequence[str]) -> int:
    options = _options(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if options.attack:
        os.nice(NICENESS)
        user = HostileUser(options.attack, os.environ[TOKEN], HOSTILE, time.monotonic() + options.minutes * 60)
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(user.attack(Path(folder), options.only))
        print(json.dumps(user.answers))
        return 0
    root, line = new_token("root", ["admin"])
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), line, root) as place:
        found = asyncio.run(measure(place, root, options))
    print(machine())
    for name, value in found.items():
        print(f"{name:32} {value}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))
    kept = found["share of jobs"] >= 0.5 and found["GET /cases p99 ms, beside"] < 250 and not found["leases lost"]
    print("kept" if kept else "NOT kept")
    return 0 if kept else 1


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.hostile", description="One hostile user beside others.")
    parser.add_argument("--minutes", type=float, default=10.0, help="beside the hostile user")
    parser.add_argument("--alone-minutes", type=float, default=1.0, metavar="MINUTES", help="before that")
    parser.add_argument(
        "--load",
        type=float,
        default=LOAD,
        metavar="SHARE",
        help="of the jobs that they get done alone; 1: all they can",
    )
    parser.add_argument("--only", nargs="+", choices=KINDS, default=KINDS, metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there")
    parser.add_argument("--attack", metavar="URL", help=f"be the hostile user, with the token in {TOKEN}")
    return parser.parse_args(arguments)


@contextlib.contextmanager
def serving(folder: Path, line: str, token: str) -> Iterator[ServerAnnouncement]:
    """A server process with this token in its file, and two pilots with a slot each."""
    tokens = folder / "tokens"
    tokens.touch(0o600)
    tokens.write_text(f"{line}\n")
    data, environment = folder / "data", {**os.environ, TOKEN: token}
    of_server, of_others = halves(os.sched_getaffinity(0))
    os.sched_setaffinity(0, of_others)
    begun: list[subprocess.Popen[bytes]] = []
    with (folder / "log").open("wb") as log, tempfile.TemporaryDirectory(dir=_memory_folder()) as work_folder:

        def begin(*words: str, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
            process = subprocess.Popen([sys.executable, "-m", "mendflow", *words], stdout=log, stderr=log, env=env)
            begun.append(process)
            return process

        try:
            server = begin("serve", "--data-dir", str(data), "--port", "0", "--tokens", str(tokens))
            os.sched_setaffinity(server.pid, of_server)
            end = time.monotonic() + 4 * PATIENCE_S
            while (place := find_server(data)) is None:
                assert time.monotonic() < end and server.poll() is None, (folder / "log").read_text()
                time.sleep(0.05)
            for number in range(2):
                work = f"{work_folder}/pilot-{number}"
                begin("pilot", "--server", place.url, "--work", work, "--jobs", "1", "--cpus", "1", env=environment)
            yield place
        finally:
            for process in reversed(begun):
                process.terminate()
                process.wait()


def _memory_folder() -> str | None:
    """A folder in memory, or the usual one for what is temporary."""
    return MEMORY_FOLDER if os.access(MEMORY_FOLDER, os.W_OK) else None


def halves(processors: Set[int]) -> tuple[Set[int], Set[int]]:
    """Of the processors of a machine: one half each, or all of them twice if there is but one."""
    ordered = sorted(processors)
    middle = len(ordered) // 2
    return set(ordered[:middle]) or processors, set(ordered[middle:])


async def measure(place: ServerAnnouncement, root: str, options: argparse.Namespace) -> dict[str, Any]:
    alone_s, beside_s = options.alone_minutes * 60, options.minutes * 60
    async with Client(place.url, token=root) as client:
        made = [
            await client.create_token(TokenRequest(name=name, projects={project: "author"}))
            for name, project in (("ann", HONEST), ("bob", HONEST), ("cyd", HONEST), ("eve", HOSTILE))
        ]
        *honest, eve = (each.token for each in made)
        while len(await client.pilots()) < 2:
            await asyncio.sleep(PAUSE_S)
    async with Client(place.url, token=honest[0]) as client:
        await client.deploy(many("shell", JobActivity(name="true", command="true")), project=HONEST)
    alone, beside = Figures(), Figures()
    await honest_users(place.url, honest, time.monotonic() + alone_s, alone)
    tell(f"alone: {alone.jobs} jobs, GET /cases {alone.at_ms(0.5)} and {alone.at_ms(0.99)} ms")
    end = time.monotonic() + beside_s
    words = [sys.executable, "-m", "bench.hostile", "--attack", place.url, "--minutes", str(options.minutes)]
    attacker = await asyncio.create_subprocess_exec(
        *words, "--only", *options.only, stdout=asyncio.subprocess.PIPE, env={**os.environ, TOKEN: eve}
    )
    rate = 0.0 if options.load >= 1 else alone.jobs / alone_s * options.load
    await honest_users(place.url, honest, end, beside, rate)
    told, _ = await attacker.communicate()
    assert attacker.returncode == 0, "the hostile user has failed itself; it says why above"
    answers = Counter[str](json.loads(told))
    return {
        "jobs/s alone": round(alone.jobs / alone_s, 1),
        "jobs/s wanted beside": round(rate, 1) if rate else "all",
        "jobs/s beside": round(beside.jobs / beside_s, 1),
        "share of jobs": round(beside.jobs / beside_s / (alone.jobs / alone_s), 2) if alone.jobs else 0.0,
        "GET /cases p50 ms, alone": alone.at_ms(0.5),
        "GET /cases p99 ms, alone": alone.at_ms(0.99),
        "GET /cases p50 ms, beside": beside.at_ms(0.5),
        "GET /cases p99 ms, beside": beside.at_ms(0.99),
        "leases lost": await lost_leases(place.url, root),
        "load of the machine": " ".join(f"{each:.1f}" for each in os.getloadavg()),
        "answers to the hostile user": dict(answers.most_common()),
    }


async def lost_leases(url: str, token: str) -> int:
    """How many attempts ended because their pilot was not heard of in time."""
    headers = {"authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(headers=headers) as http, http.get(f"{url}/metrics") as response:
        lines = [line.split() for line in (await response.text()).splitlines()]
    found = [line for line in lines if line and line[0].startswith("mendflow_leases_lost")]
    assert found, "the server tells how many leases were lost"
    return int(sum(float(line[-1]) for line in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
