"""Progress is one line per name, and costs the same however many items there are."""

import io

import pytest
from rich.console import Console

from mendflow.cli.progress import PlainProgress, line_of, live_table, with_series
from mendflow.core.model.ids import CaseId
from mendflow.core.model.views import CaseStatus, CaseView, NameCount


def a_case(*counts: NameCount, status: CaseStatus = "running") -> CaseView:
    ended_at = 0 if status == "running" else 9_000
    return CaseView(
        id=CaseId("night-1"),
        flow="night",
        digest="",
        status=status,
        started_at=1000,
        ended_at=ended_at,
        counts=[*counts],
    )


def align(**numbers: int) -> NameCount:
    return NameCount(name="align", kind="job", **numbers)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_plain_line_is_printed_when_counts_change_and_not_too_often(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    lines = PlainProgress(clock, lambda: 1.0 + clock.now)
    lines.show(a_case(align(running=2, waiting=98)))
    clock.now = 0.5
    lines.show(a_case(align(done=1, running=2, waiting=97)))  # too soon
    clock.now = 3.0
    lines.show(a_case(align(done=7, running=2, waiting=91)))
    clock.now = 6.0
    lines.show(a_case(align(done=7, running=2, waiting=91)))  # nothing new
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "[     0 ms] align: 2 running, 98 waiting",
        "[    3.0 s] align: 7 done, 2 running, 91 waiting",
    ]


def test_what_only_stands_in_line_is_told_when_nothing_else_is(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    lines = PlainProgress(clock, lambda: 1.0 + clock.now)
    for clock.now in (0.0, 5.0, 10.0, 20.0):
        lines.show(a_case(align(waiting=5)))
    assert capsys.readouterr().err.splitlines() == ["[   10.0 s] align: 5 waiting"]


def test_the_end_is_printed_at_once_with_the_time_that_the_summary_has(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    lines = PlainProgress(clock, lambda: 1.3 + clock.now)
    lines.show(a_case(align(running=1)))
    clock.now = 0.2
    lines.show(a_case(align(done=1, mended=1), status="completed"))
    assert capsys.readouterr().err.splitlines() == [
        "[   300 ms] align: 1 running",
        "[    8.0 s] align: 1 done (1 mended)",
        "[    8.0 s] the case has completed",
    ]


def test_jobs_that_a_loop_of_python_made_are_one_line() -> None:
    def called(name: str, **numbers: int) -> NameCount:
        return NameCount(name=name, kind="job", **numbers)

    counts = [
        called("count", done=1),
        called("count-2", failed=1),
        called("total", skipped=1),
        called("count-3", done=1),
    ]
    assert [(each.name, line_of(each)) for each in with_series(counts)] == [
        ("count to count-3", "2 done, 1 failed"),
        ("total", "1 skipped"),
    ]
    few = [called("step", done=1), called("step-2", done=1), called("step-9", done=1)]
    assert with_series(few) == few


def test_the_live_table_fits_eighty_columns_whatever_the_names() -> None:
    counts = [
        NameCount(name=f"a-very-long-name-of-a-job-{n}" * 3, kind="job", done=10**6, running=10**4, failed=n)
        for n in range(60)
    ]
    out = io.StringIO()
    Console(file=out, width=80, markup=False).print(live_table(a_case(*counts), rows_max=10, now_ms=61_000))
    shown = out.getvalue().splitlines()
    assert max(map(len, shown)) <= 80
    assert len(shown) <= 13
    assert "52 more names" in out.getvalue()
    assert shown[-1].startswith("total")
    assert "1 m 0 s" in shown[0]


def test_what_runs_or_failed_is_shown_before_what_is_over() -> None:
    counts = [NameCount(name=f"old-{n}", kind="job", done=1) for n in range(20)]
    counts += [NameCount(name="hot", kind="job", running=1), NameCount(name="sad", kind="job", failed=1)]
    counts += [NameCount(name="off", kind="job", cancelled=3)]
    out = io.StringIO()
    Console(file=out, width=80, markup=False).print(live_table(a_case(*counts), rows_max=6, now_ms=61_000))
    assert "hot" in out.getvalue() and "sad" in out.getvalue()
    assert "cancelled" in out.getvalue()
    assert "19 more names" in out.getvalue()


def test_what_only_waits_makes_no_plain_line(capsys: pytest.CaptureFixture[str]) -> None:
    PlainProgress(Clock()).show(a_case(align(waiting=1)))
    assert capsys.readouterr().err == ""


def test_a_task_that_waits_for_a_person_is_pointed_out() -> None:
    out = io.StringIO()
    case = a_case(NameCount(name="approve", kind="user-task", waiting=1))
    Console(file=out, width=80).print(live_table(case, rows_max=5, now_ms=2000))
    assert "mendflow worklist" in out.getvalue()


def test_counts_are_told_in_words() -> None:
    assert line_of(align(done=1200, failed=2, mended=3)) == "1,200 done (3 mended), 2 failed"
    assert line_of(align(cancelled=1)) == "1 cancelled"
    assert line_of(align()) == "not begun"
