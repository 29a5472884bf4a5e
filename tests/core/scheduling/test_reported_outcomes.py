"""What a pilot reports is used as far as a pilot may say it."""

import msgspec
import pytest
from msgspec.structs import replace

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import ItemId, PilotId
from mendflow.core.model.jobs import Attempt, JobSpec, Measurements, Outcome, StoredLog
from mendflow.core.model.values import FileRef
from mendflow.core.scheduling.report_bounds import bounded_attempt
from mendflow.core.scheduling.reported_outcomes import accepted_outcome

SPEC = JobSpec(item=ItemId("a"), command="true")


def test_no_job_says_that_a_person_has_rejected_it() -> None:
    fault = Fault(name="rejected", category=Category.FLOW, message="no, said ann", rejected_by="ann")
    taken = accepted_outcome(SPEC, Outcome(fault=fault)).fault
    assert taken is not None and (taken.rejected_by, taken.message) == ("", "no, said ann")


def test_no_job_says_that_another_one_made_its_result() -> None:
    """The job that is named is read when the result is used again, also if it is of another project."""
    reported = Outcome(outputs=7, cached_from="theirs-1d90a7/1")
    assert accepted_outcome(SPEC, reported) == Outcome(outputs=7)


def test_a_text_that_is_too_long_is_cut_and_says_so() -> None:
    long = "x" * 5_000_000
    fault = Fault(
        name=long, category=Category.JOB, message=long, log_tail=f"{long}end", data={"a": long}, stage=long, file=long
    )
    said = Outcome(
        fault=fault,
        log_tail=f"{long}end",
        folder=long,
        image=long,
        code_mismatch=long,
        undeclared_reads=long,
        left_running=long,
        cached_from=long,
        measures=Measurements(damaged=(long,) * 1_000, changed_inputs=(long,)),
        values={"said": long},
    )
    taken = accepted_outcome(SPEC, said)
    assert taken.fault is not None and len(msgspec.json.encode(taken)) < 600_000
    assert "(cut: it had 5000000 characters)" in taken.fault.name and "(cut: it had" in taken.fault.message
    assert taken.fault.log_tail == taken.log_tail and taken.log_tail.endswith("xend") and "was cut" in taken.log_tail
    assert taken.fault.data is None and len(taken.measures.damaged) == 100
    assert accepted_outcome(SPEC, taken) == taken, "what was cut stays as it is"


def test_data_of_a_fault_that_is_left_out_is_told() -> None:
    fault = Fault(name="bad", category=Category.JOB, message="so it is", data=["x" * 1_000_000])
    taken = accepted_outcome(SPEC, Outcome(fault=fault)).fault
    assert taken is not None and taken.data is None
    assert taken.message == "so it is (its data was left out: 1000004 bytes)"


def test_numbers_out_of_range_become_the_nearest_in_it() -> None:
    fault = Fault(name="bad", category=Category.JOB, message="", exit_code=1 << 60, signal=-(1 << 60))
    said = Outcome(fault=fault, exit_code=-(1 << 60), measures=Measurements(cpu_ms=-5, peak_bytes=1 << 60, ran_ms=7))
    taken = accepted_outcome(SPEC, said)
    assert (taken.measures.cpu_ms, taken.measures.peak_bytes, taken.measures.ran_ms) == (0, 1 << 53, 7)
    assert taken.exit_code == -(1 << 53) and taken.fault is not None
    assert (taken.fault.exit_code, taken.fault.signal) == (1 << 53, -(1 << 53))


@pytest.mark.parametrize(("printed", "at", "left_out"), [(-5, 0, 0), (1 << 60, 0, 0), (100, -9, 5), (100, 9, 1 << 60)])
def test_a_stored_log_with_impossible_numbers_is_left_out(printed: int, at: int, left_out: int) -> None:
    log = StoredLog(file=FileRef(sha256="0" * 64, bytes=5, name="log.gz"), bytes=printed)
    taken = accepted_outcome(SPEC, Outcome(log=replace(log, left_out_at=at, left_out_bytes=left_out), log_tail="end"))
    assert taken.log is None and taken.log_tail == "end"
    right = Outcome(log=replace(log, bytes=100, left_out_at=90, left_out_bytes=10))
    assert accepted_outcome(SPEC, right) is right


def test_an_attempt_that_another_domain_tells_is_bounded() -> None:
    attempt = Attempt(fence=-1, pilot=PilotId("p" * 1_000), granted_at=1 << 60, host="h" * 1_000, because="b" * 100_000)
    taken = bounded_attempt(attempt)
    assert (taken.fence, taken.granted_at) == (0, 1 << 53)
    assert (len(taken.pilot), len(taken.host), len(taken.because)) == (255, 255, 10_000)
