"""What may be concluded from better worlds: failed runs are no times, losses are told, and chance decides nothing."""

from collections.abc import Sequence

import pytest

from mendflow.sim.grid.results import GridResult
from mendflow.sim.grid.scene import GridScene, SiteScene
from mendflow.sim.what_ifs import WhatIf, bottleneck, what_ifs

FAILED = None
"""The turnaround of a run that fails."""


def runs(*times: float | None) -> list[GridResult]:
    return [
        GridResult(status="completed" if took else "failed", turnaround_s=took or 1.0, cases=[], records=[])
        for took in times
    ]


def tried(before: Sequence[float | None], after: Sequence[float | None]) -> WhatIf:
    """What is found of one better world, whichever: all of them are played as `after` says."""
    scene = GridScene(sites=(SiteScene(running=1),))
    return what_ifs(scene, runs(*before), lambda better: runs(*after), tell=lambda sentence: None)[0]


def test_runs_that_fail_are_counted_and_left_out_of_means() -> None:
    found = tried([100, 100, 100, FAILED], [50, FAILED, 50, 80])
    assert (found.turnaround_s, found.failed_runs) == (50, 1)
    assert (found.gain, found.pairs) == (0.5, 2)


def test_a_better_world_in_which_every_run_fails_saves_nothing_and_is_told() -> None:
    found = tried([100, 100], [FAILED, FAILED])
    assert (found.turnaround_s, found.failed_runs, found.pairs) == (None, 2, 0)
    assert bottleneck([found]) == "not known: no seed completes both as it is and with something improved"


def test_what_costs_time_is_a_gain_below_zero() -> None:
    assert tried([100, 100], [110, 110]).gain == -0.1


def test_each_seed_is_held_beside_itself_so_that_what_differs_between_them_is_no_noise() -> None:
    found = tried([100, 200, 300], [80, 160, 240])
    assert found.gain == pytest.approx(0.2)
    assert tried([100, 200, 300], [100, 200, 300]).noise == 0
    assert bottleneck([tried([100, 200, 300], [100, 200, 300])]).startswith("the flow itself")


def test_what_chance_could_have_made_is_no_verdict() -> None:
    found = tried([100, 100, 100, 100], [70, 130, 75, 95])
    assert found.gain == pytest.approx(0.075)
    assert found.noise > found.gain
    verdict = bottleneck([found])
    assert verdict.startswith("these runs do not show it: twice the pilots would save 7.5 %, but chance alone makes ")
    assert verdict.endswith("in 4 runs; run more, with --seeds")


def test_a_clear_gain_decides_beside_a_larger_one_that_is_not() -> None:
    unclear = tried([100, 100, 100], [10, 150, 20])
    clear = tried([100, 100, 100], [70, 71, 69])
    assert unclear.gain > clear.gain
    assert bottleneck([unclear, clear]).endswith("it would take 30 % less")


def test_one_run_says_that_it_is_one() -> None:
    assert "(one run each" in bottleneck([tried([100], [50])])
