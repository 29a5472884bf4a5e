"""Who holds an attempt, as the leases say."""

from mendflow.core.model.ids import JobId, PilotId
from mendflow.core.scheduling.leases import Leases


def is_holder(leases: Leases, pilot: PilotId, job: JobId, fence: int) -> bool:
    """Whether this pilot holds this very attempt."""
    lease = leases.lease_of(pilot)
    held = lease.attempts.get(job) if lease is not None else None
    return held is not None and held.fence == fence
