"""The web app at scale: `python -m bench.web [--write]`.

A store with a case of 100,000 items, 10,000 cases, 5,000 rules and 500 pilots is made, a real server is started on it,
and a real Chromium opens its pages. Beside the time stands the processor time, of the page's main thread and of the
server: it says what a page costs on a machine that has nothing else to do."""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from statistics import quantiles
from typing import NamedTuple

from playwright.sync_api import Browser

from bench.page import write_section
from bench.run import machine, tell
from bench.web.browser import browsing, fresh
from bench.web.fill import Amounts
from bench.web.scenes import Moved, Opened, bundle, move_all, moved_table, open_all, opened_table
from bench.web.server import FilledServer
from bench.web.viewers import watching

TITLE = "The web app at scale"
USUAL = Amounts(items=100_000, cases=10_000, rules=5_000, pilots=500)
QUICK = Amounts(items=2_000, cases=200, rules=200, pilots=20)
JOBS = 2_000
SMALL_CASES = 10
QUIET_S = 10


class Stayed(NamedTuple):
    """A page that was open while very much happened. The first number is taken after a while of that."""

    seconds: float
    jobs: int
    first_bytes: int
    last_bytes: int
    nodes: tuple[int, int]


class Crowded(NamedTuple):
    viewers: int
    bytes_each: float
    quiet_share: float
    late_ms: tuple[float, float]
    resets: int
    jobs_per_s: tuple[float, float]
    server_ms: tuple[float, float]


def stay(browser: Browser, server: FilledServer, seconds: float) -> Stayed:
    """Cases of very many short jobs, one after the other, while Home is shown."""
    with fresh(browser, server.url) as page:
        page.show("/", ".tile-count")
        server.python(JOBS)
        first, nodes, began, jobs = page.heap_bytes(), page.nodes(), time.monotonic(), 0
        while time.monotonic() - began < seconds:
            server.python(JOBS)
            jobs += JOBS
            page.page.wait_for_timeout(100)  # what the page says is read meanwhile
        spent = time.monotonic() - began
        return Stayed(spent, jobs, first, page.heap_bytes(), (nodes, page.nodes()))


def crowd(server: FilledServer, viewers: int) -> Crowded:
    alone = _rate(server)
    memory = server.memory_bytes()
    with watching(server.url, viewers) as watchers:
        time.sleep(2)
        each = (server.memory_bytes() - memory) / viewers
        before = server.processor_s()
        time.sleep(QUIET_S)
        quiet = (server.processor_s() - before) / QUIET_S
        watchers.told()
        for _ in range(SMALL_CASES):
            server.python(1)
            time.sleep(1)
        time.sleep(2)
        told = watchers.told()
        assert len(told.late_ms) >= viewers * SMALL_CASES, (len(told.late_ms), told.cut)
        beside = _rate(server)
        resets = watchers.told().resets
    late = quantiles(told.late_ms, n=100)
    return Crowded(
        viewers, each, quiet, (late[49], max(told.late_ms)), resets, (alone[0], beside[0]), (alone[1], beside[1])
    )


def _rate(server: FilledServer) -> tuple[float, float]:
    """Jobs a second, and the server's processor time for each, in milliseconds."""
    before, began = server.processor_s(), time.perf_counter()
    server.python(JOBS)
    return JOBS / (time.perf_counter() - began), 1000 * (server.processor_s() - before) / JOBS


def body(amounts: Amounts, opened: Sequence[Opened], moved: Sequence[Moved], stayed: Stayed, crowded: Crowded) -> str:
    low, high = crowded.late_ms
    lines = [
        f"`python -m bench.web --write` made this section: a store with a case of {amounts.items:,} items,"
        f" {amounts.cases:,} cases,",
        f"a set of {amounts.rules:,} rules, each with its cornerstone, and {amounts.pilots} pilots; a real server"
        " on it, and Chromium without a",
        "graphics card. Pages are opened one after the other, each in a profile of its own. Processor times say what",
        "a page costs whatever else runs; the time until it is useful has the wait for a core in it.",
        "",
        opened_table(opened),
        "",
        moved_table(moved),
        "",
        f"The app is {bundle()}.",
        "",
        f"Home stayed open for {stayed.seconds:.0f} s, in which {stayed.jobs:,} jobs ended: its heap had"
        f" {stayed.first_bytes / 1e6:.1f} MB after the first",
        f"{JOBS:,} of them and {stayed.last_bytes / 1e6:.1f} MB at the end, both after a collection, with"
        f" {stayed.nodes[0]:,} and {stayed.nodes[1]:,} elements.",
        "",
        f"With {crowded.viewers:,} viewers at once, each with a stream of events, the server has"
        f" {crowded.bytes_each / 1000:.0f} kB more memory for each, and",
        f"{crowded.quiet_share:.1%} of a core is busy while nothing happens. The end of a case is with half of them",
        f"after {low:.0f} ms, with the last after {high:.0f} ms.",
        f"{JOBS:,} jobs of one case run at {crowded.jobs_per_s[1]:,.0f}/s beside them, at"
        f" {crowded.jobs_per_s[0]:,.0f}/s without them; a job costs the server",
        f"{crowded.server_ms[1]:.2f} ms of processor time instead of {crowded.server_ms[0]:.2f} ms. A viewer was told"
        f" {crowded.resets / crowded.viewers:.1f} times to read all anew.",
        "",
        f"Machine: {machine()}; load {os.getloadavg()[0]:.1f} at the end. Viewers and browser share its cores with the"
        " server.",
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.web", description="The web app at scale, in Chromium.")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything works")
    parser.add_argument("--minutes", type=float, default=3, help="how long a page stays open while much happens")
    parser.add_argument("--viewers", type=int, default=1_000)
    parser.add_argument("--write", action="store_true", help="write the section in docs/understand/benchmarks.md")
    options = parser.parse_args(arguments)
    amounts = QUICK if options.quick else USUAL
    with FilledServer(amounts) as server:
        tell(f"filled in {server.filled_s:.0f} s, started in {server.started_s:.0f} s")
        with browsing() as browser:
            opened = open_all(browser, server)
            tell(opened_table(opened))
            moved = move_all(browser, server)
            tell(moved_table(moved))
            stayed = stay(browser, server, 60 * options.minutes)
            tell(str(stayed))
        crowded = crowd(server, options.viewers)
        tell(str(crowded))
    text = body(amounts, opened, moved, stayed, crowded)
    print(text)
    if options.write:
        write_section(TITLE, text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
