"""The results of a simulation: each attempt with its times and the sources of its files, and statistics."""

from collections.abc import Iterable
from itertools import groupby

import msgspec

from mendflow.core.model.ids import item_name
from mendflow.core.model.principals import DEFAULT_PROJECT


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt. Times are seconds since the start. `own` files came from the pilot's cache, `shared` from another
    pilot's, `fetched` from a storage element."""

    job: str
    item: str
    case: str
    site: str
    host: str
    pilot: str
    attempt: int
    granted_s: float
    begun_s: float  # when it started to compute, or failed before
    ended_s: float
    stage_in_s: float = 0.0
    run_s: float = 0.0
    stage_out_s: float = 0.0
    well: bool = True
    fault: str = ""
    own_files: int = 0
    shared_files: int = 0
    fetched_files: int = 0
    own_bytes: int = 0
    shared_bytes: int = 0
    fetched_bytes: int = 0
    project: str = DEFAULT_PROJECT
    user: str = ""

    @property
    def step(self) -> str:
        """The name of its job in the flow, without loop iterations."""
        return item_name(self.item)


class CaseResult(msgspec.Struct, frozen=True, kw_only=True):
    case: str
    flow: str
    status: str
    started_s: float
    turnaround_s: float
    fault: str = ""


class GridResult(msgspec.Struct, frozen=True, kw_only=True):
    """`status` is completed if every case is, otherwise that of the first that is not."""

    status: str
    turnaround_s: float
    cases: list[CaseResult]
    records: list[JobRecord]
    pilots_submitted: int = 0
    steps: int = 0

    @property
    def hit_ratio(self) -> float:
        """The share of inputs that came from a cache. Failed attempts count for what they had fetched."""
        hits = sum(record.own_files + record.shared_files for record in self.records)
        return _part(hits, hits + sum(record.fetched_files for record in self.records))

    @property
    def byte_hit_ratio(self) -> float:
        hits = sum(record.own_bytes + record.shared_bytes for record in self.records)
        return _part(hits, hits + sum(record.fetched_bytes for record in self.records))

    @property
    def mean_stage_in_s(self) -> float:
        """Over the attempts that have inputs."""
        times = [each.stage_in_s for each in self.records if each.own_files + each.shared_files + each.fetched_files]
        return _part(sum(times), len(times))

    def running(self) -> list[tuple[float, int]]:
        """How many attempts were running, at each change."""
        return steps_of((record.granted_s, record.ended_s) for record in self.records)


def steps_of(spans: Iterable[tuple[float, float]]) -> list[tuple[float, int]]:
    changes = sorted(each for begin, end in spans for each in ((begin, 1), (end, -1)))
    count, steps = 0, [(0.0, 0)]
    for moment, together in groupby(changes, key=lambda change: change[0]):
        count += sum(change for _, change in together)
        steps.append((moment, count))
    return steps


def _part(some: float, of: float) -> float:
    return some / of if of else 0.0
