"""What simulated jobs do: how long each computes, and which files it makes."""

from collections.abc import Mapping
from random import Random
from typing import Protocol

import msgspec

from mendflow.core.model.faults import Fault
from mendflow.core.model.jobs import JobSpec
from mendflow.core.model.values import Value


class SimulatedWork(msgspec.Struct, frozen=True, kw_only=True):
    """What a job does once its inputs are there: it computes for so long, then has made these files (bytes by the names
    of its `files`) and these outputs, or ends with a fault."""

    seconds: float
    files: Mapping[str, int] = {}
    outputs: Value = None
    fault: Fault | None = None


class JobModel(Protocol):
    def of(self, spec: JobSpec, chance: Random) -> SimulatedWork:
        """What this job does; `chance` belongs to this attempt, so that no other draws change it."""
        ...


class SteadyJobs:
    """All jobs have the same distribution of run times, and all files the same size."""

    def __init__(self, seconds: float, spread_s: float = 0.0, *, file_bytes: int = 0) -> None:
        self._seconds = seconds
        self._spread_s = spread_s
        self._file_bytes = file_bytes

    def of(self, spec: JobSpec, chance: Random) -> SimulatedWork:
        seconds = max(0.0, chance.gauss(self._seconds, self._spread_s)) if self._spread_s else self._seconds
        return SimulatedWork(seconds=seconds, files=dict.fromkeys(spec.files, self._file_bytes))
