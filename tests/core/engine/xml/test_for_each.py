"""For-each as BPEL has it: it counts with an xsd:unsignedInt, and completion conditions are about its turns."""

import pytest

from mendflow.core.model.flow import Activity, Catch, Empty, ForEach, JobActivity, Scope, Throw
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.xml import XmlTarget
from tests.core.engine.world import Play, failed
from tests.core.engine.xml.papers import assign, copy, fault_of, left, ran, xpath

NUMBER = XmlTarget(variable="number")


def loop(
    first: str = "1",
    last: str = "3",
    body: Activity | None = None,
    *,
    parallel: bool = False,
    enough: str | None = None,
    well: bool = False,
) -> ForEach:
    return ForEach(
        name="loop",
        first=xpath(first),
        last=xpath(last),
        variable="i",
        parallel=parallel,
        min_success=xpath(enough) if enough is not None and well else None,
        min_ended=xpath(enough) if enough is not None and not well else None,
        body=body or Scope(name="turn", body=assign(copy("$number + $i", NUMBER))),
    )


def work(name: str = "job", *catches: Catch) -> Scope:
    return Scope(name="turn", body=JobActivity(name=name, command="x"), catches=catches)


@pytest.mark.parametrize(("first", "last", "sum"), [("1", "3", 6), ("0", "0", 0), ("3", "1", 0), ("'2'", "$few", 5)])
def test_it_counts_from_the_first_to_the_last(first: str, last: str, sum: int) -> None:
    for parallel in (False, True):
        assert left(ran(loop(first, last, parallel=parallel), number=0, few=3), "number") == sum


@pytest.mark.parametrize("bound", ["-1", "1.5", "'many'", "4294967296", "1 div 0"])
def test_what_is_no_unsigned_int_is_no_bound(bound: str) -> None:
    assert fault_of(ran(loop(first=bound, last="4294967296"))) == "invalidExpressionValue"
    assert fault_of(ran(loop(last=bound))) == "invalidExpressionValue"
    assert fault_of(ran(loop(enough=bound))) in ("invalidExpressionValue", "invalidBranchCondition")


def test_the_counter_can_be_written_and_the_next_turn_counts_on_all_the_same() -> None:
    body = Scope(name="turn", body=assign(copy("$i * 10", XmlTarget(variable="i")), copy("$number + $i", NUMBER)))
    assert left(ran(loop(body=body), number=0), "number") == 60


def test_the_counter_hides_a_variable_of_its_name_and_nothing_else_is_declared() -> None:
    assert left(ran(loop(), number=0), "i") is None
    assert fault_of(ran(loop(body=Scope(name="t", body=assign(copy("$index", NUMBER)))))) == "uninitializedVariable"


def test_enough_turns_end_the_others() -> None:
    play = ran(loop(body=work(), parallel=True, enough="2"))
    assert play.jobs == ["job[0]", "job[1]", "job[2]"]
    play.finish(play.serial("job[0]"), Outcome())
    play.finish(play.serial("job[2]"), Outcome())
    assert (play.status, play.cancelled) == ("completed", 1)


def test_a_turn_that_is_one_too_many_does_not_begin() -> None:
    assert left(ran(loop(parallel=True, enough="2"), number=0), "number") == 3
    assert left(ran(loop(parallel=False, enough="2"), number=0), "number") == 3


def test_more_turns_than_there_are_cannot_be_enough() -> None:
    assert fault_of(ran(loop(enough="4"), number=0)) == "invalidBranchCondition"
    assert ran(loop(first="2", last="1", enough="1"), number=0).status == "completed"


def test_a_turn_that_had_to_handle_a_fault_did_not_end_well() -> None:
    handled = Scope(name="turn", body=Throw(name="t", fault="x"), catches=(Catch(body=Empty(name="e")),))
    assert ran(loop(body=handled, enough="1")).status == "completed"
    assert fault_of(ran(loop(body=handled, enough="1", well=True))) == "completionConditionFailure"


def test_a_fault_in_a_turn_ends_the_loop() -> None:
    play = ran(loop(body=work(), parallel=True))
    play.finish(play.serial("job[1]"), failed("broken"))
    assert (fault_of(play), play.cancelled) == ("broken", 2)


def test_many_turns_that_may_be_too_many_come_in_pieces_all_the_same() -> None:
    play: Play = ran(loop("1", "700", parallel=True, enough="650"), number=0)
    while play.status == "running":
        [serial] = play.out
        play.proceed(serial)
    assert left(play, "number") == 650 * 651 // 2
