"""Who holds which attempt, and until when.

A pilot renews all its attempts at once, by naming them in each exchange; an attempt that it does not name is not
renewed and expires. The server counts every lease from when it answers, by its own clock, and the pilot from when it
asked, by its own: so the lease ends first for the pilot, however the two clocks differ. The server may always extend a
lease, but never shorten it; that is why every attempt gets a full new lease when a server restarts."""

from collections.abc import Iterable, Sequence

import msgspec

from mendflow.core.model.ids import Instant, JobId, PilotId
from mendflow.core.model.jobs import Job, JobState
from mendflow.core.model.sync import AttemptRef, AttemptReport, AttemptStatus

NEVER: Instant = 1 << 62


class AttemptLease(msgspec.Struct):
    """An attempt that a pilot holds. Each exchange that names it extends `until`, unless it is `ending`: then the pilot
    is told that it has lost the attempt, and nobody else gets the job before the lease ends. It is `inherited` while
    only another server, or an earlier life of this one, has promised it."""

    fence: int
    until: Instant
    ending: bool = False
    inherited: bool = False


class PilotLease(msgspec.Struct, kw_only=True):
    """Everything that one pilot holds. At `until` it counts as gone if it is not heard again."""

    pilot: PilotId
    until: Instant
    attempts: dict[JobId, AttemptLease] = {}


class ExpiredLease(msgspec.Struct, frozen=True):
    """An attempt whose lease has ended."""

    pilot: PilotId
    job: JobId
    fence: int


class Leases:
    """The leases of all pilots. It mirrors the documents of running jobs.

    Renewals only extend. So after a scan of all leases there is a known moment before which nothing expires, and
    until then a check is free, however many pilots there are: while all are heard in time, there is about one scan
    per lease."""

    def __init__(self, lease_ms: int) -> None:
        self.lease_ms = lease_ms
        self._pilots: dict[PilotId, PilotLease] = {}
        self._none_over_before: Instant = NEVER  # no attempt's lease ends earlier
        self._none_gone_before: Instant = NEVER  # nor does a pilot's

    def restore(self, jobs: Iterable[Job], *, now: Instant) -> None:
        """After a restart: every running attempt gets a full new lease."""
        for job in jobs:
            if job.state is JobState.RUNNING:
                assert job.pilot is not None
                self.grant(job.pilot, job.id, job.fence, now=now)

    def touch(self, pilot: PilotId, *, now: Instant) -> PilotLease:
        """The pilot was heard: it lives for another lease."""
        lease = self._pilots.get(pilot)
        if lease is None:
            lease = self._pilots[pilot] = PilotLease(pilot=pilot, until=now + self.lease_ms)
            self._none_gone_before = min(self._none_gone_before, lease.until)
        elif lease.until < now + self.lease_ms:
            lease.until = now + self.lease_ms
        return lease

    def grant(self, pilot: PilotId, job: JobId, fence: int, *, now: Instant, inherited: bool = False) -> None:
        """The pilot holds the attempt for a lease from `now`. That may be in the past: a server that takes over
        another's cases knows when that one can have promised for the last time."""
        lease = self.touch(pilot, now=now)
        until = now + self.lease_ms
        self._none_over_before = min(self._none_over_before, until)
        lease.attempts[job] = AttemptLease(fence, until, inherited=inherited)

    def renew(
        self, pilot: PilotId, running: Sequence[AttemptStatus | AttemptReport], *, now: Instant
    ) -> list[AttemptRef]:
        """Renew what the pilot names and holds. Returns what it names and does not hold: lost to it."""
        attempts = self.touch(pilot, now=now).attempts
        until = now + self.lease_ms
        lost: list[AttemptRef] = []
        for beat in running:
            holding = attempts.get(beat.job)
            if holding is not None and holding.fence == beat.fence and not holding.ending:
                holding.until, holding.inherited = until, False
            else:
                lost.append(AttemptRef(beat.job, beat.fence))
        return lost

    def drop(self, pilot: PilotId, job: JobId) -> None:
        """The attempt is over: reported, requeued or cancelled."""
        lease = self._pilots.get(pilot)
        if lease is not None:
            lease.attempts.pop(job, None)

    def end(self, pilot: PilotId, job: JobId) -> None:
        """Stop renewing this attempt: its lease expires."""
        lease = self._pilots.get(pilot)
        if lease is not None and (holding := lease.attempts.get(job)) is not None:
            holding.ending = True

    def ending(self, pilot: PilotId, job: JobId) -> bool:
        lease = self._pilots.get(pilot)
        holding = lease.attempts.get(job) if lease is not None else None
        return holding is not None and holding.ending

    def resume_renewal(self, pilot: PilotId) -> None:
        """The pilot has ended everything that it had: nothing needs to expire."""
        if (lease := self._pilots.get(pilot)) is not None:
            for holding in lease.attempts.values():
                holding.ending = False

    def leave(self, pilot: PilotId) -> None:
        """The pilot has deregistered and holds nothing."""
        lease = self._pilots.pop(pilot, None)
        assert lease is None or not lease.attempts, f"pilot {pilot} left while it held {list(lease.attempts)}"

    def expired_attempts(self, *, now: Instant) -> list[ExpiredLease]:
        """Remove every attempt whose lease has ended. Its job must be requeued."""
        if now < self._none_over_before:
            return []
        over: list[ExpiredLease] = []
        self._none_over_before = NEVER
        for lease in self._pilots.values():
            for job, holding in list(lease.attempts.items()):
                if holding.until <= now:
                    over.append(ExpiredLease(lease.pilot, job, lease.attempts.pop(job).fence))
                elif holding.until < self._none_over_before:
                    self._none_over_before = holding.until
        return over

    def forget_silent(self, *, now: Instant) -> list[PilotId]:
        """Remove every pilot that was silent for a whole lease and holds nothing."""
        if now < self._none_gone_before:
            return []
        silent = [lease.pilot for lease in self._pilots.values() if lease.until <= now and not lease.attempts]
        for pilot in silent:
            del self._pilots[pilot]
        self._none_gone_before = min((lease.until for lease in self._pilots.values()), default=NEVER)
        return silent

    def inherits(self, pilot: PilotId) -> bool:
        """Whether the pilot holds something by an inherited promise."""
        lease = self._pilots.get(pilot)
        return lease is not None and any(holding.inherited for holding in lease.attempts.values())

    def inherited(self, *, now: Instant) -> dict[JobId, int]:
        """How long inherited promises last, by job."""
        return {
            job: max(0, holding.until - now)
            for lease in self._pilots.values()
            for job, holding in lease.attempts.items()
            if holding.inherited
        }

    def lease_of(self, pilot: PilotId) -> PilotLease | None:
        return self._pilots.get(pilot)
