"""In a history causes stand before their consequences, whatever was recorded first."""

import msgspec
import pytest

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId, ItemId, JobId, PilotId
from mendflow.core.model.jobs import Attempt, Job, JobSpec, Measurements
from mendflow.core.model.repair import Conclusion, Decision, ExceptionType
from mendflow.core.model.repair_views import HistoryEntry, HistorySource
from mendflow.services.observe import history
from mendflow.services.observe.history_order import merge_entries

CASE, ITEM = CaseId("c-1"), ItemId("a")
FAULT = Fault(name="exitCode", category=Category.JOB, message="KeyError: 3 (exit code 1)", exit_code=1)
SAID = Conclusion(rules="f", version=1, type=ExceptionType.ABORT, task="a", rule=1, exlet="again")


def job(id: str, granted_at: int, ended_at: int, end: str) -> Job:
    fault = FAULT if end == "failed" else None
    attempt = Attempt(fence=1, pilot=PilotId("p"), granted_at=granted_at, ended_at=ended_at, end=end, fault=fault)
    return Job(id=JobId(id), case=CASE, spec=JobSpec(item=ITEM, command="true"), history=[attempt])


def decision(at: int, ended_at: int, settled_at: int) -> Decision:
    return Decision(
        id="c-1/1:1:1/abort",
        case=CASE,
        flow="f",
        type=ExceptionType.ABORT,
        at=at,
        state="done",
        item=ITEM,
        task="a",
        job=JobId("c-1/1"),
        fault=FAULT,
        exlet="again",
        conclusion=SAID,
        ended_at=ended_at,
        settled_at=settled_at,
        result="recovered",
    )


@pytest.mark.parametrize(
    ("failed_at", "decided_at"),
    [(110, 111), (110, 110), (112, 111), (130, 111)],
    ids=["before", "with", "after", "late"],
)
def test_a_failure_is_told_before_its_repair_and_the_repair_before_its_result(failed_at: int, decided_at: int) -> None:
    jobs = [job("c-1/1", 100, failed_at, "failed"), job("c-1/1~2", 140, 150, "completed")]
    decisions = [decision(decided_at, 120, 150)]
    told = merge_entries([], [*history.attempts(jobs, decisions), *history.decision_entries(decisions)], [])
    assert [entry.what for entry in told] == ["began", "failed", "decided", "began", "repaired"]


@pytest.mark.parametrize("ahead", [0, 5, 3_600_000])
def test_an_attempt_began_before_it_was_over_also_by_a_clock_that_is_ahead(ahead: int) -> None:  # FM-13
    done = job("c-1/1", 100, 110, "completed")
    measures = Measurements(started_at=104 + ahead, ended_at=109 + ahead)
    done.history[-1] = msgspec.structs.replace(done.history[-1], measures=measures)
    journal = [entry(100, "submitted"), entry(110, "completed"), entry(110, "submitted", name="b")]
    told = merge_entries(journal, history.attempts([done]), [])
    assert [each.what for each in told] == ["submitted", "began", "completed", "submitted"]
    assert 100 < told[1].at < 110


def test_an_attempt_that_runs_did_not_begin_in_the_future() -> None:  # FM-13
    running = job("c-1/1", 100, 0, "")
    running.history[-1] = msgspec.structs.replace(running.history[-1], measures=Measurements(started_at=3_600_104))
    told = merge_entries([entry(100, "submitted"), entry(150, "suspended")], history.attempts([running], now=160), [])
    assert [each.what for each in told] == ["submitted", "began", "suspended"]


def entry(at: int, what: str, source: HistorySource = "engine", name: str = "a", **more: str) -> HistoryEntry:
    return HistoryEntry(
        at=at, case=CaseId(more.get("case", "c-1")), source=source, what=what, name=name, by=more.get("by", "")
    )


def test_what_an_exlet_orders_is_told_after_the_step_that_orders_it() -> None:
    journal = [
        entry(100, "submitted"),
        entry(110, "force-failed", "service", by="c-1.x1"),
        entry(110, "cancelled"),
        entry(110, "failed", name="f"),
    ]
    words = [("mending", "notify"), ("mended", "notify"), ("mending", "force-fail"), ("mended", "force-fail")]
    steps = [entry(110, what, "service", name, case="c-1.x1") for what, name in words]
    told = [f"{each.what} {each.name}" for each in merge_entries(journal, [], steps)]
    assert told == [
        "submitted a",
        "mending notify",
        "mended notify",
        "mending force-fail",
        "force-failed a",
        "cancelled a",
        "failed f",
        "mended force-fail",
    ]
