"""The failure scenarios in virtual time: what the house rules make of each, and what that costs."""

import pytest

from bench.recovery.play import BOUND_S, fair_weather, play
from bench.recovery.scenarios import SCENARIOS, Scenario
from bench.recovery.strategies import HOUSE, NONE, PLAIN
from mendflow.core.model.faults import Category, Stage
from mendflow.core.model.jobs import Submission

LEFT_TO_THE_USER = frozenset({"exit code 1, the first time"})
"""A job that fails by itself is not tried again unless its flow says so by `retries`: nobody else can know that it is
safe to run it twice, or that the next time would be other."""

TOLD_AFTER_S = 2 * 3600
"""However hopeless it is: all levels are over by then, and the user knows."""


def named(scenario: Scenario) -> str:
    return scenario.name.replace(" ", "-").replace(",", "")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_the_house_rules_cure_what_can_be_cured_and_tell_the_rest(scenario: Scenario) -> None:
    # FM-12 FM-13 AD-3 AD-4
    result = play(scenario, HOUSE)
    assert result.over
    assert result.recovered == (scenario.curable and scenario.name not in LEFT_TO_THE_USER)
    assert result.recovered or result.seconds < TOLD_AFTER_S


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_in_fair_weather_a_scenario_needs_no_recovery(scenario: Scenario) -> None:
    """Otherwise what it shows would not be the trouble's doing."""
    result = play(fair_weather(scenario), NONE)
    assert result.recovered
    assert result.attempts == scenario.jobs
    assert result.seconds < BOUND_S


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_without_recovery_a_scenario_fails(scenario: Scenario) -> None:
    """Otherwise it would be no trouble."""
    assert not play(scenario, NONE).recovered


@pytest.mark.parametrize("scenario", [one for one in SCENARIOS if not one.curable], ids=named)
def test_nothing_cures_what_is_hopeless(scenario: Scenario) -> None:
    assert not play(scenario, PLAIN).recovered


def test_the_same_scenario_goes_the_same_way_each_time() -> None:
    for scenario in SCENARIOS[::10]:
        assert play(scenario, HOUSE) == play(scenario, HOUSE)


def test_the_scenarios_are_many_and_of_all_kinds() -> None:
    # FM-5 FM-12
    assert len(SCENARIOS) >= 40
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)
    assert {one.category for one in SCENARIOS} == set(Category) - {Category.CANCELLED, Category.FLOW}
    assert {one.stage for one in SCENARIOS} == set(Stage)
    assert {one.pattern for one in SCENARIOS} == set(Submission)
