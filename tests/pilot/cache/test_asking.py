"""Which pilots of a site are asked for a file, and in which order."""

from random import Random

from mendflow.core.model.data import Holder, Neighbour
from mendflow.core.model.ids import PilotId
from mendflow.pilot.cache.neighbours import ASKED_MAX, REMEMBERED_MAX, NeighbourSelector


def near(name: str) -> Neighbour:
    return Neighbour(PilotId(name), name, "", f"{name}:7001", "key")


def asking(neighbours: int = 0) -> NeighbourSelector:
    made = NeighbourSelector(lambda: 100.0, Random(1))
    made.set_neighbours(near(f"n{number}") for number in range(neighbours))
    return made


def test_who_has_the_file_is_asked_first() -> None:  # PJ-11
    pilots = asking(40)
    pilots.set_holders([Holder("raw", near("holder"))])
    assert pilots.worth_asking("raw")[0] == near("holder")
    assert len(pilots.worth_asking("raw")) == ASKED_MAX
    assert near("holder") not in pilots.worth_asking("other")


def test_a_holder_that_is_a_neighbour_too_is_asked_once() -> None:
    pilots = asking(3)
    pilots.set_holders([Holder("raw", near("n1"))])
    asked = pilots.worth_asking("raw")
    assert asked[0] == near("n1") and len(asked) == 3


def test_a_holder_that_did_not_answer_is_left_alone_for_a_while() -> None:
    pilots = asking()
    pilots.set_holders([Holder("raw", near("holder"))])
    pilots.record_silence(near("holder"))
    assert pilots.worth_asking("raw") == []


def test_what_was_told_longest_ago_is_forgotten_first() -> None:
    pilots = asking()
    pilots.set_holders(Holder(f"file {number}", near("holder")) for number in range(REMEMBERED_MAX + 1))
    assert pilots.worth_asking("file 0") == []
    assert pilots.worth_asking(f"file {REMEMBERED_MAX}") == [near("holder")]
