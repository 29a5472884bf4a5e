"""The live view: one frame, numbers for programs, and a terminal in which q ends it."""

import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec.structs import replace
from rich.console import Console

from mendflow.cli.top_totals import cluster_totals
from mendflow.cli.top_view import frame
from mendflow.core.model.ids import CaseId, ItemId, JobId, PilotId
from mendflow.core.model.stats import (
    CaseCount,
    EndCount,
    HistogramView,
    JobsCount,
    RepairCount,
    RunningJob,
    SiteCount,
    StatsView,
)
from tests.cli.conftest import Shell
from tests.cli.test_server import HELLO, served
from tests.patience import PATIENCE_S


def server(name: str, **changes: Any) -> StatsView:
    none = HistogramView(bounds=[1.0, 2.0], counts=[0, 0, 0])
    made = StatsView(
        server=name,
        version="1",
        store="memory",
        at=100_000,
        uptime_ms=50_000,
        store_up=True,
        store_away_s=0.0,
        servers_alive=2,
        queue_s=none,
        start_s=none,
        known_s=none,
        run_s=none,
        ledger_writes=none,
        ledger_s=none,
    )
    return replace(made, **changes)


def running(job: str, ran_ms: int, expected_ms: int = 0) -> RunningJob:
    return RunningJob(
        job=JobId(job),
        case=CaseId("c"),
        item=ItemId("i"),
        pilot=PilotId("p"),
        host="h",
        site="north",
        attempt=1,
        ran_ms=ran_ms,
        expected_ms=expected_ms,
    )


def drawn(now: list[StatsView], before: list[StatsView] | None = None) -> str:
    console = Console(width=140, record=True, file=open(os.devnull, "w"), color_system=None)  # noqa: SIM115 - ends here
    console.print(frame(now, cluster_totals(now, before or ()), running=5))
    return console.export_text()


def test_servers_are_added_up_and_alerts_are_not() -> None:
    one = server(
        "one",
        jobs=[JobsCount(state="waiting", site="", jobs=3), JobsCount(state="waiting", site="north", jobs=1)],
        pilots=[SiteCount(site="north", pilots=1, slots=4, free_slots=2)],
        cases=[CaseCount(flow="f", status="running", cases=2)],
        levels={1: 1},
        alerts={"orphan": 2},
    )
    both = cluster_totals([one, replace(one, server="two")])
    assert both.jobs["waiting"] == {"": 6, "north": 2}
    assert (both.pilots, both.slots, both.slots_free, both.levels) == (2, 8, 4, {1: 2})
    assert both.cases == {"running": 4}
    assert both.alerts == {"orphan": 2}  # each server sees all of them


def test_rates_are_of_the_time_between_two_looks() -> None:
    then = server("one", attempts=[EndCount(end="completed", site="", attempts=10)])
    now = replace(then, at=110_000, uptime_ms=60_000, attempts=[EndCount(end="completed", site="", attempts=60)])
    assert cluster_totals([now], [then]).rates["completed"] == 5.0
    again = replace(now, uptime_ms=4_000, attempts=[EndCount(end="completed", site="", attempts=8)])
    assert cluster_totals([again], [then]).rates["completed"] == 2.0  # it was started again meanwhile
    assert cluster_totals([now, server("new")], [then]).rates["completed"] == 5.0
    assert cluster_totals([now]).rates["completed"] == 1.0


def test_latencies_are_of_what_came_since_if_something_did() -> None:
    then = server("one", queue_s=HistogramView(bounds=[1.0, 2.0], counts=[100, 0, 0]))
    now = server("one", queue_s=HistogramView(bounds=[1.0, 2.0], counts=[100, 10, 0]))
    assert cluster_totals([now], [then]).latencies["queued"].p50 == 1.5
    assert cluster_totals([then], [then]).latencies["queued"].p50 == 0.5


def test_a_frame_shows_the_longest_jobs_first_and_marks_the_late_ones() -> None:
    one = server("one", running=[running("c/1", 1_000), running("c/2", 90_000, 60_000)])
    two = server("two", running=[running("d/7", 30_000, 60_000)], store_up=False)
    lines = drawn([one, two]).splitlines()
    jobs = [line.split()[0] for line in lines if line.startswith(("c/", "d/"))]
    assert jobs == ["c/2", "d/7", "c/1"]
    [late] = [line for line in lines if " !" in line]
    assert late.startswith("c/2")
    assert any(line.startswith("two") and "away" in line for line in lines)


def test_a_frame_shows_repairs_by_rule_and_their_outcome() -> None:
    repair = RepairCount(rules="night", rule="2", exlet="try-again", outcome="recovered", repairs=4)
    assert any("night#2 try-again recovered" in line for line in drawn([server("one", repairs=[repair])]).splitlines())


def test_what_a_server_says_cannot_steer_the_terminal() -> None:
    assert "\x1b" not in drawn([server("one\x1b[2J", running=[running("c/\x1b]0;x\x07", 5)])])


@pytest.mark.full
def test_one_frame_and_its_numbers_come_from_a_real_server(shell: Shell) -> None:  # JS-8
    shell.environment["MENDFLOW_SERVER"] = served(shell, "--jobs", "2")
    shell.write("hello.yaml", HELLO)
    shell.ok("start", "hello.yaml")
    shell.ok("watch", "last", "--quiet")
    [numbers] = shell.json("admin", "top")
    assert numbers["jobs_ended"] == {"completed": 1, "failed": 0}
    assert numbers["store"] == "sqlite"
    assert sum(numbers["start_s"]["counts"]) == sum(numbers["known_s"]["counts"]) == 1
    told = shell.ok("admin", "top", "--once")
    assert "could run → started" in told
    assert "free slots" in told


@contextmanager
def terminal(shell: Shell, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A command with a terminal of its own."""
    outer, inner = pty.openpty()
    termios.tcsetwinsize(inner, (40, 120))
    process = subprocess.Popen(
        [sys.executable, "-m", "mendflow", *words],
        cwd=shell.folder,
        env={**shell.environment, "TERM": "xterm"},
        stdin=inner,
        stdout=inner,
        stderr=inner,
        start_new_session=True,
    )
    os.close(inner)
    try:
        yield process, outer
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(outer)


def shown(outer: int, wanted: bytes) -> bytes:
    seen, give_up_at = b"", time.monotonic() + PATIENCE_S
    while wanted not in seen:
        assert time.monotonic() < give_up_at, seen
        if select.select([outer], [], [], 1.0)[0]:
            seen += os.read(outer, 65_536)
    return seen


@pytest.mark.full
def test_in_a_terminal_it_is_redrawn_until_somebody_presses_q(shell: Shell) -> None:
    shell.environment["MENDFLOW_SERVER"] = served(shell)
    with terminal(shell, "admin", "top", "--interval", "0.2") as (process, outer):
        shown(outer, b"open alerts")
        shown(outer, b"open alerts")
        os.write(outer, b"q")
        shown(outer, b"\x1b[?1049l")  # the screen that was there before is back
        assert process.wait(PATIENCE_S) == 0
