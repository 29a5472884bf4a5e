"""Jobs that keep away from hosts, jobs that nobody can take, and attempts after which none is wanted."""

import random

import pytest

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId, ItemId, JobId, PilotId
from mendflow.core.model.jobs import Job, JobSpec, JobState, Outcome, Resources
from mendflow.core.model.sync import Capacity
from mendflow.core.scheduling import job_events, jobs, ready_jobs
from mendflow.core.scheduling.explanations import PilotFacts, why_waiting
from mendflow.core.scheduling.jobs import RetryPolicy
from mendflow.core.scheduling.offer import Offer
from mendflow.core.scheduling.queue import PATIENCE_MS, JobQueue

GB = 1 << 30
NOW = 1_700_000_000_000
FAILED = Outcome(fault=Fault(name="exit", category=Category.JOB, message="exit code 1"))
LOST = Outcome(fault=Fault(name="disk", category=Category.RESOURCE, message="the disk is full"))


def pilot(host: str, *, free: float = 8, site: str = "", cpus: float = 8, ttl_ms: int = 0) -> Offer:
    whole = Capacity(slots=8, cpus=cpus, memory_bytes=8 * GB, disk_bytes=GB)
    return Offer(
        cpus=free,
        memory_bytes=8 * GB,
        disk_bytes=GB,
        host=host,
        site=site,
        ttl_ms=ttl_ms,
        pilot=PilotId(f"p-{host}"),
        whole=whole,
    )


def avoiding(*hosts: str, cpus: float = 1) -> Resources:
    return Resources(cpus=cpus, avoid_hosts=hosts)


def test_a_job_does_not_go_to_a_host_that_it_avoids() -> None:
    queue = JobQueue()
    queue.add(JobId("shy"), avoiding("n1", "n2"), 0, NOW)
    queue.add(JobId("any"), Resources(), 0, NOW + 1)
    assert queue.take(pilot("n1"), 10, NOW) == ["any"]
    assert queue.take(pilot("n2"), 10, NOW) == []
    assert queue.take(pilot("n3"), 10, NOW) == ["shy"]


def test_no_pilot_is_kept_free_for_a_job_that_avoids_it() -> None:
    queue = JobQueue()
    queue.add(JobId("large"), avoiding("n1", cpus=8), 0, NOW)
    queue.add(JobId("small"), Resources(), 0, NOW + 1)
    late = NOW + 2 * PATIENCE_MS
    assert queue.take(pilot("n1", free=4), 10, late) == ["small"]
    assert queue.reserved_for(PilotId("p-n1")) is None
    queue.add(JobId("other"), Resources(), 0, NOW + 2)
    assert queue.take(pilot("n2", free=4), 10, late) == []
    assert queue.reserved_for(PilotId("p-n2")) == "large"


def test_jobs_that_avoid_all_sorts_of_hosts_are_all_taken_and_none_where_it_does_not_want() -> None:
    # more kinds of needs than there may be exact shapes
    dice, queue = random.Random(3), JobQueue()
    hosts = [f"n{number}" for number in range(40)]
    needs = {}
    for number in range(3 * ready_jobs.EXACT_MAX):
        id = JobId(f"j{number}")
        needs[id] = Resources(memory_bytes=number, avoid_hosts=tuple(dice.sample(hosts, dice.randrange(1, 6))))
        queue.add(id, needs[id], 0, NOW + number)
    assert len(list(queue._line.shapes())) <= ready_jobs.EXACT_MAX + 540
    turn = 0
    while len(queue) and turn < 20_000:
        host = hosts[turn % len(hosts)]
        taken = queue.take(pilot(host), 4, NOW)
        assert all(host not in needs[id].avoid_hosts for id in taken)
        turn += 1
    assert len(queue) == 0


def test_what_waits_is_told_by_what_it_needs_and_whether_anybody_could_take_it() -> None:
    queue = JobQueue()
    for number in range(5):
        queue.add(JobId(f"big{number}"), Resources(cpus=64), 0, NOW + number)
    queue.add(JobId("shy"), avoiding("n1"), 0, NOW)
    queue.add(JobId("south"), Resources(site="south"), 0, NOW)
    queue.add(JobId("long"), Resources(wall_ms=10_000), 0, NOW)
    queue.add(JobId("plain"), Resources(), 0, NOW)
    queue.add(JobId("later"), Resources(cpus=99), 0, NOW, NOW + 5)

    def unable(*offers: Offer) -> set[str]:
        return {each.first for each in queue.waiting(offers) if not each.has_pilot}

    assert unable() == {"big0", "shy", "south", "long", "plain"}
    assert unable(pilot("n1", free=0, ttl_ms=5_000)) == {"big0", "shy", "south", "long"}
    assert unable(pilot("n1"), pilot("n2", site="south")) == {"big0"}
    assert unable(pilot("n1", cpus=64), pilot("n2", site="south")) == set()
    [big] = [each for each in queue.waiting(()) if each.first == "big0"]
    assert (big.jobs, big.since, big.needs.cpus) == (5, NOW, 64)
    assert sorted(queue.similar_jobs(JobId("big0"), 10)) == [f"big{number}" for number in range(5)]
    assert len(queue.similar_jobs(JobId("big0"), 2)) == 2 and queue.similar_jobs(JobId("nobody"), 2) == []


def test_jobs_that_are_gone_are_not_told_of() -> None:
    queue = JobQueue()
    for number in range(4):
        queue.add(JobId(f"j{number}"), Resources(cpus=64), 0, NOW + number)
    for id in ("j0", "j2"):
        queue.remove(JobId(id))
    [left] = queue.waiting(())
    assert (left.first, left.jobs, sorted(queue.similar_jobs(left.first, 9))) == ("j1", 2, ["j1", "j3"])


def job(needs: Resources, *, retries: int = 0, not_before: int = 0) -> Job:
    spec = JobSpec(item=ItemId("a"), command="true", resources=needs, retries=retries)
    return jobs.create(JobId("c-1/1"), CaseId("c-1"), spec, now=NOW, not_before=not_before)


def facts(host: str) -> PilotFacts:
    capacity = Capacity(slots=1, cpus=1, memory_bytes=GB, disk_bytes=GB)
    return PilotFacts(
        id=PilotId(f"p-{host}"), host=host, capacity=capacity, cpus_free=1, memory_free_bytes=GB, disk_free_bytes=GB
    )


def test_why_names_the_hosts_that_a_job_keeps_away_from() -> None:
    why = why_waiting(job(avoiding("n1", "n2")), [facts("n2"), facts("n1")], 0, NOW)
    assert "it avoids n1, n2" in why.sentence
    assert "will be taken at once" in why_waiting(job(avoiding("n1")), [facts("n1"), facts("n3")], 0, NOW).sentence


def test_a_job_can_be_submitted_for_later() -> None:
    later = job(Resources(), not_before=NOW + 60_000)
    assert jobs.grant(later, PilotId("p"), now=NOW) == []
    assert jobs.grant(later, PilotId("p"), now=NOW + 60_000)
    assert "waits for its time" in why_waiting(later, [facts("n1")], 0, NOW).sentence


def test_an_attempt_knows_where_it_ran() -> None:
    mine = job(Resources())
    for event in jobs.grant(mine, PilotId("p"), now=NOW, host="n1", site="south"):
        job_events.evolve(mine, event)
    for event in jobs.report(mine, PilotId("p"), 1, FAILED, now=NOW, policy=RetryPolicy()).events:
        job_events.evolve(mine, event)
    assert [(each.host, each.site, each.end) for each in mine.history] == [("n1", "south", "failed")]


@pytest.mark.parametrize(
    ("outcome", "own", "counted"), [(FAILED, True, (1, 0)), (LOST, False, (0, 1))], ids=["own", "lost"]
)
def test_a_job_can_end_where_it_would_be_tried_again(outcome: Outcome, own: bool, counted: tuple[int, int]) -> None:
    mine = job(Resources(), retries=3)
    for event in jobs.grant(mine, PilotId("p"), now=NOW):
        job_events.evolve(mine, event)
    put_back = jobs.pending_retry(jobs.report(mine, PilotId("p"), 1, outcome, now=NOW, policy=RetryPolicy()).events)
    assert put_back is not None and put_back.own is own
    job_events.evolve(mine, jobs.give_up(put_back, outcome))
    job_events.validate(mine)
    assert (mine.state, mine.outcome) == (JobState.FAILED, outcome)
    assert (mine.failures, mine.losses) == counted


def test_only_a_failed_attempt_would_be_followed_by_another() -> None:
    mine = job(Resources())
    for event in jobs.grant(mine, PilotId("p"), now=NOW):
        job_events.evolve(mine, event)
    assert jobs.pending_retry(jobs.give_back(mine, 1, now=NOW)) is None
    assert jobs.pending_retry(jobs.report(mine, PilotId("p"), 1, FAILED, now=NOW, policy=RetryPolicy()).events) is None
    assert jobs.pending_retry([]) is None
    assert jobs.pending_retry(jobs.lose(mine, now=NOW, policy=RetryPolicy())) is not None
