"""Pilots that come and go on a real batch system. `python -m bench.batch_hour --system slurm --minutes 60 [--write]`.

A server keeps pilots at a site of a real Slurm or Grid Engine, while cases of jobs of 5 to 60 s arrive. Meanwhile
pilots are cancelled behind the server's back, all have a short wall time, and the batch system's controller is killed
and started again. Counted is every look that the server takes at the site, by how it ended, and what became of every
job: each holds a lock while it runs, and says when it starts and ends."""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import msgspec

from bench.page import ruled, write_section
from bench.run import ROOT, machine, tell
from mendflow.core.model.errors import RequestError
from mendflow.core.model.ids import CaseId
from mendflow.core.model.sites import BatchSettings, PilotSettings, Site
from mendflow.core.model.views import JobQuery
from mendflow.formats import load
from tests.e2e.conftest import World
from tests.servers import gridengine as gridengine_server
from tests.servers.gridengine import GridEngine
from tests.servers.slurm import Slurm

SystemName = Literal["slurm", "gridengine"]
SYSTEMS: dict[SystemName, str] = {"slurm": "Slurm", "gridengine": "Grid Engine"}
TITLE = "Pilots that come and go"
COLUMNS = ("counted", *SYSTEMS.values())

SITE = "farm"
PILOTS_MAX = 4
WALL_MS = 120_000
IDLE_MS = 10_000
CANCEL_S = (10.0, 40.0)
RESTART_S = (180.0, 420.0)
AWAY_S = (2.0, 25.0)
CASE_S = (15.0, 60.0)
DRAIN_S = 900.0
SAME_CODE = {"PYTHONPATH": str(ROOT / "src")}
"""Pilots run what the server runs."""

FLOW = """
name: ticks
inputs:
  jobs: {type: list}
  folder: {type: string}
jobs:
  tick:
    for-each: ${{ inputs.jobs }}
    run: |
      exec 9>>${{ inputs.folder }}/locks/${{ item.name }}
      flock -n 9 || echo ${{ item.name }} >> ${{ inputs.folder }}/twice
      echo "${{ item.name }} start" >> ${{ inputs.folder }}/lines
      sleep ${{ item.seconds }}
      echo "${{ item.name }} end" >> ${{ inputs.folder }}/lines
"""
"""Each holds a lock while it, or anything that it started, lives: who finds it taken runs at the same time."""


class BatchServer(Protocol):
    """A batch system as this program needs it."""

    def settings(self, folder: Path) -> BatchSettings: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def cancel_one(self, chance: random.Random) -> bool:
        """Cancel a pilot that runs; False if there is none."""
        ...

    def restart(self, away_s: float) -> None: ...


class SlurmServer:
    def __init__(self) -> None:
        self._slurm = Slurm()

    def start(self) -> None:
        self._slurm.start()

    def stop(self) -> None:
        self._slurm.stop()

    def settings(self, folder: Path) -> BatchSettings:
        environment = {"SLURM_CONF": self._slurm.environment["SLURM_CONF"], **SAME_CODE}
        return BatchSettings(kind="slurm", wall_ms=WALL_MS, folder=str(folder), environment=environment)

    def cancel_one(self, chance: random.Random) -> bool:
        running = [job.id for job in self._slurm.living() if job.state == "RUNNING"]
        if running:
            self._slurm.run("scancel", str(chance.choice(running)))
        return bool(running)

    def restart(self, away_s: float) -> None:
        self._slurm.kill_controller()
        time.sleep(away_s)
        self._slurm.start_controller()


class GridEngineServer:
    def __init__(self) -> None:
        self._engine = GridEngine(slots=12)

    def start(self) -> None:
        self._engine.start()

    def stop(self) -> None:
        self._engine.stop()

    def settings(self, folder: Path) -> BatchSettings:
        commands = str(gridengine_server.PROGRAMS)
        return BatchSettings(
            kind="gridengine",
            wall_ms=WALL_MS,
            folder=str(folder),
            environment={**self._engine.settings, **SAME_CODE},
            commands=commands,
        )

    def cancel_one(self, chance: random.Random) -> bool:
        lines = [line.split() for line in self._engine.run("qstat", "-s", "r").splitlines()[2:]]
        if lines:
            self._engine.run("qdel", chance.choice(lines)[0])
        return bool(lines)

    def restart(self, away_s: float) -> None:
        self._engine.kill_master()
        time.sleep(away_s)
        self._engine.start_master()


MADE: dict[SystemName, type[SlurmServer] | type[GridEngineServer]] = {
    "slurm": SlurmServer,
    "gridengine": GridEngineServer,
}


class HourResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was done and seen. `looks` are by how they ended; `ended` are pilots, by how they ended as the site saw
    it; `attempts` are by their end."""

    minutes: float
    cancelled: int
    restarts: int
    away_s: float
    looks: dict[str, int]
    errors_logged: int
    pilots: int
    ended: dict[str, int]
    jobs: int
    completed: int
    failed: int
    missing: int
    started: int
    at_once: int
    ends: int
    ended_again: int
    attempts: dict[str, int]

    @property
    def looked(self) -> int:
        return sum(self.looks.values())

    @property
    def dropped(self) -> int:
        return sum(self.looks.get(word, 0) for word in ("failed", "overtaken", "store-away", "cancelled"))


class _Due(NamedTuple):
    """When something happens next, by the clock of this program."""

    at: float

    def over(self) -> bool:
        return time.monotonic() >= self.at


class BatchHour:
    """One run. What happens when is of `seed`."""

    def __init__(self, server: BatchServer, folder: Path, seed: int) -> None:
        self._server, self._folder = server, folder
        self._chance = random.Random(seed)
        self._world = World(folder)
        self._cases: list[CaseId] = []
        self._jobs = self._cancelled = self._restarts = 0
        self._away_s = 0.0
        self._endings: dict[str, str] = {}
        self._pilots: set[str] = set()

    def run(self, minutes: float) -> HourResult:
        (self._folder / "locks").mkdir()
        try:
            self._world.start_server()
            self._world.wait_for_server()
            self._prepare()
            began = time.monotonic()
            self._go_on(began + minutes * 60)
            self._drain()
            return self._result((time.monotonic() - began) / 60)
        finally:
            with suppress(RequestError):
                self._world.client.remove_site(SITE, force=True)
            self._world.stop()

    def _prepare(self) -> None:
        path = self._folder / "ticks.yaml"
        path.write_text(FLOW)
        self._world.client.deploy(load(path))
        pilots = PilotSettings(idle_exit_ms=IDLE_MS, grace_ms=1_000)
        site = Site(
            name=SITE,
            min_pilots=1,
            min_idle=1,
            max_pilots=PILOTS_MAX,
            submissions_per_hour=10_000,
            failures_max=1_000,
            lost_ms=15_000,
            batch=self._server.settings(self._folder / SITE),
            pilots=pilots,
        )
        self._world.client.put_site(site)

    def _go_on(self, until: float) -> None:
        begin, cancel, restart = _Due(0), self._next(CANCEL_S), self._next((30.0, 60.0))
        while time.monotonic() < until:
            if begin.over():
                self._begin_case()
                begin = self._next(CASE_S)
            if cancel.over():
                with suppress(AssertionError):  # it has ended by itself meanwhile
                    self._cancelled += self._server.cancel_one(self._chance)
                cancel = self._next(CANCEL_S)
            if restart.over():
                self._restart(self._chance.uniform(*AWAY_S))
                restart = self._next(RESTART_S)
            self._observe()
            time.sleep(1)

    def _restart(self, away_s: float) -> None:
        self._restarts, self._away_s = self._restarts + 1, self._away_s + away_s
        try:
            self._server.restart(away_s)
        except AssertionError as error:  # it takes its time on a busy machine
            tell(f"the controller does not answer yet: {str(error)[:200]}")

    def _next(self, span: tuple[float, float]) -> _Due:
        return _Due(time.monotonic() + self._chance.uniform(*span))

    def _begin_case(self) -> None:
        count = self._chance.randint(1, 4)
        names = [f"j{self._jobs + number}" for number in range(count)]
        jobs = [{"name": name, "seconds": f"{self._chance.uniform(5, 60):.1f}"} for name in names]
        self._cases.append(self._world.client.start("ticks", {"jobs": jobs, "folder": str(self._folder)}).id)
        self._jobs += count

    def _observe(self) -> None:
        """The site remembers the last ends of pilots only."""
        view = self._world.client.site(SITE)
        self._pilots |= {each.name for each in view.submissions}
        self._endings |= {each.name: each.how for each in view.endings}

    def _drain(self) -> None:
        """Let the last cases end."""
        until = time.monotonic() + DRAIN_S
        while time.monotonic() < until:
            self._observe()
            if all(self._world.client.case(case).status != "running" for case in self._cases):
                return
            time.sleep(2)

    def _result(self, minutes: float) -> HourResult:
        stats = self._world.client.stats()[0]
        states = Counter[str]()
        attempts = Counter[str]()
        for case in self._cases:
            for job in self._world.client.jobs(JobQuery(case=case, limit=1000)):
                states[job.state] += 1
                attempts.update(attempt.end or "open" for attempt in job.history)
        path = self._folder / "lines"
        said = Counter(path.read_text().splitlines() if path.exists() else [])
        ends = {line.split()[0]: count for line, count in said.items() if line.endswith(" end")}
        twice = self._folder / "twice"
        return HourResult(
            minutes=minutes,
            cancelled=self._cancelled,
            restarts=self._restarts,
            away_s=self._away_s,
            looks={each.result: each.looks for each in stats.site_looks if each.site == SITE},
            errors_logged=(self._folder / "world.log").read_text(errors="replace").count("Traceback"),
            pilots=len(self._pilots | self._endings.keys()),
            ended=dict(Counter(self._endings.values())),
            jobs=self._jobs,
            completed=states["completed"],
            failed=states["failed"],
            missing=self._jobs - len(ends),
            started=sum(count for line, count in said.items() if line.endswith(" start")),
            at_once=len(twice.read_text().splitlines()) if twice.exists() else 0,
            ends=len(ends),
            ended_again=sum(count - 1 for count in ends.values()),
            attempts=dict(attempts),
        )


def measure(system: SystemName, minutes: float, seed: int, keep: Path | None) -> HourResult:
    server = MADE[system]()
    try:
        server.start()
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            return BatchHour(server, keep, seed).run(minutes)
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            return BatchHour(server, Path(folder), seed).run(minutes)
    finally:
        server.stop()


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {word}" for word, count in sorted(counts.items())) or "none"


ROWS: tuple[tuple[str, str], ...] = (
    ("minutes", "{0.minutes:.0f}"),
    ("pilots submitted", "{0.pilots}"),
    ("pilots cancelled behind its back", "{0.cancelled}"),
    ("controller killed and started again", "{0.restarts}, away {0.away_s:.0f} s"),
    ("looks at the site", "{0.looked}"),
    ("of these", "{looks}"),
    ("looks dropped", "{0.dropped}"),
    ("tracebacks in the server's log", "{0.errors_logged}"),
    ("how pilots ended", "{ended}"),
    ("jobs submitted", "{0.jobs}"),
    ("jobs completed", "{0.completed}"),
    ("jobs failed", "{0.failed}"),
    ("jobs without an end of their own", "{0.missing}"),
    ("starts of jobs", "{0.started}"),
    ("jobs that ran twice at once", "{0.at_once}"),
    ("ends beyond the first", "{0.ended_again}"),
    ("attempts", "{attempts}"),
)


def table(found: dict[SystemName, HourResult]) -> str:
    def cell(pattern: str, system: SystemName) -> str:
        if system not in found:
            return "not run"
        each = found[system]
        looks, ended, attempts = _counts(each.looks), _counts(each.ended), _counts(each.attempts)
        return pattern.format(each, looks=looks, ended=ended, attempts=attempts)

    rows = [(name, *(cell(pattern, system) for system in SYSTEMS)) for name, pattern in ROWS]
    return ruled(COLUMNS, rows)


def body(found: dict[SystemName, HourResult]) -> str:
    lines = [
        "`python -m bench.batch_hour --system slurm` and `--system gridengine`, each with `--minutes 60 --json FILE`,",
        "measure; `python -m bench.batch_hour --write FILE FILE` makes this section. A server keeps up to",
        f"{PILOTS_MAX} pilots on a real batch system on one machine, with a wall time of {WALL_MS // 1000} s, for jobs",
        "of 5 to 60 s. Pilots are cancelled behind its back, and the batch system's controller is killed and started",
        "again some seconds later. Looks that a batch system without a controller left `unanswered` are counted, not",
        "dropped: nothing is submitted until it answers. An attempt that was lost with its pilot is given",
        "to another one. *Ends beyond the first* are of jobs whose pilot was killed, as Grid Engine does, after their",
        "last line and before it could report: they ran again.",
        "",
        table(found),
        "",
        f"Machine: {machine()}.",
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.batch_hour", description="Pilots that come and go.")
    parser.add_argument("--system", choices=sorted(SYSTEMS), help="the batch system to measure")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was counted there")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where server and pilots work, and their logs stay")
    parser.add_argument("--write", nargs="*", type=Path, metavar="FILE", help="write the section from these files")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if options.write:
        write_section(TITLE, body(_read(options.write)))
        return 0
    if options.system is None:
        parser.error("say which batch system: --system slurm or --system gridengine")
    system: SystemName = options.system
    found = measure(system, options.minutes, options.seed, options.keep)
    tell(table({system: found}))
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode({system: found})) + os.linesep.encode())
    return 0


def _read(paths: Sequence[Path]) -> dict[SystemName, HourResult]:
    found: dict[SystemName, HourResult] = {}
    for path in paths:
        found |= msgspec.json.decode(path.read_bytes(), type=dict[SystemName, HourResult])
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
