"""The failure scenarios in virtual time: what the default rules make of each, and that the page says so."""

from pathlib import Path

import pytest

from bench.recovery.page import page
from bench.recovery.play import play
from bench.recovery.scenario import Scenario
from bench.recovery.scenarios import SCENARIOS
from bench.recovery.strategies import HOUSE, NONE, PLAIN
from bench.recovery.table import PAGE, Row, measure, summary
from mendflow.core.model.faults import AttemptStage, Category
from mendflow.core.model.jobs import Submission
from tests.made_once import made_once

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]  # one makes all rows, the others wait for it

ROOT = Path(__file__).parents[2]

LEFT_TO_THE_USER = frozenset({"exit code 1, the first time"})
"""A job that fails by itself is not tried again unless its flow says so by `retries`: nobody else can know that it is
safe to run it twice, or that the next time would be other."""

TOLD_AFTER_S = 2 * 3600
"""However hopeless it is: all levels are over by then, and the user knows."""


def named(scenario: Scenario) -> str:
    return scenario.name.replace(" ", "-").replace(",", "")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    """Every scenario, played with every strategy."""
    return {row.scenario.name: row for row in made_once(tmp_path_factory, "rows", lambda: measure(SCENARIOS))}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_the_house_rules_cure_what_can_be_cured_and_tell_the_rest(scenario: Scenario, rows: dict[str, Row]) -> None:
    # FM-12 FM-13 AD-3 AD-4
    result = rows[scenario.name].by[HOUSE.name]
    assert result.over
    assert result.recovered == (scenario.curable and scenario.name not in LEFT_TO_THE_USER)
    assert result.recovered or result.seconds < TOLD_AFTER_S


def test_in_fair_weather_a_scenario_needs_no_recovery(rows: dict[str, Row]) -> None:
    """Otherwise what it shows would not be the trouble's doing."""
    troubled = [
        name for name, row in rows.items() if not row.baseline.recovered or row.baseline.attempts != row.scenario.jobs
    ]
    assert not troubled


def test_without_recovery_a_scenario_fails(rows: dict[str, Row]) -> None:
    """Otherwise it would be no trouble."""
    assert not [name for name, row in rows.items() if row.by[NONE.name].recovered]


def test_nothing_cures_what_is_hopeless(rows: dict[str, Row]) -> None:
    hopeless = [row for row in rows.values() if not row.scenario.curable]
    assert len(hopeless) >= 10
    assert not [row for row in hopeless if any(result.recovered for result in row.by.values())]


def test_the_house_rules_recover_far_more_than_plain_retries_and_waste_less(rows: dict[str, Row]) -> None:
    # FM-13
    server, plain = summary([*rows.values()], HOUSE), summary([*rows.values()], PLAIN)
    assert server.recovered > 1.5 * plain.recovered
    assert server.extra / server.recovered < plain.extra / plain.recovered
    assert server.hopeless_extra < plain.hopeless_extra


def test_the_page_says_what_was_measured(rows: dict[str, Row]) -> None:
    """`python -m bench.recovery --write` makes it anew."""
    assert (ROOT / PAGE).read_text() == page([*rows.values()])


def test_the_same_scenario_goes_the_same_way_each_time() -> None:
    for scenario in SCENARIOS[::10]:
        assert play(scenario, HOUSE) == play(scenario, HOUSE)


def test_the_scenarios_are_many_and_of_all_kinds() -> None:
    # FM-5 FM-12
    assert len(SCENARIOS) >= 40
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)
    assert {one.category for one in SCENARIOS} == set(Category) - {Category.CANCELLED, Category.FLOW}
    assert {one.stage for one in SCENARIOS} == set(AttemptStage)
    assert {one.pattern for one in SCENARIOS} == set(Submission)
