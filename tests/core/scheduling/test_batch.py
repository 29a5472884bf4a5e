"""How many jobs a pilot asks for."""

import pytest

from mendflow.core.scheduling.prefetch import (
    PER_PILOT_MAX,
    PER_SLOT_MAX,
    jobs_to_return,
    jobs_wanted,
    rounds,
    updated_mean_ms,
    window_ms,
)


def test_a_pilot_that_knows_nothing_asks_for_what_it_can_start() -> None:
    assert jobs_wanted(slots=4, free_slots=3, held=0, mean_ms=None, exchange_ms=5) == 3


def test_for_long_jobs_it_asks_for_exactly_its_free_slots() -> None:
    assert jobs_wanted(slots=4, free_slots=4, held=0, mean_ms=2000, exchange_ms=5) == 4
    assert jobs_wanted(slots=4, free_slots=0, held=0, mean_ms=2000, exchange_ms=5) == 0


def test_for_very_short_jobs_it_asks_for_many_but_bounded() -> None:
    assert jobs_wanted(slots=2, free_slots=2, held=0, mean_ms=0.2, exchange_ms=5) == 2 + 2 * PER_SLOT_MAX


@pytest.mark.parametrize(("slots", "each"), [(0, 0), (6, PER_SLOT_MAX), (16, PER_PILOT_MAX // 16), (2_000, 1)])
def test_a_pilot_of_many_slots_asks_for_no_more_than_the_server_reads_at_once(slots: int, each: int) -> None:
    assert jobs_wanted(slots=slots, free_slots=0, held=0, mean_ms=0.2, exchange_ms=5) == slots * each


def test_what_it_holds_already_counts() -> None:
    assert jobs_wanted(slots=2, free_slots=0, held=100, mean_ms=0.2, exchange_ms=5) == 2 * PER_SLOT_MAX - 100
    assert jobs_wanted(slots=2, free_slots=0, held=500, mean_ms=0.2, exchange_ms=5) == 0


def test_the_longer_the_jobs_the_fewer_it_asks_for() -> None:
    asked = [
        jobs_wanted(slots=2, free_slots=2, held=0, mean_ms=ms, exchange_ms=5) for ms in (0, 1, 5, 10, 25, 49, 50, 1000)
    ]
    assert asked == sorted(asked, reverse=True) and asked[-1] == 2


def test_slow_exchanges_make_it_ask_for_more() -> None:
    assert jobs_wanted(slots=1, free_slots=1, held=0, mean_ms=100, exchange_ms=5) == 1
    assert jobs_wanted(slots=1, free_slots=1, held=0, mean_ms=100, exchange_ms=500) > 10


def test_nothing_is_fetched_ahead_for_a_slot_whose_job_is_long() -> None:
    some = jobs_wanted(slots=2, free_slots=0, held=0, mean_ms=2, exchange_ms=5, slow_slots=1)
    assert 0 < some < jobs_wanted(slots=2, free_slots=0, held=0, mean_ms=2, exchange_ms=5)
    assert jobs_wanted(slots=2, free_slots=0, held=0, mean_ms=2, exchange_ms=5, slow_slots=2) == 0
    assert jobs_wanted(slots=2, free_slots=1, held=0, mean_ms=None, exchange_ms=5, slow_slots=1) == 1


def test_what_no_slot_will_come_to_soon_is_too_much() -> None:
    assert jobs_to_return(slots=1, slow_slots=1, waiting=6, mean_ms=2, exchange_ms=5) == 6
    assert jobs_to_return(slots=1, slow_slots=0, waiting=600, mean_ms=2, exchange_ms=5) == 0
    assert jobs_to_return(slots=2, slow_slots=1, waiting=6, mean_ms=2, exchange_ms=5) == 0
    assert jobs_to_return(slots=2, slow_slots=1, waiting=100, mean_ms=10, exchange_ms=5) == 100 - 1 - window_ms(5) / 10
    assert jobs_to_return(slots=2, slow_slots=1, waiting=3, mean_ms=None, exchange_ms=5) == 2


@pytest.mark.parametrize(("asked", "slots", "expected"), [(0, 2, 1), (2, 2, 1), (3, 2, 2), (128, 2, 64), (5, 0, 5)])
def test_rounds_are_how_often_the_room_is_used(asked: int, slots: int, expected: int) -> None:
    assert rounds(asked, slots) == expected


def test_one_long_job_counts_at_once_and_short_ones_bring_the_mean_down_again() -> None:
    mean = updated_mean_ms(None, 2.0)
    assert mean == 2.0
    mean = updated_mean_ms(mean, 5000)
    assert mean == 5000
    for _ in range(100):
        mean = updated_mean_ms(mean, 2.0)
    assert mean < 3
