"""What the paper does not say, said otherwise: which claims then still hold."""

from collections.abc import Callable
from typing import Final

import msgspec

from mendflow.sim.grid.scene import MB
from mendflow.sim.paper.claims import CLAIMS
from mendflow.sim.paper.claims.judging import Results, judge
from mendflow.sim.paper.experiments import needed, run_all
from mendflow.sim.paper.figures import DRAWN
from mendflow.sim.paper.settings import PARAMETERS, Parameters

SEEDS: Final = range(1, 4)


def _with(**changes: object) -> Parameters:
    return msgspec.structs.replace(PARAMETERS, **changes)


def _grid(factor: float) -> Parameters:
    own = PARAMETERS
    times = {"submit_s": own.submit_s, "queue_s": own.queue_s, "notify_s": own.notify_s}
    return _with(**{name: (mean * factor, spread * factor) for name, (mean, spread) in times.items()})


VARIANTS: Final[dict[str, Parameters]] = {
    "jobs of 5 minutes": _with(job_s=(300.0, 30.0)),
    "jobs of 30 minutes": _with(job_s=(1800.0, 180.0)),
    "a delay for every 250 kB": _with(chunk_bytes=MB // 4),
    "a delay for every 4 MB": _with(chunk_bytes=4 * MB),
    "a storage element of 10 MB/s": _with(bytes_per_s=10.0 * MB),
    "a storage element of 100 MB/s": _with(bytes_per_s=100.0 * MB),
    "disks of 40 MB/s": _with(disk_bytes_per_s=40.0 * MB),
    "disks of 500 MB/s": _with(disk_bytes_per_s=500.0 * MB),
    "2 pilots a host": _with(pilots_a_host=2),
    "8 pilots a host": _with(pilots_a_host=8),
    "a grid twice as quick": _grid(0.5),
    "a grid half as quick": _grid(2.0),
    "failed jobs back after 5 s": _with(retry_wait_s=5.0),
    "failed jobs back after 5 minutes": _with(retry_wait_s=300.0),
}


def broken_by_variants(*, processes: int, tell: Callable[[str], None]) -> dict[str, list[tuple[str, str]]]:
    """For each variant the claims that do not hold, and what is seen instead."""
    found = {}
    for name, parameters in VARIANTS.items():
        samples = run_all(needed(DRAWN), SEEDS, processes=processes, parameters=parameters)
        found[name] = [(each.id, each.seen) for each in judge(CLAIMS, Results(samples)) if not each.holds]
        tell(f"{name}: {', '.join(id for id, _ in found[name]) or 'all hold'}")
    return found
