"""What the paper does not say, said otherwise: which claims then still hold."""

from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from experiments.paper.claims import CLAIMS
from experiments.paper.claims.judging import JudgedClaim, SampleSet, judge_claims
from experiments.paper.experiments import run_all, setups_needed
from experiments.paper.settings import PARAMETERS, Parameters
from mendflow.sim.grid.scene import MB

SEEDS: Final = (1, 2)


def _with(**changes: object) -> Parameters:
    return msgspec.structs.replace(PARAMETERS, **changes)


def _grid(factor: float) -> Parameters:
    own = PARAMETERS
    times = {"submit_s": own.submit_s, "queue_s": own.queue_s, "notify_s": own.notify_s}
    return _with(**{name: (mean * factor, spread * factor) for name, (mean, spread) in times.items()})


VARIANTS: Final[dict[str, tuple[tuple[int, ...], Parameters]]] = {
    "jobs of 5 minutes": ((7, 8, 9, 10, 11), _with(job_s=(300.0, 30.0))),
    "jobs of 30 minutes": ((7, 8, 9, 10, 11), _with(job_s=(1800.0, 180.0))),
    "a delay for every 250 kB": ((8, 9, 10, 11), _with(chunk_bytes=MB // 4)),
    "a delay for every 4 MB": ((8, 9, 10, 11), _with(chunk_bytes=4 * MB)),
    "a storage element of 10 MB/s": ((8, 9), _with(bytes_per_s=10.0 * MB)),
    "a storage element of 100 MB/s": ((8, 9), _with(bytes_per_s=100.0 * MB)),
    "disks of 40 MB/s": ((8, 9), _with(disk_bytes_per_s=40.0 * MB)),
    "disks of 500 MB/s": ((8, 9), _with(disk_bytes_per_s=500.0 * MB)),
    "2 pilots a host": ((10, 12), _with(pilots_a_host=2)),
    "8 pilots a host": ((10, 12), _with(pilots_a_host=8)),
    "a grid twice as quick": ((7,), _grid(0.5)),
    "a grid half as quick": ((7,), _grid(2.0)),
    "failed jobs back after 5 s": ((8, 9, 11), _with(retry_wait_s=5.0)),
    "failed jobs back after 5 minutes": ((8, 9, 11), _with(retry_wait_s=300.0)),
}
"""What is chosen otherwise, and the figures that it could make a difference to."""


class Variant(NamedTuple):
    """What became of the claims about `figures`: those that do not hold, each with what is seen instead."""

    figures: tuple[int, ...]
    broken: tuple[JudgedClaim, ...]


def played_variants(*, processes: int, tell: Callable[[str], None]) -> dict[str, Variant]:
    found = {}
    for name, (figures, parameters) in VARIANTS.items():
        samples = run_all(setups_needed(figures), SEEDS, processes=processes, parameters=parameters)
        about = [claim for claim in CLAIMS if claim.figure in figures]
        found[name] = Variant(
            figures, tuple(each for each in judge_claims(about, SampleSet(samples)) if not each.holds)
        )
        tell(f"{name}: {', '.join(each.id for each in found[name].broken) or 'all hold'}")
    return found
