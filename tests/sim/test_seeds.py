"""A share of the seeds that `python -m mendflow.sim.chaos` runs by the thousand."""

import pytest

from mendflow.sim.world import Scene, play


@pytest.mark.parametrize("seed", range(1, 21))
def test_one_server_keeps_the_laws_in_any_storm(seed: int) -> None:  # JS-1 to JS-9
    assert play(Scene(seed=seed, servers=1)).broken == []


@pytest.mark.parametrize("seed", [3, 15])
def test_the_same_seed_gives_the_same_run_event_for_event(seed: int) -> None:
    first, second = play(Scene(seed=seed)), play(Scene(seed=seed))
    assert (first.hash, first.steps) == (second.hash, second.steps)
    assert first.hash != play(Scene(seed=seed + 1)).hash
