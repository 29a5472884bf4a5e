"""What the paper varies, what it fixes, and what it does not say.

What it varies makes a `Setup`: a workflow, a condition of the storage element, a caching scheme, a way of submission.
What it does not say is in `Parameters`, each with the reason for its value; docs/understand/experiments.md tells what
changes with them."""

from typing import Final, Literal, NamedTuple

import msgspec

from experiments.paper.workflows import RETRIES_MAX
from mendflow.sim.grid.scene import GB, MB, BatchScene, ElementScene, GridScene, SiteScene, Spread

SubmissionName = Literal["direct", "running", "demand"]


class StorageCondition(NamedTuple):
    delay: float
    failure: float


class Scheme(NamedTuple):
    caches: bool
    share: Literal["none", "host", "site"]
    wait_for_data: bool


CONDITIONS: Final[dict[str, StorageCondition]] = {
    "d1f1": StorageCondition(0.01, 0.0),
    "d2f2": StorageCondition(0.15, 0.03),
    "d3f1": StorageCondition(0.50, 0.0),
    "d3f3": StorageCondition(0.50, 0.1),
}

SCHEMES: Final[dict[str, Scheme]] = {
    "none": Scheme(False, "none", False),
    "C1": Scheme(True, "host", False),
    "C2": Scheme(True, "none", False),
    "C2w": Scheme(True, "none", True),
    "C3": Scheme(True, "host", True),
    "global": Scheme(True, "site", True),
}
"""The paper's: none, cache-per-host (C1), single-pilot-cache (C2), cache-per-host with waitForData (C3). It also speaks
of the single-pilot-cache with waitForData (C2w), and of a global cache that it does not have."""

SUBMISSIONS: Final[dict[SubmissionName, str]] = {
    "direct": "direct (noTQ)",
    "running": "pilots already running",
    "demand": "pilots on demand",
}


class Setup(NamedTuple):
    """One bar of a figure."""

    workflow: str
    condition: str
    scheme: str
    submission: SubmissionName = "running"


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """The paper gives the sizes of workflows, files, caches, and the number of pilots. The rest is chosen."""

    file_bytes: int = 700 * MB
    pilots: int = 120
    cache_bytes: int = 10 * GB
    threshold_bytes: int = GB
    pilots_a_host: int = 4
    """As on the machines of the paper's own test bed, "each of which is capable of running four jobs in parallel"."""
    job_s: Spread = (600.0, 60.0)
    """Ten minutes of computing, give or take one: about as long as reading and writing under the worst condition."""
    bytes_per_s: float = 50 * MB
    """Of the storage element to one job: half of the gigabit line that a worker node of 2010 had."""
    chunk_bytes: int = MB
    """The delay is borne for each of these: a job reads a file in pieces, and a megabyte is a usual buffer."""
    spread: float = 0.25
    disk_bytes_per_s: float = 80 * MB
    """Of the one disk of a worker node of 2010, from which caches are read."""
    submit_s: Spread = (60.0, 20.0)
    queue_s: Spread = (240.0, 80.0)
    """Together the "almost five minutes (on average)" from submission to start that the paper cites for such a grid."""
    notify_s: Spread = (300.0, 100.0)
    """Until the end of a job is noticed: as long again, for states of jobs are collected every few minutes."""
    retry_wait_s: float = 30.0
    """From a failure until the job is in the queue again; twice as long for each further one of the same job."""
    idle_exit_s: float = 86_400.0
    """ "We have assumed that a pilot job can run for an unlimited time": none leaves before its workflow is over."""
    lease_s: float = 1200.0
    """No pilot is lost here, so leases may be long."""
    hold_s: float = 60.0
    """Idle pilots ask anew every minute where it matters who of them is answered first: where caches are used and jobs
    wait for nobody. Whoever has waited longest is, so it is chance who that is."""
    arrive_s: float = 60.0
    """Running pilots have come one by one before the workflow is started, so that they do not all ask at once."""


PARAMETERS: Final = Parameters()


def scene_of(setup: Setup, seed: int, parameters: Parameters = PARAMETERS) -> GridScene:
    """The grid in which a setup is played. Every seed is another grid, the same for all setups that can share it."""
    scheme, own = SCHEMES[setup.scheme], parameters
    demand = setup.submission == "demand"
    site = SiteScene(
        name="ciemat",
        hosts=-(-own.pilots // own.pilots_a_host),
        pilots_a_host=own.pilots_a_host,
        running=own.pilots if setup.submission == "running" else 0,
        arrive_s=own.arrive_s,
        max_pilots=own.pilots if demand else 0,
        idle_exit_s=own.idle_exit_s,
        element=_element(CONDITIONS[setup.condition], own),
        batch=BatchScene(submit_s=own.submit_s, queue_s=own.queue_s, notify_s=own.notify_s),
        share=scheme.share,
        caches=scheme.caches,
        cache_bytes=own.cache_bytes,
        threshold_bytes=own.threshold_bytes,
        disk_bytes_per_s=own.disk_bytes_per_s,
    )
    return GridScene(
        seed=seed,
        sites=(site,),
        submission="direct" if setup.submission == "direct" else "pilots",
        wait_for_data=scheme.wait_for_data,
        losses_max=RETRIES_MAX,
        lease_ms=round(own.lease_s * 1000),
        hold_s=own.hold_s if scheme.caches and not scheme.wait_for_data else 0.0,
    )


def _element(condition: StorageCondition, own: Parameters) -> ElementScene:
    return ElementScene(
        delay=condition.delay,
        failure=condition.failure,
        bytes_per_s=own.bytes_per_s,
        chunk_bytes=own.chunk_bytes,
        spread=own.spread,
    )
