"""A world that notices nothing proves nothing: every broken build has to be caught, by some seed of a few."""

import msgspec
import pytest

from mendflow.sim.world import Scene, play
from tests.sim.mutants import MUTANTS

SEEDS_MAX = 40


def caught(first: Scene) -> list[str]:
    """What the first seed that notices says."""
    for seed in range(first.seed, first.seed + SEEDS_MAX):
        try:
            broken = play(msgspec.structs.replace(first, seed=seed)).violations
        except AssertionError as error:  # the product's own, which looks after itself
            return [str(error)]
        if broken:
            return broken
    return []


@pytest.mark.full
@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_build_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:  # laws 1 to 5 and 7
    break_it, first = MUTANTS[name]
    break_it(monkeypatch)
    assert caught(first), f"{SEEDS_MAX} seeds did not notice that {name}"
