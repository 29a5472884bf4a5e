"""Which results of an earlier case stand for those of a later one."""

from msgspec.structs import replace

from mendflow.core.model.ids import CaseId, ItemId, JobId
from mendflow.core.model.jobs import Job, JobSpec, JobState, Outcome
from mendflow.core.results.earlier_results import EarlierResults
from mendflow.core.results.result_key import result_key

ASKED = JobSpec(item=ItemId("call[3]"), command="call.sh", env={"LEVEL": "1"})
REPAIRED = replace(ASKED, env={"LEVEL": "2"})


def job(id: str, spec: JobSpec, outcome: Outcome | None) -> Job:
    state = JobState.COMPLETED if outcome is not None else JobState.FAILED
    return Job(id=JobId(id), case=CaseId("f-1"), spec=spec, name="call", state=state, outcome=outcome)


def test_what_a_repair_made_with_other_settings_is_found_by_what_the_flow_asks_for() -> None:  # EX-7
    submissions = [
        job("f-1/4~10", REPAIRED, Outcome(outputs=7)),
        job("f-1/4", ASKED, None),
        job("f-1/4~2", ASKED, None),
    ]
    for spec in (ASKED, REPAIRED):
        earlier = EarlierResults(submissions)
        found = earlier.take(spec.item, result_key(spec))
        assert found is not None and found.outcome == Outcome(outputs=7)
        assert [earlier.take(each.item, result_key(each)) for each in (ASKED, REPAIRED)] == [None, None], "each once"
    assert EarlierResults(submissions).take(ASKED.item, result_key(replace(ASKED, command="other.sh"))) is None


def test_of_equal_jobs_that_of_the_same_item_is_taken() -> None:
    made = [job(f"f-1/{n}", replace(ASKED, item=ItemId(f"call[{n}]")), Outcome(outputs=n)) for n in range(3)]
    earlier = EarlierResults(made)
    order = [ItemId("call[1]"), ItemId("call[9]"), ItemId("call[2]"), ItemId("call[0]")]
    found = [earlier.take(item, result_key(ASKED)) for item in order]
    assert [each and each.spec.item for each in found] == ["call[1]", "call[0]", "call[2]", None]
