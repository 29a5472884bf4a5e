"""The verdict on the cost of recovery follows from the bounds, not from the middle alone."""

from bench.pairs import Pair, median_estimate, pair
from bench.proxy import COST_SHARE_MAX, verdict

FOUND = {
    "jobs": 1_000,
    "pairs": 90,
    "jobs_per_s": 3_400,
    "cpu_us_per_job": 200.0,
    "cost": 0.015,
    "cost_low": 0.01,
    "cost_high": 0.02,
    "cost_cpu": 0.014,
    "cost_cpu_low": 0.012,
    "cost_cpu_high": 0.017,
    "inside_pairs": 60,
    "inside_us": 2.7,
    "inside_us_low": 2.5,
    "inside_us_high": 2.9,
    "inside_us_per_job": 71.0,
}


def test_a_slow_moment_of_the_machine_does_not_change_the_share() -> None:
    pairs = [Pair(100 * slow, 103 * slow) for slow in (1, 1, 7, 1, 3)]
    found = median_estimate([each.share for each in pairs])
    assert round(found.value, 3) == round(found.low, 3) == round(found.high, 3) == 0.029


def test_the_bounds_are_wide_where_the_pairs_disagree() -> None:
    found = median_estimate([-0.2, 0.3, 0.01, -0.1, 0.2, 0.02, 0.03])
    assert found.low < 0 < found.value < COST_SHARE_MAX < found.high


def test_who_begins_changes_from_pair_to_pair() -> None:
    order: list[bool] = []

    def one(kind: bool) -> tuple[float, ...]:
        order.append(kind)
        return (2.0 if kind else 1.0,)

    assert [pair(one, number) for number in (0, 1)] == [(Pair(1.0, 2.0),)] * 2
    assert order == [True, False, False, True]


def test_the_cost_is_small_only_if_both_upper_bounds_are() -> None:
    assert "is less than 5%" in verdict(FOUND)
    for bound in ("cost_high", "cost_cpu_high"):
        assert "is not shown to be less than 5%" in verdict({**FOUND, bound: 0.06})
