"""What each policy lets go first, in small stories."""

import pytest

from mendflow.core.caching.policies import POLICIES, policy_by_name
from mendflow.core.caching.space import CacheSpace
from mendflow.core.model.errors import InvalidRequest


def filled(policy: str, files: dict[str, int], size: int = 100) -> CacheSpace:
    shelf = CacheSpace(size, policy_by_name(policy))
    for digest, bytes in files.items():
        shelf.put(digest, bytes, cost_ms=10)
    return shelf


def test_lru_lets_go_of_what_was_not_used_for_longest() -> None:  # PJ-11
    shelf = filled("lru", {"a": 40, "b": 30, "c": 30})
    shelf.use("a")
    assert shelf.victims(30) == ["b"] and shelf.victims(31) == ["b", "c"]


def test_lfu_lets_go_of_what_was_used_least_often_and_of_the_older_among_equals() -> None:  # PJ-11
    shelf = filled("lfu", {"a": 40, "b": 30, "c": 30})
    shelf.use("a")
    shelf.use("c")
    shelf.use("a")
    assert shelf.victims(100) == ["b", "c", "a"]


def after_a_pass(policy: str) -> CacheSpace:
    """A file that was read twice, and then many that are read once."""
    shelf = filled(policy, {"hot": 50})
    shelf.use("hot")
    for number in range(20):
        for victim in shelf.victims(10) or ():
            shelf.evict(victim)
        shelf.put(f"once {number}", 10)
    return shelf


def test_lru_k_keeps_what_is_read_again_through_a_pass_over_many_files_that_are_read_once() -> None:  # PJ-11
    shelf = after_a_pass("lru-k")
    assert "hot" in shelf and len(shelf) == 6
    assert "hot" not in after_a_pass("lru"), "which the plain one does not"


def test_cost_keeps_small_files_that_are_dear_to_bring_before_large_ones_that_are_cheap() -> None:  # PJ-11
    shelf = CacheSpace(100, POLICIES["cost"])
    shelf.put("small and dear", 10, cost_ms=1_000)
    shelf.put("large and cheap", 80, cost_ms=10)
    assert shelf.victims(20) == ["large and cheap"]


def test_cost_forgets_old_fame() -> None:  # PJ-11
    shelf = CacheSpace(100, POLICIES["cost"])
    shelf.put("famous", 50, cost_ms=100)
    for _ in range(20):
        shelf.use("famous")
    rounds = 0
    while "famous" in shelf:
        for victim in shelf.victims(50) or ():
            shelf.evict(victim)
        shelf.put(f"new {rounds}", 50, cost_ms=100)
        rounds += 1
        assert rounds < 100
    assert rounds > 10, "but not at once"


def test_a_file_that_comes_back_is_not_taken_for_a_new_one() -> None:
    shelf = filled("lfu", {"a": 60, "b": 40})
    shelf.use("a")
    shelf.evict("a")
    shelf.put("a", 60)
    assert shelf.uses("a").count == 3 and shelf.victims(1) == ["b"]


def test_a_policy_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InvalidRequest, match="lru, lfu, lru-k, cost"):
        policy_by_name("fifo")
