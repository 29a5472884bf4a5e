"""`python -m mendflow.sim.chaos --seeds 1000`: runs many seeds on all processors; prints each that violates an
invariant, with the command that repeats it."""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from mendflow.sim.parallel import run_parallel
from mendflow.sim.world import RunVerdict, Scene, play


def scenes(options: argparse.Namespace) -> list[Scene]:
    return [
        Scene(
            seed=seed,
            servers=options.servers,
            pilots=options.pilots,
            jobs=options.jobs,
            long_s=options.long_s,
            lease_ms=options.lease_ms,
            fault_period_s=options.storm_s,
            faults=options.faults,
            recovery=options.recovery,
        )
        for seed in range(options.start, options.start + options.seeds)
    ]


def repeat(scene: Scene) -> str:
    return (
        f"python -m mendflow.sim.chaos --start {scene.seed} --seeds 1 --servers {scene.servers} --pilots {scene.pilots}"
        f" --jobs {scene.jobs} --long-s {scene.long_s:g} --lease-ms {scene.lease_ms} --storm-s {scene.fault_period_s:g}"
        f" --faults {scene.faults}"
        f"{_recovery_option(scene.recovery)} --story"
    )


def _recovery_option(recovery: bool | None) -> str:
    return "" if recovery is None else " --recovery" if recovery else " --no-recovery"


class ChaosSummary:
    def __init__(self, lease_ms: int) -> None:
        self._lease_s = lease_ms / 1000
        self.runs = 0
        self.failed: list[int] = []
        self._counts: Counter[str] = Counter()
        self._gap_s = self._seconds = self._settle_s = 0.0

    def add(self, verdict: RunVerdict) -> None:
        self.runs += 1
        self._counts.update(verdict.counts)
        self._gap_s = max([self._gap_s, *verdict.gaps_s])
        self._seconds += verdict.seconds
        self._settle_s = max(self._settle_s, verdict.settle_s)
        if verdict.violations:
            self.failed.append(verdict.seed)

    def lines(self) -> Iterator[str]:
        for what, number in sorted(self._counts.items()):
            yield f"{number:>9}  {what}"
        hours = self._seconds / 3600
        yield f"longest from the end of the faults to the end of all: {self._settle_s / self._lease_s:.2f} leases"
        yield f"longest from the violent end of an attempt to the next one: {self._gap_s / self._lease_s:.2f} leases"
        yield f"{self.runs} seeds, {hours:.1f} hours of virtual time, {len(self.failed)} of them violated an invariant"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m mendflow.sim.chaos", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--start", type=int, default=1, help="the first seed")
    parser.add_argument("--servers", type=int, default=Scene(seed=0).servers)
    parser.add_argument("--pilots", type=int, default=Scene(seed=0).pilots)
    parser.add_argument("--jobs", type=int, default=Scene(seed=0).jobs)
    parser.add_argument("--long-s", type=float, default=Scene(seed=0).long_s, help="how long the longest jobs take")
    parser.add_argument("--lease-ms", type=int, default=Scene(seed=0).lease_ms)
    parser.add_argument("--storm-s", type=float, default=Scene(seed=0).fault_period_s)
    parser.add_argument("--faults", type=int, default=-1, help="how many in each run (default: drawn)")
    recovery = argparse.BooleanOptionalAction
    parser.add_argument(
        "--recovery", action=recovery, help="ask the default rules when something fails (default: drawn)"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--story", action="store_true", help="print everything that happened")
    options = parser.parse_args(arguments)
    wanted = scenes(options)
    summary = ChaosSummary(options.lease_ms)
    by_seed = {scene.seed: scene for scene in wanted}
    runs = (
        (play(scene, story=True) for scene in wanted)
        if options.story
        else run_parallel(play, wanted, options.processes, chunk=5)
    )
    for verdict in runs:
        summary.add(verdict)
        for line in verdict.story:
            print(line)
        for law in verdict.violations[:5]:
            print(f"seed {verdict.seed}: {law}")
        if verdict.violations:
            print(f"seed {verdict.seed}: repeat it with: {repeat(by_seed[verdict.seed])}", flush=True)
    for line in summary.lines():
        print(line)
    return 1 if summary.failed else 0


if __name__ == "__main__":
    sys.exit(main())
