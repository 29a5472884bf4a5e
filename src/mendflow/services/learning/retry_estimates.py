"""How likely the same again succeeds after a failure, from the history of its cause."""

from typing import Final

from mendflow.core.learning.group_statistics import GroupStatistics, RetryEstimate, estimate_retry, merge_groups
from mendflow.core.model.ids import Instant
from mendflow.core.model.repair import ExceptionType
from mendflow.services.base.contracts import Clock
from mendflow.services.learning.counting import FailureCounter
from mendflow.services.learning.statistics_store import StatisticsStore
from mendflow.services.recovery.failures import group_id

KEPT_MS: Final = 30_000
CAUSES_MAX: Final = 2_000


class RetryEstimator:
    """Reads the counts of a cause when they are needed, keeps them for a while, and adds what this server has counted
    since."""

    def __init__(self, statistics: StatisticsStore, counter: FailureCounter, clock: Clock) -> None:
        self._statistics = statistics
        self._counter = counter
        self._clock = clock
        self._known: dict[str, tuple[Instant, GroupStatistics | None]] = {}

    async def retry_estimate(self, flow: str, cause: str) -> RetryEstimate:
        id = group_id(ExceptionType.ABORT, cause)
        read_at, known = self._known.get(id, (0, None))
        if self._clock.now() - read_at >= KEPT_MS:
            known = await self._statistics.group(id)
            if len(self._known) >= CAUSES_MAX:
                self._known.clear()
            self._known[id] = (self._clock.now(), known)
        new = self._counter.groups.get(id)
        if new is None or known is None:
            return estimate_retry(known or new, flow)
        together = GroupStatistics(id=id, type=known.type, signature=known.signature)
        for part in (known, new):
            merge_groups(together, GroupStatistics(id=id, type=part.type, signature="", again=part.again))
        return estimate_retry(together, flow)
