"""How long a job does not run when its pilot and two servers die in turn. `python -m bench.servers_in_turn [--write]`.

Three servers on one PostgreSQL. The pilot that runs the job is killed together with the job's server; the server that
takes the job over is killed some time later, which the seed says; the third, which was paused meanwhile if the seed
says so, is the one that lets the job run again, in another pilot. Counted is the time from the first kill to the next
attempt; that in which no server ran is not."""

import argparse
import random
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.page import ruled, write_section
from bench.run import machine, tell
from mendflow.client import SyncClient
from mendflow.core.model.errors import RequestError
from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.ids import FlowName
from tests.e2e.site import Site
from tests.servers.postgresql import postgresql_server

LEASE_S = 8
SEEDS = 20
NAMES = ("one", "two", "three")
TITLE = "Servers that die in turn"
COLUMNS = ("seed", "second kill after", "third paused for", "next attempt after", "of which a server ran")


class TurnResult(NamedTuple):
    """Seconds from the first kill. `counted_s` is the part of `gap_s` in which a server ran."""

    seed: int
    second_s: float
    paused_s: float
    gap_s: float
    counted_s: float


def measure(seed: int) -> TurnResult:
    chance = random.Random(seed)
    second_s, is_paused = chance.uniform(3, LEASE_S + 0.5), chance.random() < 0.5
    with postgresql_server() as store, tempfile.TemporaryDirectory(prefix="bench-") as folder:
        site = Site(Path(folder), store.url, lease_s=LEASE_S)
        try:
            return _measure_on(site, seed, second_s, is_paused=is_paused)
        finally:
            for process in site.processes.values():
                process.send_signal(signal.SIGCONT)
            site.close()


def _measure_on(site: Site, seed: int, second_s: float, *, is_paused: bool) -> TurnResult:
    clients = {name: site.serve(name) for name in NAMES}
    names = {site.urls[name]: name for name in NAMES}
    site.until(lambda: {view.url for view in clients["one"].servers()} >= names.keys(), "the servers to see each other")
    ids = {view.id: names[view.url] for view in clients["one"].servers()}
    line = site.folder / "lines"
    clients["one"].deploy(
        Flow(name=FlowName("turn"), body=JobActivity(name="a", command=f"date +%s.%N >> {line}; sleep 60"))
    )
    site.pilot("p-one", "one")
    site.until(lambda: len(clients["one"].pilots()) == 1, "the pilot")
    case = clients["one"].start("turn", {}).id
    site.until(lambda: len(site.lines()) == 1, "the job to run")
    site.processes["p-one"].send_signal(signal.SIGSTOP)  # as when its machine is cut off: it renews nothing
    began = time.monotonic()
    site.processes["one"].kill()
    second = _taker(site, clients, ids, case)
    third = next(name for name in ("two", "three") if name != second)
    site.pilot("p-three", third)
    time.sleep(max(0.0, second_s - (time.monotonic() - began) - 1))
    paused_s = 0.0
    if is_paused:
        site.processes[third].send_signal(signal.SIGSTOP)
        paused_at = time.monotonic()
    time.sleep(max(0.0, second_s - (time.monotonic() - began)))
    site.processes[second].kill()
    killed_s = time.monotonic() - began
    if is_paused:
        time.sleep(1)
        site.processes[third].send_signal(signal.SIGCONT)
        paused_s = time.monotonic() - paused_at
    site.until(lambda: len(site.lines()) == 2, "the next attempt")
    gap_s = time.monotonic() - began
    return TurnResult(seed, killed_s, paused_s, gap_s, gap_s - (1 if is_paused else 0))


def _taker(site: Site, clients: dict[str, SyncClient], ids: dict[str, str], case: str) -> str:
    """The server that has taken the case over."""
    found: list[str] = []

    def taken() -> bool:
        for name in ("two", "three"):
            try:
                homes = [ids[view.id] for view in clients[name].servers() if view.cases and view.id in ids]
            except RequestError:
                continue
            found.extend(home for home in homes if home != "one")  # a dead server's last word stays listed
        return bool(found)

    site.until(taken, f"case {case} to be taken over")
    return found[0]


def row(found: TurnResult) -> tuple[str, ...]:
    return (
        str(found.seed),
        f"{found.second_s:.1f} s",
        f"{found.paused_s:.1f} s" if found.paused_s else "-",
        f"{found.gap_s:.1f} s",
        f"{found.counted_s:.1f} s",
    )


def body(all_found: Sequence[TurnResult]) -> str:
    longest = max(each.counted_s for each in all_found)
    lines = [
        "`python -m bench.servers_in_turn --write` makes this section. The pilot of a job is cut off and the job's",
        "server killed at once, and the server that takes over some time later. With a lease of",
        f"{LEASE_S} s the longest time to the next attempt, as far as a server ran, was {longest:.1f} s.",
        "",
        ruled(COLUMNS, [row(found) for found in all_found]),
        "",
        f"Machine: {machine()}.",
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.servers_in_turn", description="Servers that die in turn.")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--write", action="store_true", help="write the section in docs/understand/benchmarks.md")
    options = parser.parse_args(arguments)
    found = []
    for seed in range(options.first, options.first + options.seeds):
        found.append(measure(seed))
        tell(" | ".join(row(found[-1])))
    print(ruled(COLUMNS, [row(each) for each in found]))
    if options.write:
        write_section(TITLE, body(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
