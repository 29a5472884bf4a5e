"""How much one hostile user costs the others. `python -m bench.hostile [--minutes N] [--json FILE]`.

A real server with tokens and a pilot, each user a process. One runs cases of short jobs and lists the cases,
first alone, then beside another who sends whatever is expensive: expressions that search long texts, floods of
requests, huge cases, requests that never end, and connections that say nothing. What is wanted: `GET /cases` in less
than 250 ms in 99 of 100 cases, no lease lost, and at least half of the jobs."""

import argparse
import asyncio
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import aiohttp

from bench.ours import PATIENCE_S, many
from bench.run import machine
from mendflow.client import Client
from mendflow.core.model.flow import JobActivity
from mendflow.server.access import new_token
from mendflow.wiring import ServerAnnouncement, find_server

JOBS_PER_CASE = 20
CASES_TOGETHER = 4
HELD_CONNECTIONS = 400
PAUSE_S = 0.05
LONG_TEXT = "a" * 1_000_000
EXPENSIVE = (
    'facts.l.filter(a, facts.s.contains("aab")).size() > 0',
    'facts.l.exists(a, facts.s.indexOf("aab") > 0)',
    "facts.l.map(a, facts.l.map(b, a + b)).size() == 0",
    "[facts.l]" + ".map(a, a + a)" * 9 + ".size() == 0",
    "facts.l.exists(a, facts.s.split('').join('') == '')",
    "facts.l.exists(a, facts.s.matches('(a|b)*c'))",
)


class Figures:
    """What the quiet user met."""

    def __init__(self) -> None:
        self.jobs = 0
        self.list_s: list[float] = []
        self.answers = Counter[str]()

    def p99_ms(self) -> float:
        ordered = sorted(self.list_s)
        return ordered[int(len(ordered) * 0.99)] * 1000 if ordered else 0.0


async def quiet_user(url: str, token: str, end: float, figures: Figures) -> None:
    async with Client(url, token=token) as client:

        async def run_cases() -> None:
            while time.monotonic() < end:
                started = await client.start("shell", {"jobs": JOBS_PER_CASE})
                while (seen := await client.case(started.id)).status in ("running", "starting"):
                    await asyncio.sleep(PAUSE_S)
                    if time.monotonic() > end:
                        return
                assert seen.status == "completed", seen
                figures.jobs += JOBS_PER_CASE

        async def list_cases() -> None:
            headers = {"authorization": f"Bearer {token}"}
            async with aiohttp.ClientSession(headers=headers) as http:
                while time.monotonic() < end:
                    begun = time.perf_counter()
                    async with http.get(f"{url}/api/v1/cases") as response:
                        await response.read()
                        assert response.status == 200, response.status
                    figures.list_s.append(time.perf_counter() - begun)
                    await asyncio.sleep(PAUSE_S)

        await asyncio.gather(list_cases(), *(run_cases() for _ in range(CASES_TOGETHER)))


async def hostile_user(url: str, token: str, end: float, answers: Counter[str]) -> None:
    headers = {"authorization": f"Bearer {token}"}
    connector = aiohttp.TCPConnector(limit=100)
    async with aiohttp.ClientSession(headers=headers, connector=connector) as http:

        async def again(attack: Callable[[], Awaitable[str]]) -> None:
            while time.monotonic() < end:
                try:
                    answers[await attack()] += 1
                except (aiohttp.ClientError, OSError, TimeoutError) as error:
                    answers[f"{attack.__name__} {type(error).__name__}"] += 1
                    await asyncio.sleep(PAUSE_S)

        async def post(path: str, body: Any) -> int:
            async with http.post(f"{url}/api/v1{path}", json=body) as response:
                await response.read()
                return response.status

        async def expression() -> str:
            body = evaluation(EXPENSIVE[int(time.monotonic() * 10) % len(EXPENSIVE)])
            return f"expression {await post('/rule-previews/evaluate', body)}"

        async def flood() -> str:
            async with http.get(f"{url}/api/v1/cases?limit=1000") as response:
                await response.read()
                return f"flood {response.status}"

        async def huge_case() -> str:
            return f"huge case {await post('/cases', {'flow': 'shell', 'inputs': {'jobs': 5000, 'more': LONG_TEXT}})}"

        async def half_open() -> str:
            return await half_sent(url, end)

        flooding = [again(flood) for _ in range(20)]
        asking = [again(expression) for _ in range(4)]
        holding = [again(half_open) for _ in range(HELD_CONNECTIONS)]
        await asyncio.gather(*flooding, *asking, *holding, again(huge_case))


async def half_sent(url: str, end: float) -> str:
    """A request that never ends, by somebody who shows no token."""
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(b"POST /api/v1/cases HTTP/1.1\r\nhost: localhost\r\nx-")
        await writer.drain()
        answer = await asyncio.wait_for(reader.read(100), max(0.1, end - time.monotonic()))
        return f"half sent {answer[9:12].decode() or 'closed'}"
    finally:
        writer.close()


def evaluation(condition: str) -> dict[str, Any]:
    """A request to evaluate one condition on data of the caller's."""
    trees = {"case-pre": {"": {"rules": {"0": {"id": 0, "condition": condition}}, "root": 0}}}
    facts = {"s": LONG_TEXT, "l": [f"x{number}" for number in range(9000)]}
    rules = {"name": "hostile", "trees": trees}
    return {"rules": rules, "type": "case-pre", "context": {"facts": facts}, "only": True}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.hostile", description="One hostile user beside another.")
    parser.add_argument("--minutes", type=float, default=2.0, help="for each half: alone, and beside the other")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there")
    parser.add_argument("--attack", nargs=2, metavar=("URL", "TOKEN"), help="be the hostile user, and nothing else")
    options = parser.parse_args(arguments)
    if options.attack:
        answers = Counter[str]()
        url, token = options.attack
        asyncio.run(hostile_user(url, token, time.monotonic() + options.minutes * 60, answers))
        print(json.dumps(answers))
        return 0
    users = [new_token(name, [role]) for name, role in (("root", "admin"), ("ann", "user"), ("eve", "user"))]
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), [line for _, line in users]) as place:
        root, ann, eve = (token for token, _ in users)
        found = asyncio.run(measure(place, root, ann, eve, options.minutes * 60))
    print(machine())
    for name, value in found.items():
        print(f"{name:32} {value}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))
    kept = found["share of jobs"] >= 0.5 and found["GET /cases p99 ms, beside"] < 250 and not found["leases lost"]
    print("kept" if kept else "NOT kept")
    return 0 if kept else 1


@contextlib.contextmanager
def serving(folder: Path, lines: Sequence[str]) -> Iterator[ServerAnnouncement]:
    """A server process with these tokens, and a pilot with two slots."""
    (folder / "tokens").write_text("".join(f"{line}\n" for line in lines))
    words = ["serve", "--data-dir", str(folder / "data"), "--port", "0", "--tokens", str(folder / "tokens")]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([sys.executable, "-m", "mendflow", *words, "--jobs", "2"], stdout=log, stderr=log)
        try:
            end = time.monotonic() + 4 * PATIENCE_S
            while (place := find_server(folder / "data")) is None:
                assert time.monotonic() < end and server.poll() is None, (folder / "log").read_text()
                time.sleep(0.05)
            yield place
        finally:
            server.terminate()
            server.wait()


async def measure(place: ServerAnnouncement, root: str, ann: str, eve: str, seconds: float) -> dict[str, Any]:
    async with Client(place.url, token=root) as client:
        await client.deploy(many("shell", JobActivity(name="true", command="true")))
    alone, beside = Figures(), Figures()
    await quiet_user(place.url, ann, time.monotonic() + seconds, alone)
    end = time.monotonic() + seconds
    words = [sys.executable, "-m", "bench.hostile", "--attack", place.url, eve, "--minutes", str(seconds / 60)]
    attacker = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    await quiet_user(place.url, ann, end, beside)
    told, _ = await attacker.communicate()
    answers = Counter[str](json.loads(told))
    return {
        "jobs/s alone": round(alone.jobs / seconds, 1),
        "jobs/s beside": round(beside.jobs / seconds, 1),
        "share of jobs": round(beside.jobs / max(1, alone.jobs), 2),
        "GET /cases p99 ms, alone": round(alone.p99_ms(), 1),
        "GET /cases p99 ms, beside": round(beside.p99_ms(), 1),
        "leases lost": await lost_leases(place.url, root),
        "answers to the hostile user": dict(answers.most_common()),
    }


async def lost_leases(url: str, token: str) -> int:
    """How many attempts ended because their pilot was not heard of in time."""
    headers = {"authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(headers=headers) as http, http.get(f"{url}/metrics") as response:
        lines = [line.split() for line in (await response.text()).splitlines()]
    lines = [line for line in lines if line and line[0].startswith("mendflow_leases_lost")]
    return int(sum(float(line[-1]) for line in lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
