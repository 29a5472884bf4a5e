"""Durations and deadlines of XML Schema."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.xml.times import deadline_ms, duration_ms

DAY = 86_400_000


def at(year: int, month: int, day: int, hour: int = 0) -> int:
    return int(datetime(year, month, day, hour, tzinfo=UTC).timestamp()) * 1000


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("PT1S", 1_000),
        ("PT0.5S", 500),
        ("PT0.0019S", 1),
        ("P1D", DAY),
        ("P1DT1H1M1S", DAY + 3_661_000),
        ("-PT2M", -120_000),
        ("P0Y0M0DT0H0M5.0S", 5_000),
        (" PT1S ", 1_000),
        ("PT36H", 36 * 3_600_000),
    ],
)
def test_a_duration_lasts_as_long_as_it_says(text: str, ms: int) -> None:
    assert duration_ms(text, 0) == ms


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("P1M", at(2026, 1, 31), at(2026, 2, 28)),
        ("P1M", at(2024, 1, 31), at(2024, 2, 29)),
        ("P1Y", at(2024, 2, 29), at(2025, 2, 28)),
        ("P1Y1M1D", at(2025, 12, 1), at(2027, 1, 2)),
        ("-P1M", at(2026, 3, 31), at(2026, 2, 28)),
        ("P14M", at(2026, 11, 15, 7), at(2028, 1, 15, 7)),
    ],
)
def test_months_and_years_are_those_of_the_calendar(text: str, since: int, until: int) -> None:
    assert duration_ms(text, since) == until - since


@pytest.mark.parametrize("text", ["", "P", "PT", "P1", "1D", "P1S", "PT1D", "P1DT", "P-1D", "PT1.S", "P9999Y", "p1d"])
def test_what_is_no_duration_is_none(text: str) -> None:
    assert duration_ms(text, at(2026, 1, 1)) is None


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-11-15", at(2026, 11, 15)),
        ("2026-11-15Z", at(2026, 11, 15)),
        ("2026-11-15T07:00:00", at(2026, 11, 15, 7)),
        ("2026-11-15T07:00:00+01:00", at(2026, 11, 15, 6)),
        ("2026-11-15T07:00:00.25-01:00", at(2026, 11, 15, 8) + 250),
        ("2026-11-15T24:00:00", at(2026, 11, 16)),
        (" 1969-12-31 ", -DAY),
    ],
)
def test_a_deadline_is_an_instant(text: str, instant: int) -> None:
    assert deadline_ms(text) == instant


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01", "2026-02-30", "07:00:00", "2026-11-15T25:00:00", "26-1-1"])
def test_what_is_no_deadline_is_none(text: str) -> None:
    assert deadline_ms(text) is None


@given(st.text(), st.integers(0, 4 * 10**12))
def test_no_text_breaks_the_readers(text: str, since: int) -> None:
    for found in (duration_ms(text, since), duration_ms("P" + text, since), deadline_ms(text)):
        assert found is None or isinstance(found, int)


@given(st.integers(0, 400), st.integers(0, 100_000), st.integers(0, 4 * 10**12))
def test_whole_days_and_seconds_are_the_same_whenever_they_begin(days: int, seconds: int, since: int) -> None:
    assert duration_ms(f"P{days}DT{seconds}S", since) == days * DAY + seconds * 1000
