"""Why a job waits, and why it failed."""

import msgspec
import pytest

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId, ItemId, JobId, PilotId
from mendflow.core.model.jobs import Job, JobSpec, Outcome, Resources, RetryRule
from mendflow.core.model.sync import Capacity
from mendflow.core.scheduling import job_events, jobs
from mendflow.core.scheduling.amounts import clock, duration, size
from mendflow.core.scheduling.explanations import PilotFacts, why_failed, why_waiting
from mendflow.core.scheduling.jobs import RetryPolicy

GB = 10**9
NOW = 1_700_000_000_000


PLAIN = Resources()


def job(needs: Resources = PLAIN, *, retries: int = 0) -> Job:
    spec = JobSpec(item=ItemId("align[3]"), command="true", resources=needs, retries=retries, retry_wait_ms=90_000)
    return jobs.create(JobId("c-1/7"), CaseId("c-1"), spec, now=NOW)


def pilot(
    id: str,
    *,
    cpus: float = 4,
    memory: int = 16,
    gpus: int = 0,
    busy: float = 0,
    site: str = "",
    ttl_ms: int = 0,
    kept: str = "",
    slots_free: int = 4,
) -> PilotFacts:
    return PilotFacts(
        id=PilotId(id),
        host=f"node{id[-1]}",
        site=site,
        capacity=Capacity(slots=4, cpus=cpus, memory_bytes=memory * GB, disk_bytes=100 * GB, gpus=gpus),
        cpus_free=cpus - busy,
        memory_free_bytes=memory * GB,
        disk_free_bytes=100 * GB,
        gpus_free=gpus,
        ttl_ms=ttl_ms,
        reserved_for=kept,
        slots_free=slots_free,
    )


def said(job: Job, *pilots: PilotFacts, ahead: int | None = 0, now: int = NOW) -> str:
    return why_waiting(job, pilots, ahead, now).sentence


def test_without_a_pilot_that_is_the_reason() -> None:
    assert said(job()) == "align[3]: no pilot is connected; `mendflow pilot --server URL` starts one"


def test_a_site_that_has_a_pilot_coming_is_what_it_waits_for() -> None:
    coming = ["site t0: 1 pilot is coming"]
    alone = why_waiting(job(), [], 0, NOW, coming=coming)
    assert alone.sentence == "align[3]: no pilot is connected; site t0: 1 pilot is coming"
    bound = why_waiting(job(Resources(site="t0")), [pilot("p-1", site="t1")], 0, NOW, coming=coming)
    assert bound.sentence == "align[3]: it is bound to site t0, and no pilot is there; site t0: 1 pilot is coming"


def test_a_need_that_no_pilot_can_meet_is_named_with_the_best_pilot() -> None:
    why = why_waiting(job(Resources(memory_bytes=64 * GB)), [pilot("p-6", memory=8), pilot("p-7", memory=16)], 0, NOW)
    assert why.sentence == (
        "align[3]: no pilot can take it: it asks for 64 GB of memory; the largest pilot, p-7 on node7, has 16 GB"
    )
    assert why.subject == "c-1/7" and why.state == "waiting"
    assert why.facts[0] == "p-6 on node6 lacks memory (8 GB, asked 64 GB)"


@pytest.mark.parametrize(
    ("needs", "sentence"),
    [
        (Resources(cpus=32), "asks for 32 cpus; the largest pilot, p-2 on node2, has 8"),
        (Resources(gpus=1), "asks for 1 gpu; the largest pilot, p-1 on node1, has 0"),
        (Resources(disk_bytes=200 * GB), "asks for 200 GB of disk; the largest pilot, p-1 on node1, has 100 GB"),
        (
            Resources(wall_ms=7_200_000),
            "asks for 2 h of wall time; the longest-lived pilot, p-2 on node2, has left 30 min",
        ),
    ],
)
def test_each_need_is_named_in_its_own_words(needs: Resources, sentence: str) -> None:
    pilots = pilot("p-1", ttl_ms=60_000), pilot("p-2", cpus=8, ttl_ms=1_800_000)
    assert said(job(needs), *pilots) == f"align[3]: no pilot can take it: it {sentence}"


def test_all_needs_that_nobody_meets_are_named() -> None:
    why = why_waiting(job(Resources(cpus=2, memory_bytes=64 * GB, gpus=4)), [pilot("p-1")], 0, NOW)
    assert why.sentence == (
        "align[3]: no pilot can take it: it asks for 64 GB of memory; the largest pilot, p-1 on node1, has 16 GB;"
        " it also asks for 4 gpus; the largest pilot, p-1 on node1, has 0"
    )
    assert why.facts == ["p-1 on node1 lacks memory (16 GB, asked 64 GB), gpus (0, asked 4)"]


def test_needs_that_are_met_only_by_different_pilots() -> None:
    sentence = said(job(Resources(cpus=8, memory_bytes=64 * GB)), pilot("p-1", cpus=8), pilot("p-2", memory=64))
    assert sentence == (
        "align[3]: no single pilot has all that it asks for; "
        "the nearest, p-1 on node1, lacks: memory (16 GB, asked 64 GB)"
    )


def test_a_site_without_a_pilot_is_named() -> None:
    assert said(job(Resources(site="cern")), pilot("p-1", site="fnal"), pilot("p-2", site="desy")) == (
        "align[3]: no pilot can take it: it is bound to site cern, and pilots are at desy, fnal"
    )
    assert said(job(Resources(site="cern")), pilot("p-1")).endswith("and no connected pilot names a site")


def test_only_pilots_at_its_site_count() -> None:
    sentence = said(job(Resources(site="cern", cpus=8)), pilot("p-1", site="cern", cpus=4), pilot("p-2", cpus=64))
    assert sentence.endswith("asks for 8 cpus; the largest pilot, p-1 on node1, has 4")


def test_busy_pilots_are_told_from_missing_ones() -> None:
    why = why_waiting(job(Resources(cpus=2)), [pilot("p-1", busy=3), pilot("p-2", busy=4)], 5, NOW)
    assert why.sentence == "align[3]: all 2 pilots that can take it are busy; 5 jobs are before it in the queue"
    assert why.facts == ["p-1 on node1 has 1 of 4 cpus free; it asks for 2"]
    assert "the one pilot that can take it is busy" in said(job(Resources(cpus=2)), pilot("p-1", busy=3), ahead=1)


def test_a_pilot_that_is_kept_for_it_is_a_fact() -> None:
    why = why_waiting(job(Resources(cpus=4)), [pilot("p-1", busy=3, kept="c-1/7")], 0, NOW)
    assert why.facts[0] == "p-1 on node1 is kept free for it"


def test_with_a_free_pilot_only_its_place_in_the_queue_counts() -> None:
    assert said(job(), pilot("p-1"), ahead=3).endswith("it will be taken soon: 3 jobs are before it in the queue")
    assert said(job(), pilot("p-1")).endswith("it is next in the queue and will be taken at once")


def test_of_many_alike_nothing_is_said_that_is_true_of_one_alone() -> None:
    assert said(job(), pilot("p-1"), ahead=None) == "align[3]: a pilot has room, and it will be taken soon"
    busy = said(job(Resources(cpus=2)), pilot("p-1", busy=3), ahead=None)
    assert busy == "align[3]: the one pilot that can take it is busy"


def test_a_suspended_job_says_so_before_anything_else() -> None:
    suspended = job()
    for event in jobs.suspend(suspended):
        job_events.evolve(suspended, event)
    why = why_waiting(suspended, [], 0, NOW)
    assert (why.state, why.sentence) == (
        "suspended",
        "align[3]: it is suspended; `mendflow resume` resumes it",
    )


def failed_once(fault: Fault, *, retries: int = 0) -> Job:
    tried = job(retries=retries)
    for event in jobs.grant(tried, PilotId("p-1"), now=NOW):
        job_events.evolve(tried, event)
    verdict = jobs.report(tried, PilotId("p-1"), 1, Outcome(fault=fault), now=NOW + 5000, policy=RetryPolicy())
    for event in verdict.events:
        job_events.evolve(tried, event)
    return tried


def test_a_retry_tells_until_when_it_waits_and_what_went_wrong() -> None:
    fault = Fault(name="exit", category=Category.JOB, message="exit code 1", exit_code=1)
    sentence = said(failed_once(fault, retries=2), now=NOW + 5000)
    assert sentence == (
        f"align[3]: it waits until {clock(NOW + 95_000)}, 1 min 30 s from now, for retry 1 of 2; "
        "its last attempt failed: exit code 1"
    )


def test_a_wait_after_a_loss_says_that_no_retry_is_spent() -> None:
    lost = job()
    for _ in range(2):
        for event in jobs.grant(lost, PilotId("p-1"), now=NOW):
            job_events.evolve(lost, event)
        for event in jobs.lose(lost, now=NOW, policy=RetryPolicy(loss_wait_ms=1000)):
            job_events.evolve(lost, event)
    assert said(lost) == (
        f"align[3]: it waits until {clock(NOW + 1000)}, 1 s from now, for the next attempt, which does not count as a "
        "retry; its last attempt was lost: its lease ended on pilot p-1"
    )


def test_while_no_slot_is_free_nothing_is_promised_at_once() -> None:
    why = why_waiting(job(), [pilot("p-1", slots_free=0)], 0, NOW)
    assert why.sentence == ("align[3]: the one pilot that can take it is busy; 0 jobs are before it in the queue")
    assert why.facts == ["p-1 on node1: all its 4 slots are taken"]
    assert "at once" in said(job(), pilot("p-1", slots_free=0), pilot("p-2", slots_free=1))


def test_a_failure_shows_the_end_of_what_the_job_printed() -> None:
    lines = [f"line {number}" for number in range(40)]
    fault = Fault(
        name="exitCode", category=Category.JOB, message="KeyError: 3 (exit code 1)", log_tail="\n".join(lines)
    )
    assert why_failed(failed_once(fault)).output == lines[-12:]


def test_a_failure_tells_its_fault_and_every_attempt() -> None:
    fault = Fault(name="exit", category=Category.JOB, message="exit code 3", exit_code=3)
    why = why_failed(failed_once(fault))
    assert (why.state, why.sentence) == ("failed", "align[3]: it failed: exit code 3")
    assert why.facts == [
        "the fault is exit, of the kind job",
        "attempt 1 on p-1 ended as failed after 5 s: exit code 3",
    ]


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (64 * GB, "64 GB"),
        (512 << 20, "512 MiB"),
        (16 << 30, "16 GiB"),
        (1_500_000, "1500 kB"),
        (16_799_031_296 + 1, "16.8 GB"),
    ],
)
def test_sizes_read_as_they_are_written(count: int, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [(5, "5 ms"), (1500, "1.5 s"), (60_000, "1 min"), (9_000_000, "2 h 30 min"), (90_061_000, "1 d 1 h")],
)
def test_durations_read_as_they_are_said(ms: int, text: str) -> None:
    assert duration(ms) == text


def test_a_failure_that_its_retries_do_not_name_says_so() -> None:
    fault = Fault(name="ValueError", category=Category.JOB, message="3")
    failed = failed_once(fault)
    spec = msgspec.structs.replace(failed.spec, retry=(RetryRule(times=2, on=("75", "memory")),))
    failed.spec = spec
    assert (
        "its `retries` are for 75, memory, and this is ValueError, of the kind job, so it was not tried again"
        in why_failed(failed).facts
    )


def test_attempts_in_a_row_that_ended_for_the_same_reason_are_one_fact() -> None:
    failed = failed_once(Fault(name="exit", category=Category.JOB, message="exit code 3", exit_code=3))
    [first] = failed.history
    row = [msgspec.structs.replace(first, fence=fence, number=fence) for fence in range(1, 9)]
    facts = why_failed(msgspec.structs.replace(failed, history=row)).facts
    told = "attempts 1 to 8 on p-1 ended as failed, each for the same reason: exit code 3"
    assert told in facts and sum("exit code 3" in fact for fact in facts) == 1
