"""The verdict on what security costs follows from the bounds, not from the middle alone. SE-7"""

import pytest

from bench.pairs import Pair
from bench.secured import verdict


@pytest.mark.parametrize(
    ("shares", "said", "kept"),
    [
        ([0.03, 0.05, 0.04, 0.06, 0.05], "is less than 10%", True),
        ([0.04, 0.3, -0.2, 0.05, 0.01], "is not shown to be less than 10%", False),
        ([0.2, 0.25, 0.3, 0.22, 0.24], "is more than 10%", False),
    ],
)
def test_what_security_costs_is_little_only_if_the_upper_bound_is(shares: list[float], said: str, kept: bool) -> None:
    pairs = [Pair(1 - share, 1.0) for share in shares]
    told, is_kept = verdict([(each, each) for each in pairs])
    assert f"take {said}" in told
    assert is_kept is kept
