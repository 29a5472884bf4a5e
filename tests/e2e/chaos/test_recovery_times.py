"""How long a job did not run is counted from the last kill that it suffered, and only while somebody could decide."""

from typing import cast

import pytest

from mendflow.core.model.ids import CaseId, ItemId, JobId, PilotId
from mendflow.core.model.jobs import Attempt as Granted
from mendflow.core.model.jobs import Job, JobSpec
from tests.e2e.chaos.attempts import Attempt
from tests.e2e.chaos.fleet import Fleet
from tests.e2e.chaos.recovery import HomesSeen, Recoveries
from tests.e2e.chaos.torment import Trouble

SECOND = 1_000_000
SINCE, AGAIN = 100, 118


class Names:
    """What is asked of a fleet."""

    server_names = {"id-1": "one", "id-2": "two", "id-3": "three"}

    def pilot_id(self, name: str) -> str:
        return f"id-{name}"


def counted_s(*troubles: Trouble, homes: dict[int, str] | None = None) -> float:
    """Of the 18 seconds that a job did not run."""
    grants = [Granted(fence=fence, pilot=PilotId("id-p1"), granted_at=0, end="lost") for fence in (1, 2)]
    spec = JobSpec(item=ItemId("a"), command="true")
    job = Job(id=JobId("c/1"), case=CaseId("c"), spec=spec, history=grants)
    lines = {fence: Attempt(fence, ("start",), at * SECOND, at * SECOND) for fence, at in ((1, SINCE), (2, AGAIN))}
    seen = HomesSeen()
    for at, server in (homes or {0: "id-1"}).items():
        seen.see(at * SECOND, {"c": server})
    [found] = Recoveries(cast(Fleet, Names()), [job], {"c/1": lines}, troubles, seen).all
    return found.counted_us / SECOND


def trouble(kind: str, whom: str, at: int, until: int) -> Trouble:
    return Trouble(kind, whom, at * SECOND, until * SECOND)


@pytest.mark.short
def test_all_of_it_counts_where_others_were_hit() -> None:
    assert counted_s(trouble("server killed", "two", 105, 110), trouble("pilot killed", "p1", 101, 109)) == 18


@pytest.mark.short
def test_it_counts_anew_when_the_server_is_hit_that_decides_by_then() -> None:
    stopped, killed = trouble("server stopped", "one", 103, 113), trouble("server killed", "two", 110, 115)
    assert counted_s(stopped, killed) == 15
    assert counted_s(stopped, killed, homes={0: "id-1", 108: "id-2"}) == 8


@pytest.mark.short
def test_time_without_a_store_or_without_a_single_server_is_not_counted_and_not_twice() -> None:
    store = trouble("store killed", "store", 104, 106)
    others = [trouble("server killed", "two", 90, 105), trouble("server killed", "three", 102, 0)]
    assert counted_s(store) == 16
    assert counted_s(*others, trouble("server stopped", "one", 99, 109)) == 15
    assert counted_s(store, *others, trouble("server stopped", "one", 99, 109)) == 14
