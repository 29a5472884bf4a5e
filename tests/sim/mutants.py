"""Broken builds of the product. Each takes away one thing that a law stands on; the simulated world must notice.

A mutant is applied for one test with `monkeypatch`. Where a protection is doubled, a mutant takes away both halves: one
of them alone would be no defect that anybody could see."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from mendflow.core.model.ids import Instant, PilotId
from mendflow.core.model.jobs import Job, Outcome
from mendflow.core.model.sync import AttemptRef, AttemptStatus
from mendflow.core.scheduling import job_events
from mendflow.core.scheduling import jobs as life
from mendflow.core.scheduling.leases import ExpiredLease, Leases
from mendflow.pilot.slot.lease import LeaseClock
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases import unstarted_cases as unbegun
from mendflow.services.cases.case_reader import CaseReader
from mendflow.services.cluster.inherited_promises import InheritedPromises
from mendflow.services.cluster.membership import ServerMembership
from mendflow.services.scheduling.pilot_records import GrantedAttempt
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.sim.fault_injection import WRITING
from mendflow.sim.world import Scene
from mendflow.stores.contract import Append, WriteConflict, WriteDone
from mendflow.stores.memory import MemoryStore

Patch = pytest.MonkeyPatch
Change = Callable[[Patch], None]
MUTANTS: dict[str, tuple[Change, Scene]] = {}
"""By what is wrong with them; and the scene at whose seed to begin, so that the search is short."""

USUAL = Scene(seed=1, recovery=False)
VIOLENT = Scene(seed=1, faults=40, recovery=False)
FEW_LONG_JOBS = Scene(seed=1, jobs=12, long_s=60.0, faults=20, recovery=False)
"""A server that has nothing to write is the last to notice that it is alone."""

SLEEPY_SERVERS = Scene(seed=1, jobs=40, faults=10, kinds=(WRITING,), recovery=False)
"""They fall asleep when they have decided, and others take over: what a fence is for."""

SLEEPY_PILOTS = Scene(
    seed=1,
    faults=30,
    kinds=("agent stopped", "pilot stopped", "cut between pilot and server", "bad lines"),
    recovery=False,
)
"""They come late with what they have to say, and hear late what they are told."""


def mutant(first_seed: int = 1, scene: Scene = USUAL) -> Callable[[Change], Change]:
    def add(change: Change) -> Change:
        MUTANTS[change.__name__.replace("_", " ")] = (change, msgspec.structs.replace(scene, seed=first_seed))
        return change

    return add


@mutant(first_seed=5, scene=VIOLENT)
def a_report_is_taken_whatever_its_fence(patch: Patch) -> None:
    judge = life.report

    def report(job: Job, pilot: PilotId, fence: int, outcome: Outcome, **more: Any) -> life.ReportVerdict:
        return judge(job, job.pilot or pilot, job.fence, outcome, **more)

    patch.setattr(life, "report", report)


@mutant(first_seed=104, scene=VIOLENT)
def a_report_is_taken_whatever_its_fence_if_the_pilot_holds_the_job(patch: Patch) -> None:
    judge = life.report

    def report(job: Job, pilot: PilotId, fence: int, outcome: Outcome, **more: Any) -> life.ReportVerdict:
        return judge(job, pilot, job.fence, outcome, **more)

    patch.setattr(life, "report", report)


@mutant()
def a_grant_does_not_raise_the_fence(patch: Patch) -> None:
    grant, evolve = life.grant, job_events.evolve

    def same(job: Job, *given: Any, **more: Any) -> list[job_events.JobEvent]:
        events = grant(job, *given, **more)
        return [msgspec.structs.replace(event, fence=max(1, job.fence)) for event in events]

    def unasserted(job: Job, event: job_events.JobEvent) -> None:
        if isinstance(event, job_events.AttemptGranted):
            job.fence = event.fence - 1
            job.history = [attempt for attempt in job.history if attempt.fence < event.fence]
        evolve(job, event)

    patch.setattr(life, "grant", same)
    patch.setattr(job_events, "evolve", unasserted)


@mutant(first_seed=7, scene=SLEEPY_PILOTS)
def attempts_are_renewed_that_the_pilot_does_not_name(patch: Patch) -> None:
    """And nobody takes them for given up, which would make that harmless."""
    renew = Leases.renew

    def all_of_them(
        self: Leases, pilot: PilotId, running: Sequence[AttemptStatus], *, now: Instant
    ) -> list[AttemptRef]:
        lost = renew(self, pilot, running, now=now)
        for holding in self.touch(pilot, now=now).attempts.values():
            holding.until = now + self.lease_ms
        return lost

    patch.setattr(Leases, "renew", all_of_them)
    patch.setattr(GrantedAttempt, "was_delivered", lambda held, request: False)


@mutant(first_seed=11)
def attempts_expire_at_half_their_lease(patch: Patch) -> None:
    expired = Leases.expired_attempts

    def early(self: Leases, *, now: Instant) -> list[ExpiredLease]:
        return expired(self, now=now + self.lease_ms // 2)

    patch.setattr(Leases, "expired_attempts", early)


@mutant(first_seed=13)
def attempts_never_expire(patch: Patch) -> None:
    patch.setattr(Leases, "expired_attempts", lambda self, *, now: [])


@mutant(scene=SLEEPY_SERVERS)
def a_journal_is_added_to_wherever_it_ends(patch: Patch) -> None:
    append = MemoryStore._append

    def anywhere(self: MemoryStore, write: Append) -> WriteDone | WriteConflict:
        length = len(self._streams.get(write.stream, ()))
        return append(self, msgspec.structs.replace(write, expected=length))

    patch.setattr(MemoryStore, "_append", anywhere)


@mutant()
def nothing_waits_for_the_ledger(patch: Patch) -> None:
    async def settled(self: Ledger) -> None: ...

    patch.setattr(Ledger, "settled", settled)


@mutant(scene=SLEEPY_SERVERS)
def the_old_home_of_a_case_is_not_fenced_out(patch: Patch) -> None:
    async def fence(self: CaseReader, live: object) -> None: ...

    patch.setattr(CaseReader, "_fence", fence)


@mutant()
def a_server_that_takes_over_does_not_wait_for_what_was_promised(patch: Patch) -> None:
    def long_ago(self: InheritedPromises, job: Job, scheduler: PilotScheduler) -> int:
        return scheduler.steady_ms_now()

    patch.setattr(InheritedPromises, "until", long_ago)


@mutant(scene=SLEEPY_SERVERS)
def a_home_is_let_go_before_anybody_knows_whether_its_case_began(patch: Patch) -> None:
    async def settle(*_: object) -> bool:
        return False

    patch.setattr(unbegun, "settle", settle)


@mutant(first_seed=72, scene=FEW_LONG_JOBS)
def a_server_promises_without_beats(patch: Patch) -> None:
    patch.setattr(ServerMembership, "may_promise", lambda self: self._registered)


@mutant(first_seed=3)
def a_server_that_starts_again_gives_nobody_a_fresh_term(patch: Patch) -> None:
    take_up = PilotScheduler._load_known

    async def forgetful(self: PilotScheduler, jobs: Any) -> Any:
        self.promised_until = lambda job: self.steady_ms_now()
        return await take_up(self, jobs)

    patch.setattr(PilotScheduler, "_load_known", forgetful)


@mutant(first_seed=71)
def a_slot_does_not_look_at_the_lease(patch: Patch) -> None:
    patch.setattr(LeaseClock, "is_over", lambda self, now: False)
    patch.setattr(LeaseClock, "stop_at", 2**50)


@mutant()
def a_loss_is_charged_to_the_job(patch: Patch) -> None:
    def charge(job: Job, end: str, own: bool) -> None:
        if end in ("lost", "failed"):
            job.failures += 1

    patch.setattr(job_events, "_charge", charge)
