"""Numbers that a proposal shows can be checked by hand."""

import pytest

from mendflow.core.learning.rates import posterior_mean, rate_of, stands_out, wilson_interval


@pytest.mark.parametrize(
    ("helped", "tried", "low", "high"),
    [(0, 0, 0.0, 1.0), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (5, 10, 0.2366, 0.7634), (50, 100, 0.4038, 0.5962)],
)
def test_the_interval_is_wilsons(helped: int, tried: int, low: float, high: float) -> None:
    # LE-1
    assert wilson_interval(helped, tried) == pytest.approx((low, high), abs=1e-4)


def test_the_mean_moves_from_the_prior_to_what_was_seen() -> None:
    assert posterior_mean(0, 0) == 0.5
    assert posterior_mean(0, 20) == pytest.approx(1 / 22)
    assert posterior_mean(3, 4, prior=0.75) == 0.75
    assert rate_of(9, 9).mean == pytest.approx(10 / 11, abs=1e-4)


def test_a_place_stands_out_only_if_chance_is_no_explanation() -> None:
    assert stands_out(20, 40, 10, 1_000)
    assert not stands_out(2, 3, 10, 30)
    assert not stands_out(5, 5, 0, 0), "there is nothing to compare it with"
