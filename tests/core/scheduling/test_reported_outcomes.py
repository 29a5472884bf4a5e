"""What a pilot reports is used as far as a pilot may say it."""

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import ItemId
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.core.scheduling.reported_outcomes import accepted_outcome


def test_no_job_says_that_a_person_has_rejected_it() -> None:
    fault = Fault(name="rejected", category=Category.FLOW, message="no, said ann", rejected_by="ann")
    taken = accepted_outcome(JobSpec(item=ItemId("a"), command="true"), Outcome(fault=fault)).fault
    assert taken is not None and (taken.rejected_by, taken.message) == ("", "no, said ann")
