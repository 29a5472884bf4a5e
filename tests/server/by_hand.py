"""A pilot in the test's hands, over HTTP."""

from mendflow.client import Client
from mendflow.core.model.faults import Fault
from mendflow.core.model.ids import PilotId
from mendflow.core.model.jobs import Measurements, Outcome
from mendflow.core.model.sync import Assignment, AttemptReport, AttemptStatus, Capacity, SyncAnswer, SyncRequest


class ByHand:
    """A pilot in the test's hands, whose clock goes an hour ahead."""

    AHEAD_MS = 3_600_000

    def __init__(self, client: Client, clock_ms: int) -> None:
        self.client = client
        self.serial = 0
        self.now_ms = clock_ms + self.AHEAD_MS

    async def sync(
        self, *, want: int = 0, running: tuple[AttemptStatus, ...] = (), reports: tuple[AttemptReport, ...] = ()
    ) -> SyncAnswer:
        self.serial += 1
        request = SyncRequest(
            pilot=PilotId("p-1"),
            serial=self.serial,
            host="here",
            site="north",
            capacity=Capacity(slots=4, cpus=4.0, memory_bytes=1 << 30, disk_bytes=1 << 30),
            want=want,
            running=list(running),
            reports=list(reports),
            heard=self.serial - 1,
            wait_ms=5_000 if want else 0,
            sent_at=self.now_ms,
        )
        return await self.client.sync(request)

    async def jobs(self, want: int) -> list[Assignment]:
        """Ask until so many jobs are given. A server that has none yet holds its answer for a while, and on a busy
        machine that may be too short; a pilot then asks again."""
        given: list[Assignment] = []
        while len(given) < want:
            given += (await self.sync(want=want - len(given))).jobs
        return given

    def outcome(self, fault: Fault | None) -> Outcome:
        measures = Measurements(started_at=self.now_ms - 2_500, ended_at=self.now_ms - 500, ran_ms=2_000)
        return Outcome(fault=fault, measures=measures)
