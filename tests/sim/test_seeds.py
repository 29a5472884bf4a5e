"""A share of the seeds that `python -m mendflow.sim.chaos` runs by the thousand."""

from collections.abc import Iterable

import pytest
from _pytest.mark import ParameterSet

from mendflow.sim.chaos import main
from mendflow.sim.world import Scene, play

MENDED = (35, 67, 147)
"""Seeds that once found something."""


def seeds(short: Iterable[int], full: Iterable[int]) -> list[ParameterSet]:
    """The first few of a share of seeds are for the short check too."""
    return [pytest.param(seed) for seed in short] + [pytest.param(seed, marks=pytest.mark.full) for seed in full]


@pytest.mark.parametrize("seed", seeds((1, 2, 3), (*range(4, 9), 48)))
def test_one_server_keeps_the_laws_in_any_storm(seed: int) -> None:  # JS-1 JS-5 JS-7
    assert play(Scene(seed=seed, servers=1)).violations == []


@pytest.mark.parametrize("seed", seeds((1, 2, 3), (*range(4, 16), *MENDED)))
def test_several_servers_keep_the_laws_in_any_storm(seed: int) -> None:  # JS-1 JS-3 JS-4 JS-7 JS-9
    assert play(Scene(seed=seed)).violations == []


@pytest.mark.parametrize("seed", seeds((1,), (2, 3, 357)))
def test_several_servers_that_ask_rules_keep_the_laws_in_any_storm(seed: int) -> None:  # JS-1 JS-4 JS-7
    assert play(Scene(seed=seed, recovery=True)).violations == []


def test_the_same_seed_gives_the_same_run_event_for_event() -> None:
    first, second = play(Scene(seed=3, faults=20)), play(Scene(seed=3, faults=20))
    assert (first.hash, first.steps) == (second.hash, second.steps)
    assert first.hash != play(Scene(seed=4, faults=20)).hash


@pytest.mark.full
def test_a_storm_really_has_faults_of_its_kinds_and_everything_ends_all_the_same() -> None:
    kinds = ("pilot stopped", "cut between pilot and server", "bad lines", "store slow", "store failing")
    verdicts = [play(Scene(seed=seed, faults=30, kinds=kinds)) for seed in (31, 32, 33)]
    happened = {what for verdict in verdicts for what in verdict.counts}
    assert {"line: dropped", "line: late", "line: doubled", "line: lost in a cut"} <= happened
    assert {"store: slow calls", "store: done, and nobody heard", "attempts that ended: lease"} <= happened
    assert [verdict.violations for verdict in verdicts] == [[], [], []]


def test_the_command_tells_what_happened(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "1", "--processes", "1", "--jobs", "5"]) == 0
    assert "1 seeds" in capsys.readouterr().out
