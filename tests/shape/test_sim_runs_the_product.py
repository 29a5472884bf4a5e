"""A simulator that decides for itself says nothing about the product. So every decision that an experiment is about is
seen to be made by the product's own code while a grid runs, and nothing below sim/ looks at what it is made from."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from mendflow.sim.grid.job_model import SteadyJobs
from mendflow.sim.grid.scene import GB, BatchScene, GridScene
from mendflow.sim.grid.world import play
from tests.shape.source import PACKAGE, Place, listed
from tests.sim.grid.chains import BAD, JOB_MODEL, chain, grid, many

DECISIONS = {
    "which job a pilot gets": "core/scheduling/queue.py:JobQueue.take",
    "which of them has its data there": "core/scheduling/data_match.py:DataMatch.take",
    "which is kept back for an idle pilot": "core/scheduling/data_wait.py:DataWait.should_defer",
    "what fits into a pilot": "core/scheduling/offer.py:FreeResources.fits",
    "whether an attempt is tried again": "core/scheduling/jobs.py:report",
    "what becomes of what a pilot left": "core/scheduling/jobs.py:cut_short",
    "who holds an attempt, and until when": "core/scheduling/leases.py:Leases.renew",
    "how many jobs a pilot asks for": "core/scheduling/prefetch.py:jobs_wanted",
    "how many pilots a site gets": "core/scheduling/provision.py:plan",
    "what was submitted, and is over": "core/scheduling/submissions.py:apply_observation",
    "what goes when a cache is full": "core/caching/space.py:CacheSpace.victims",
    "what a file is worth": "core/caching/policies.py:lru",
    "how large a cache is on its host": "core/caching/sizes.py:share_of_host",
    "what a server hears of a cache": "pilot/cache/changes.py:ChangeLog.since",
    "whom a pilot asks for a file": "pilot/cache/neighbours.py:NeighbourSelector.worth_asking",
    "who is whose neighbour": "services/scheduling/neighbours.py:NeighbourRegistry.of",
    "who has what a job reads": "services/scheduling/cache_records.py:CacheRegistry.holders",
    "what a pilot is answered": "services/scheduling/exchange.py:Exchange.sync",
    "what follows in a flow": "core/engine/evolve.py:evolve",
}

WORLDS: tuple[tuple[GridScene, bool], ...] = (
    (grid(share="site", hosts=4, element=BAD, retries=20, cache_bytes=2 * GB, threshold_bytes=GB), True),
    (grid(running=0, max_pilots=4, life_s=250.0, batch=BatchScene(queue_s=(60, 10))), False),
)


@pytest.fixture(scope="module")
def called() -> frozenset[str]:
    """The product's functions that run in a few small grids, as FILE:NAME."""
    seen: set[str] = set()
    root = f"{PACKAGE}/"

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(root):
            seen.add(f"{frame.f_code.co_filename.removeprefix(root)}:{frame.f_code.co_qualname}")

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        for scene, data in WORLDS:
            play(scene, chain(10) if data else many(12), JOB_MODEL if data else SteadyJobs(100))
    finally:
        sys.setprofile(before)
    return frozenset(seen)


@pytest.mark.parametrize("decision", DECISIONS)
def test_the_product_decides_in_a_simulated_grid(decision: str, called: frozenset[str]) -> None:  # PJ-10
    assert DECISIONS[decision] in called, f"{decision} is not decided by {DECISIONS[decision]} in a grid"


# What the decisions are made from

DECIDED_FROM = frozenset({"resources", "spent", "held_bytes", "promised_bytes", "none_before", "attempts", "until"})
"""What a job needs, how long a lease lasts, what a shelf holds: only the product has to look at these."""

MAY_LOOK = {
    "grid/direct.py": frozenset({"resources"}),  # there is no queue in direct submission, only the site a job names
}

TELL_OF_DECISIONS = (
    "match", "evict", "victim", "lru", "lfu", "replace_", "expire", "renew", "lease_over", "fits", "provision",
)  # fmt: skip


def sim_modules() -> list[Path]:
    return sorted(PACKAGE.joinpath("sim").rglob("*.py"))


def looks(path: Path, source: str) -> Iterator[Place]:
    """Where a module of the grid reads what only a decision is made from, or has a function named after one."""
    name = str(path.relative_to(PACKAGE / "sim"))
    for node in ast.walk(ast.parse(source)):
        read = node.attr if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) else ""
        if name.startswith("grid/") and read in DECIDED_FROM - MAY_LOOK.get(name, frozenset()):
            yield Place(path, getattr(node, "lineno", 0), f"looks at {read}, which the product decides from")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            words = node.name.lower().strip("_")
            if any(words.startswith(word) for word in TELL_OF_DECISIONS):
                yield Place(path, node.lineno, f"{node.name} sounds like a decision of the product")


def test_nothing_below_sim_decides_what_the_product_does() -> None:  # PJ-10
    found = [place for path in sim_modules() for place in looks(path, path.read_text())]
    assert not found, listed(found)


DECIDING = ("core/scheduling", "core/caching", "pilot/cache", "services/provisioning")


def defined(folder: Path) -> dict[str, Path]:
    """The classes and functions of the modules in a folder that others can import."""
    names: dict[str, Path] = {}
    for path in sorted(folder.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name[0] != "_":
                names[node.name] = path
    return names


def test_nothing_below_sim_is_named_like_what_decides_in_the_product() -> None:
    theirs = {name for folder in DECIDING for name in defined(PACKAGE / folder)}
    again = {name: path for name, path in defined(PACKAGE / "sim" / "grid").items() if name in theirs}
    assert not again, f"a second {again}"


def test_a_second_scheduler_would_be_found() -> None:
    source = "def matching(job, pilot):\n    return job.resources.cpus <= pilot.cpus\n"
    found = [place.finding for place in looks(PACKAGE / "sim" / "grid" / "scheduler.py", source)]
    assert found == [
        "matching sounds like a decision of the product",
        "looks at resources, which the product decides from",
    ]
