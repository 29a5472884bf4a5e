"""The traces of sizing are played by the rules that the page states."""

import random
from pathlib import Path

from bench.sizing import SIZERS, LearnedSizes, RequestedSizes, TraceJob, play, read_trace
from bench.sizing_variants import ALTERATIONS, NEEDS, compared, made_up
from mendflow.core.learning.sizes_views import GB_HOUR

HOUR_MS = 3_600_000
GB = 1_000_000_000


def jobs(count: int, peak_bytes: int = GB, apart_ms: int = 2 * HOUR_MS) -> list[TraceJob]:
    """One after another, each of an hour."""
    return [
        TraceJob(at * apart_ms, at * apart_ms + HOUR_MS, "a", 1, 8 * GB, peak_bytes, HOUR_MS) for at in range(count)
    ]


def test_waste_is_what_was_given_and_not_used() -> None:
    assert play(jobs(2), RequestedSizes()) == (2 * 7 * GB * HOUR_MS / GB_HOUR, 0)


def test_all_that_a_failed_attempt_was_given_is_wasted() -> None:
    assert play(jobs(1, peak_bytes=7 * GB), LearnedSizes()) == (6.0 + 1.0, 1), "a scout, then the whole request"


def test_what_is_not_over_yet_is_not_known() -> None:
    apart, _ = play(jobs(10), LearnedSizes())
    together, _ = play(jobs(10, apart_ms=0), LearnedSizes())
    assert apart < together == 10 * 5.0


def test_a_trace_is_read_by_the_names_of_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "task,submitted_ms,completed_ms,input_bytes,requested_bytes,peak_bytes,runtime_ms,cpus\na,0,5,1,2,3,4,1\n"
    )
    assert read_trace(path) == [TraceJob(0, 5, "a", 1, 2, 3, 4)]
    assert all(play(read_trace(path), make())[1] >= 0 for make in SIZERS.values())


def test_altered_and_made_up_traces_never_need_more_than_their_bounds() -> None:
    jobs = made_up(NEEDS["heavy tail"], random.Random(1), names=3, number_of_jobs=40)
    for name, alter in ALTERATIONS.items():
        altered = alter(jobs, random.Random(2))
        assert len(altered) == (4 if name == "a tenth" else 40), name
        assert all(0 < each.peak_bytes <= each.requested_bytes for each in altered), name
        assert all(each.submitted_ms < each.completed_ms for each in altered), name


def test_a_variant_is_compared_with_the_best_of_the_baselines() -> None:
    found = compared("few", made_up(NEEDS["as the input"], random.Random(1), names=2, number_of_jobs=40))
    assert found.jobs == 40 and found.ratio == found.wasted / found.best > 0
