"""Learned run times: how long jobs of a name usually take; a small document for each, shared by all servers.

The end of a job only appends a number to a short list in memory. From time to time these are merged into the documents
by compare-and-set; a server that comes second merges again. The estimate is the median plus four times the median
deviation from it, so that a few jobs that hung or failed early change it little."""

from collections import deque
from typing import TYPE_CHECKING, Final

import msgspec

from mendflow.core.model.ids import Instant
from mendflow.core.model.jobs import Job, JobState
from mendflow.lazy import LazyModule
from mendflow.stores.contract import Put, Store, WriteDone

if TYPE_CHECKING:
    import statistics
else:
    statistics = LazyModule("statistics")

RUNTIME_KIND: Final = "runtime"
SAMPLES_MAX: Final = 64
SPREAD_FACTOR: Final = 4
NAMES_MAX: Final = 10_000
"""One server learns no more names than this: if there are more, something generates them."""

RuntimeKey = tuple[str, str]


class RuntimeStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """The latest durations of a flow's jobs of one name, and how many jobs there were in all."""

    flow: str
    name: str
    jobs: int = 0
    latest_ms: list[int] = []
    at: Instant = 0


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(RuntimeStatistics).decode


def estimate_ms(latest_ms: list[int]) -> int:
    """The usual upper bound for a job of this name."""
    middle = statistics.median(latest_ms)
    spread = statistics.median(abs(each - middle) for each in latest_ms)
    return int(middle + SPREAD_FACTOR * spread)


class RuntimeEstimator:
    def __init__(self, store: Store, *, learn_min: int) -> None:
        self._store = store
        self._learn_min = learn_min
        self._known: dict[RuntimeKey, RuntimeStatistics] = {}
        self._loaded: set[RuntimeKey] = set()
        self._new: dict[RuntimeKey, deque[int]] = {}
        self._counts: dict[RuntimeKey, int] = {}

    def note(self, flow: str, job: Job) -> None:
        """A job has completed."""
        measures = job.outcome.measures if job.outcome is not None else None
        if job.state is not JobState.COMPLETED or measures is None or not measures.ran_ms:
            return
        name = (flow, job.name)
        if name not in self._new and len(self._new) >= NAMES_MAX:
            return
        self._new.setdefault(name, deque(maxlen=SAMPLES_MAX)).append(measures.ran_ms)
        self._counts[name] = self._counts.get(name, 0) + 1

    async def expected_ms(self, flow: str, name: str) -> int:
        """The learned time for this name; 0 if there are too few jobs."""
        key = (flow, name)
        if key not in self._loaded:
            await self._read(key)
        known = self._known.get(key)
        return estimate_ms(known.latest_ms) if known is not None and known.jobs >= self._learn_min else 0

    async def merge(self, now: Instant) -> None:
        """Write the durations since the last time."""
        for name in list(self._new):
            if (latest := self._new.pop(name, None)) is None:
                continue  # another has taken it
            count = self._counts.pop(name)
            while not await self._merge(name, list(latest), count, now):
                pass

    async def _merge(self, name: RuntimeKey, latest_ms: list[int], jobs: int, now: Instant) -> bool:
        version, known = await self._read(name)
        merged = RuntimeStatistics(
            flow=name[0],
            name=name[1],
            jobs=known.jobs + jobs,
            latest_ms=[*known.latest_ms, *latest_ms][-SAMPLES_MAX:],
            at=now,
        )
        [result] = await self._store.write([Put(RUNTIME_KIND, f"{name[0]}/{name[1]}", _encode(merged), version)])
        if isinstance(result, WriteDone):
            self._known[name] = merged
        return isinstance(result, WriteDone)

    async def _read(self, name: RuntimeKey) -> tuple[int, RuntimeStatistics]:
        found = await self._store.get(RUNTIME_KIND, f"{name[0]}/{name[1]}")
        known = _decode(found.body) if found is not None else RuntimeStatistics(flow=name[0], name=name[1])
        self._loaded.add(name)
        if found is not None:
            self._known[name] = known
        return (found.version if found is not None else 0), known
