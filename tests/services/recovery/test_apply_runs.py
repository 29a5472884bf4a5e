"""What is kept of applications of rules to groups of failures."""

from mendflow.core.model.ids import CaseId
from mendflow.core.model.principals import EVERYTHING, Sight
from mendflow.services.recovery.apply_runs import IDS_KEPT, RUNS_KEPT, ApplyRun, ApplyRuns


def begun(runs: ApplyRuns, group: str, *projects: str) -> ApplyRun:
    run = ApplyRun(group=group, by="ann", started_at=1, projects={*projects} or {"default"})
    runs.begin(run)
    return run


def test_ex_7_one_that_runs_is_told_however_many_begin_after_it() -> None:
    runs = ApplyRuns()
    slow = begun(runs, "slow")
    for number in range(2 * RUNS_KEPT):
        runs.end(begun(runs, f"g{number}"), 2)
    assert runs.of("slow", EVERYTHING) == [slow]
    known = [number for number in range(2 * RUNS_KEPT) if runs.of(f"g{number}", EVERYTHING)]
    assert known == [*range(RUNS_KEPT, 2 * RUNS_KEPT)]
    runs.end(slow, 3)
    assert runs.of("slow", EVERYTHING) == [slow], "who began it asks what came of it"


def test_ex_7_of_those_that_are_over_so_many_failures_are_kept() -> None:
    runs, half = ApplyRuns(), [f"f-{number}/1" for number in range(IDS_KEPT // 2)]
    for group in ("first", "second", "third", "fourth"):
        run = begun(runs, group)
        run.add_left(half, "default")
        run.add_taken_up(["f-x/1"], "default")
        runs.end(run, 2)
    assert [group for group in ("first", "second", "third", "fourth") if runs.of(group, EVERYTHING)] == [
        "third",
        "fourth",
    ]


def test_ex_7_failures_are_the_one_unit_of_what_is_told() -> None:
    run = begun(ApplyRuns(), "g", "red", "blue")
    run.total.update({"red": 3, "blue": 2})
    run.add_case(CaseId("f-1"), "red")
    run.add_taken_up(["f-1/1", "f-1/2"], "red")
    run.add_refused(["g-1/1"], "blue", "it is not over")
    run.done.update({"red": 2, "blue": 1})
    told = run.progress_in(EVERYTHING)
    assert (told.total, told.done) == (5, len(told.taken_up) + len(told.left) + len(told.refused)) == (5, 3)
    seen = run.progress_in(Sight(frozenset({"blue"})))
    assert (seen.total, seen.done, seen.taken_up, seen.cases, seen.refused) == (
        2,
        1,
        [],
        [],
        {"g-1/1": "it is not over"},
    )
