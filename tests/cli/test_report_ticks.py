"""Marks of time axes: round, few enough, and written without what is nothing."""

import pytest

from mendflow.pages.ticks import time_step_ms, time_tick_text


@pytest.mark.parametrize(
    ("tick_ms", "text"),
    [
        (0, "0"),
        (500, "500 ms"),
        (5_000, "5 s"),
        (1_500, "1.5 s"),
        (90_000, "1 m 30 s"),
        (1_200_000, "20 m"),
        (7_200_000, "2 h"),
        (5_400_000, "1 h 30 m"),
        (172_800_000, "2 d"),
    ],
)
def test_a_mark_says_no_more_than_it_must(tick_ms: int, text: str) -> None:
    assert time_tick_text(tick_ms) == text


@pytest.mark.parametrize("total_ms", [1, 7, 999, 60_000, 3_000_000, 86_400_000, 10**11, 10**13])
def test_there_are_never_more_marks_than_wanted(total_ms: int) -> None:
    assert total_ms / time_step_ms(total_ms, 8) <= 8
