"""Which loop lets a fault be: the innermost with room, whether its case has heard of the other faults or not."""

from itertools import combinations
from typing import Literal

import pytest

from mendflow.core.engine.caught_faults import LetFail, course_after
from mendflow.core.model.flow import ForEach, JobActivity
from mendflow.core.model.ids import ItemId
from tests.core.engine.world import Play, started

WORK = JobActivity(name="a", command="run")


def nested(outer: int, inner: int, *, finish: bool = False) -> Play:
    """Two turns of three, which let so many fail."""
    on_fault: Literal["stop", "finish"] = "finish" if finish else "stop"
    turns = ForEach(name="inner", first=0, last=2, body=WORK, parallel=True, tolerate=inner, on_fault=on_fault)
    return started(ForEach(name="outer", first=0, last=1, body=turns, parallel=True, tolerate=outer))


TABLE = {
    # how many the outer and the inner loop let fail, and what fails, in its order: what becomes of each
    "the inner has room": (1, 2, ["a[0,0]", "a[0,1]", "a[1,0]"], ["inner", "inner", "inner"]),
    "the inner is full": (1, 1, ["a[0,0]", "a[0,1]"], ["inner", "outer"]),
    "both are full": (1, 1, ["a[0,0]", "a[0,1]", "a[1,0]", "a[1,1]"], ["inner", "outer", "inner", ""]),
    "the inner lets none fail": (1, 0, ["a[0,0]", "a[1,0]"], ["outer", ""]),
    "the outer lets none fail": (0, 1, ["a[0,0]", "a[0,1]"], ["inner", ""]),
}


@pytest.mark.parametrize("finish", [False, True])
@pytest.mark.parametrize("row", TABLE)
def test_who_lets_a_fault_be_does_not_depend_on_what_the_case_has_heard(row: str, finish: bool) -> None:
    outer, inner, failing, wanted = TABLE[row]
    for count in range(len(failing) + 1):
        for heard in combinations(failing, count):
            play = nested(outer, inner, finish=finish)
            assert fates(play, failing, heard) == wanted, heard


def fates(play: Play, failing: list[str], heard: tuple[str, ...]) -> list[str]:
    """What becomes of each, the case having heard of some before the next fails."""
    waiting: list[LetFail] = []
    found = []
    for item in map(ItemId, failing):
        course, let_fail = course_after(play.case, item, "broken", waiting)
        assert (course == "passes") == (let_fail is None)
        found.append(play.case.plan.nodes[play.case.instances[let_fail.loop].node].activity.name if let_fail else "")
        if let_fail is not None:
            waiting.append(let_fail)
            if item in heard:
                play.fail(item)
    return found
