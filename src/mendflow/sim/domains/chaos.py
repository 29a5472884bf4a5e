"""`python -m mendflow.sim.domains.chaos --seeds 1000`: runs many seeds of two and three domains on all processors;
prints each that violates a law, with the command that repeats it."""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence

from mendflow.sim.domains.world import DomainScene, play_domains
from mendflow.sim.parallel import run_parallel


def scene_of(seed: int, *, faults: int = -1, cuts: int = -1, troubles: int = -1) -> DomainScene:
    """Two or three domains, of one or two servers each, by the seed."""
    return DomainScene(
        seed=seed,
        domains=2 + seed % 2,
        servers=2 if seed % 5 == 0 else 1,
        faults=faults,
        cuts=cuts,
        troubles=troubles,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m mendflow.sim.domains.chaos", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--start", type=int, default=1, help="the first seed")
    parser.add_argument("--faults", type=int, default=-1, help="how many in each domain (default: drawn)")
    parser.add_argument("--cuts", type=int, default=-1, help="how many between domains (default: drawn)")
    parser.add_argument("--troubles", type=int, default=-1, help="of other kinds, of whole domains (default: drawn)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--story", action="store_true", help="print everything that happened")
    options = parser.parse_args(arguments)
    seeds = range(options.start, options.start + options.seeds)
    scenes = [scene_of(seed, faults=options.faults, cuts=options.cuts, troubles=options.troubles) for seed in seeds]
    runs = (
        (play_domains(scene, story=True) for scene in scenes)
        if options.story
        else run_parallel(play_domains, scenes, options.processes, chunk=2)
    )
    counts, failed, seconds, settle_s = Counter[str](), list[int](), 0.0, 0.0
    for verdict in runs:
        counts.update(verdict.counts)
        seconds, settle_s = seconds + verdict.seconds, max(settle_s, verdict.settle_s)
        for line in verdict.story:
            print(line)
        for law in verdict.violations[:5]:
            print(f"seed {verdict.seed}: {law}")
        if verdict.violations:
            failed.append(verdict.seed)
            again = f"python -m mendflow.sim.domains.chaos --start {verdict.seed} --seeds 1 --story"
            print(f"seed {verdict.seed}: repeat it with: {again}", flush=True)
    for what, number in sorted(counts.items()):
        print(f"{number:>9}  {what}")
    print(f"longest from the end of the faults to the end of all: {settle_s:.1f} s of virtual time")
    print(f"{len(scenes)} seeds, {seconds / 3600:.1f} hours of virtual time, {len(failed)} of them violated a law")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
