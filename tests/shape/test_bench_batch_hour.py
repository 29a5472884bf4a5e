"""What an hour of pilots on a batch system is told as: every look is counted, and what was dropped stands by itself."""

from bench.batch_hour import HourResult, body, table


def result(**more: object) -> HourResult:
    given = {
        "minutes": 60.4,
        "cancelled": 9,
        "restarts": 3,
        "away_s": 31.2,
        "looks": {"answered": 50, "unasked": 40, "unanswered": 8, "failed": 1, "overtaken": 1, "skipped": 2},
        "errors_logged": 1,
        "pilots": 20,
        "ended": {"left": 18, "gone": 2},
        "jobs": 30,
        "completed": 30,
        "failed": 0,
        "missing": 0,
        "started": 36,
        "at_once": 0,
        "ends": 30,
        "ended_again": 0,
        "attempts": {"completed": 30, "lost": 6},
    }
    return HourResult(**(given | more))  # type: ignore[arg-type]  # by their names


def test_a_look_that_failed_or_was_overtaken_is_dropped_and_one_without_an_answer_is_not() -> None:  # PJ-8
    assert (result().looked, result().dropped) == (102, 2)
    assert result(looks={"answered": 5, "unanswered": 3, "unasked": 2, "skipped": 1}).dropped == 0


def test_the_table_has_a_column_for_each_batch_system_and_says_which_was_not_run() -> None:  # PJ-8
    told = table({"slurm": result()})
    assert "|looks dropped|2|not run|" in told and "|pilots submitted|20|not run|" in told
    both = table({"slurm": result(), "gridengine": result(pilots=7)})
    assert "|pilots submitted|20|7|" in both and "|attempts|30 completed, 6 lost|30 completed, 6 lost|" in both
    assert "not run" not in both and both in body({"slurm": result(), "gridengine": result(pilots=7)})
