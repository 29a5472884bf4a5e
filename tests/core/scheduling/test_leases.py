"""Who holds what, and until when."""

from mendflow.core.model.ids import CaseId, ItemId, JobId, PilotId
from mendflow.core.model.jobs import JobSpec, Measurements
from mendflow.core.model.sync import AttemptRef, AttemptStatus
from mendflow.core.scheduling import job_events, jobs
from mendflow.core.scheduling.leases import ExpiredLease, Leases
from tests.core.scheduling.holding import is_holder

P, Q = PilotId("p"), PilotId("q")
A, B = JobId("c/1"), JobId("c/2")


def beat(job: JobId, fence: int = 1) -> AttemptStatus:
    return AttemptStatus(job, fence, "running", Measurements())


def test_an_attempt_that_is_not_renewed_runs_out() -> None:  # JS-7
    leases = Leases(1000)
    leases.grant(P, A, 1, now=0)
    assert leases.expired_attempts(now=999) == [] and is_holder(leases, P, A, 1)
    assert leases.expired_attempts(now=1000) == [ExpiredLease(P, A, 1)]
    assert leases.expired_attempts(now=1000) == [] and not is_holder(leases, P, A, 1)


def test_a_pilot_renews_all_that_it_names_at_once() -> None:  # JS-7
    leases = Leases(1000)
    leases.grant(P, A, 1, now=0)
    leases.grant(P, B, 4, now=0)
    assert leases.renew(P, [beat(A), beat(B, 4)], now=900) == []
    assert leases.expired_attempts(now=1899) == []
    assert {each.job for each in leases.expired_attempts(now=1900)} == {A, B}


def test_an_attempt_that_its_pilot_does_not_name_is_not_renewed() -> None:
    leases = Leases(1000)
    leases.grant(P, A, 1, now=0)
    leases.grant(P, B, 1, now=0)
    leases.renew(P, [beat(A)], now=900)
    assert leases.expired_attempts(now=1000) == [ExpiredLease(P, B, 1)]


def test_what_a_pilot_names_and_does_not_hold_is_lost_to_it() -> None:  # JS-7
    leases = Leases(1000)
    leases.grant(P, A, 2, now=0)
    leases.grant(Q, B, 1, now=0)
    assert leases.renew(P, [beat(A, 1), beat(A, 2), beat(B, 1)], now=1) == [AttemptRef(A, 1), AttemptRef(B, 1)]
    assert is_holder(leases, P, A, 2) and is_holder(leases, Q, B, 1) and not is_holder(leases, P, B, 1)


def test_an_attempt_that_ran_out_cannot_be_renewed() -> None:  # JS-7
    leases = Leases(1000)
    leases.grant(P, A, 1, now=0)
    leases.expired_attempts(now=1000)
    assert leases.renew(P, [beat(A)], now=1001) == [AttemptRef(A, 1)]


def test_what_is_dropped_does_not_run_out() -> None:
    leases = Leases(1000)
    leases.grant(P, A, 1, now=0)
    leases.drop(P, A)
    leases.drop(Q, A)
    assert leases.expired_attempts(now=5000) == []


def test_after_a_start_every_running_attempt_gets_a_full_term() -> None:
    spec = JobSpec(item=ItemId("x"), command="true")
    running, waiting = (jobs.create(id, CaseId("c"), spec, now=0) for id in (A, B))
    for event in jobs.grant(running, P, now=0):
        job_events.evolve(running, event)
    leases = Leases(1000)
    leases.restore([running, waiting], now=50_000)
    assert is_holder(leases, P, A, 1) and not is_holder(leases, P, B, 1)
    assert leases.expired_attempts(now=50_999) == []
    assert leases.expired_attempts(now=51_000) == [ExpiredLease(P, A, 1)]


def test_a_silent_pilot_is_gone_when_it_holds_nothing_any_more() -> None:
    leases = Leases(1000)
    leases.touch(P, now=0)
    leases.grant(Q, A, 1, now=0)
    assert leases.forget_silent(now=999) == []
    assert leases.forget_silent(now=1000) == [P]
    leases.expired_attempts(now=1000)
    assert leases.forget_silent(now=1000) == [Q] and leases.lease_of(Q) is None


def test_a_pilot_that_leaves_is_forgotten_at_once() -> None:
    leases = Leases(1000)
    leases.touch(P, now=0)
    leases.leave(P)
    assert leases.lease_of(P) is None and leases.forget_silent(now=9999) == []


def test_a_term_that_began_in_the_past_ends_before_those_that_were_looked_at() -> None:
    leases = Leases(1000)
    leases.grant(P, A, 1, now=5000)
    assert leases.expired_attempts(now=5500) == []
    leases.grant(Q, B, 1, now=4600)  # as of one who takes over from another
    assert leases.expired_attempts(now=5600) == [ExpiredLease(Q, B, 1)]
    assert leases.expired_attempts(now=6000) == [ExpiredLease(P, A, 1)]


def test_what_was_renewed_since_the_last_look_is_seen_to_end_later() -> None:
    leases = Leases(1000)
    leases.grant(P, A, 1, now=0)
    leases.renew(P, [beat(A)], now=900)
    assert leases.expired_attempts(now=1000) == [] and leases.forget_silent(now=1000) == []
    assert leases.expired_attempts(now=1900) == [ExpiredLease(P, A, 1)]
    assert leases.forget_silent(now=1900) == [P]
