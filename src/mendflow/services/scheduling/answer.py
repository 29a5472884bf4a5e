"""Collects the answer to a pilot: verdicts, lost attempts, jobs and orders; of this server and of those that it asked
on the pilot's behalf."""

from mendflow.core.model.jobs import Resources
from mendflow.core.model.sync import (
    Assignment,
    AttemptOrder,
    AttemptRef,
    AttemptReport,
    LogRequest,
    SyncAnswer,
    SyncRequest,
)
from mendflow.services.scheduling.cache_records import CacheRegistry


class AnswerBuilder:
    """`foreign` are reports about jobs of other servers, not judged yet; `unclaimed` are attempts that no server has
    answered for yet; `has_remote` says that the pilot has attempts of other servers: then it holds more than this
    server knows."""

    __slots__ = (
        "accepted",
        "foreign",
        "has_remote",
        "jobs",
        "lease_ms",
        "logs",
        "lost",
        "orders",
        "refused",
        "unclaimed",
    )

    def __init__(self, lease_ms: int) -> None:
        self.lease_ms = lease_ms
        self.accepted: list[AttemptRef] = []
        self.refused: list[AttemptRef] = []
        self.lost: list[AttemptRef] = []
        self.unclaimed: list[AttemptRef] = []
        self.foreign: list[AttemptReport] = []
        self.jobs: list[Assignment] = []
        self.orders: list[AttemptOrder] = []
        self.logs: list[LogRequest] = []
        self.has_remote = False

    @property
    def has_news(self) -> bool:
        """Whether the pilot should get this answer at once."""
        return bool(self.jobs or self.orders or self.logs or self.accepted or self.refused or self.lost)

    def unjudged(self, request: SyncRequest) -> list[AttemptReport]:
        """Its reports that got no verdict so far."""
        if not request.reports:
            return []
        judged = {*self.accepted, *self.refused}
        return [each for each in request.reports if AttemptRef(each.job, each.fence) not in judged]

    def add(self, answer: SyncAnswer) -> None:
        """Merge the answer of another server to the same request. An attempt stays unclaimed only if no server knows
        it."""
        self.lease_ms = min(self.lease_ms, answer.lease_ms)
        self.accepted += answer.accepted
        self.refused += answer.refused
        self.lost += answer.lost
        self.jobs += answer.jobs
        self.orders += answer.orders
        self.logs += answer.logs
        still_unclaimed = set(answer.unclaimed)
        self.unclaimed = [ref for ref in self.unclaimed if ref in still_unclaimed]
        if answer.accepted or answer.refused:
            judged = {*answer.accepted, *answer.refused}
            self.foreign = [each for each in self.foreign if AttemptRef(each.job, each.fence) not in judged]

    def resources_used(self, request: SyncRequest) -> list[Resources]:
        """The resources of the pilot that are in use, by its own report and by what this answer grants."""
        taken = request.taken
        assert taken is not None
        together = Resources(
            cpus=taken.cpus, memory_bytes=taken.memory_bytes, disk_bytes=taken.disk_bytes, gpus=taken.gpus
        )
        return [together, *(each.spec.resources for each in self.jobs)]

    def answer(
        self, request: SyncRequest, servers: list[str], caches: CacheRegistry, *, idle_exit_ms: int = 0
    ) -> SyncAnswer:
        neighbours, mark = caches.neighbours(request)
        return SyncAnswer(
            serial=request.serial,
            lease_ms=self.lease_ms,
            jobs=self.jobs,
            accepted=self.accepted,
            refused=self.refused,
            lost=self.lost,
            orders=self.orders,
            logs=self.logs,
            unclaimed=self.unclaimed,
            servers=servers,
            cache_seen=caches.known_version(request.pilot),
            neighbours=neighbours,
            neighbours_mark=mark,
            idle_exit_ms=idle_exit_ms,
            holders=caches.holders(request, self.jobs) if self.jobs else [],
        )
