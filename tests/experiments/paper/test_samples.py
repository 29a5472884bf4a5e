"""What is kept of a run: sums over attempts, means over jobs."""

from typing import Any

import msgspec

from experiments.paper.samples import TICK_S, sample_of, summary
from experiments.paper.settings import Setup
from mendflow.sim.grid.results import CaseResult, GridResult, JobRecord

SETUP = Setup("W1", "d3f3", "C3")
START_S = 1000.0


def record(item: str, granted_s: float, ended_s: float, **more: Any) -> JobRecord:
    plain = JobRecord(
        job=item,
        item=item,
        case="c",
        site="s",
        host="h",
        pilot="p",
        attempt=1,
        granted_s=START_S + granted_s,
        begun_s=START_S + granted_s,
        ended_s=START_S + ended_s,
        run_s=1.0,
    )
    return msgspec.structs.replace(plain, **more)


def result(*records: JobRecord) -> GridResult:
    end = max(each.ended_s for each in records) - START_S
    case = CaseResult(case="c", flow="w", status="completed", started_s=START_S, turnaround_s=end)
    return GridResult(status="completed", turnaround_s=end, cases=[case], records=list(records))


def test_a_job_that_read_twice_has_read_for_as_long_as_both_took() -> None:
    found = sample_of(
        SETUP,
        1,
        result(
            record("step0[0]", 1, 100),
            record("step1[0]", 100, 140, stage_in_s=40.0, run_s=0.0, well=False, fetched_files=1),
            record("step1[0]", 150, 300, attempt=2, stage_in_s=60.0, fetched_files=1),
            record("step1[1]", 102, 300, stage_in_s=20.0, own_files=1),
        ),
    )
    assert found.stage_in_s == (40 + 60 + 20) / 2
    assert (found.attempts, found.failed_reading, found.failed_writing) == (4, 1, 0)
    assert (found.read_files, found.element_reads) == (3, 2)
    assert found.hit_ratio == 0.333


def test_a_job_waits_from_the_end_of_the_step_before_and_only_its_first_attempt_counts() -> None:
    found = sample_of(
        SETUP,
        1,
        result(
            record("step0[0]", 2, 100),
            record("step1[0]", 106, 200, well=False),
            record("step1[0]", 900, 950, attempt=2),
        ),
    )
    assert found.waited_s == (2 + 6) / 2
    assert (found.begun_s, found.ramp_s, found.idle_s) == (2, 2, 6)
    assert found.failed_writing == 1


def test_running_jobs_are_counted_at_each_tick_up_to_the_end() -> None:
    found = sample_of(
        SETUP, 1, result(record("step0[0]", 0, 1.5 * TICK_S), record("step1[0]", 1.6 * TICK_S, 2.5 * TICK_S))
    )
    assert found.running == [1, 1, 1, 0]


def test_a_single_run_has_no_deviation_and_several_have_that_of_a_sample() -> None:
    assert (summary([4.0]).mean, summary([4.0]).deviation) == (4.0, 0.0)
    assert (summary([2.0, 4.0, 6.0]).mean, summary([2.0, 4.0, 6.0]).deviation) == (4.0, 2.0)
