"""Whoever works on a part of a loop's results is told of, with the groups that lack something. # DU-3"""

from pathlib import Path

import msgspec
import pytest

from mendflow.core.engine.partial_results import LostIteration, partial_results, removal_reason
from mendflow.core.model.faults import CANCELLED_WORDS, REMOVED_WORDS, Category, Fault, with_reason
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.values import Value
from mendflow.core.model.views import ItemView
from mendflow.formats import load

FLOW = """
name: lanes
inputs: {lanes: {type: list, default: []}}
jobs:
  clean:
    for-each:
      lane: ${{ inputs.lanes }}
      tolerate: 2
      collect: {sample: "${{ lane.sample }}", clean: "${{ jobs.clean.files.clean }}"}
    run: echo x > clean.txt
    files: {clean: clean.txt}
  merge:
    for-each: {group: "${{ jobs.clean.outputs.filter(o, o != null).group_by('sample') }}"}
    run: echo ${{ quote(group.key) }}
  count: {run: "echo ${{ jobs.clean.outputs.filter(o, o != null).size() }}"}
  beside: {run: echo nothing}
  never: {run: "echo ${{ jobs.clean.outputs.size() }}"}
"""
LANES: dict[str, Value] = {
    "lanes": [{"sample": name, "lane": lane} for name, lane in (("a", 1), ("a", 2), ("b", 1), ("c", 1))]
}
RAN = {"clean", "merge", "count", "beside"}


@pytest.fixture
def flow(tmp_path: Path) -> Flow:
    (tmp_path / "lanes.yaml").write_text(FLOW)
    return load(str(tmp_path / "lanes.yaml"))


def lost(*places: int, state: str = "failed") -> list[LostIteration]:
    return [LostIteration(f"clean[{place}]", f"clean[{place}]", state) for place in places]


def sentences(flow: Flow, missing: list[LostIteration], inputs: dict[str, Value] = LANES) -> dict[str, str]:
    return {each.name: each.sentence for each in partial_results(flow, inputs, missing, RAN)}


def test_a_case_that_lost_nothing_is_not_told_of(flow: Flow) -> None:
    assert sentences(flow, []) == {}


def test_those_that_ask_for_the_loop_and_ran_are_told_of_and_no_others(flow: Flow) -> None:
    told = sentences(flow, lost(1))
    assert told.keys() == {"merge", "count"}
    assert told["count"] == "count ran without the results of clean[1], which failed"


@pytest.mark.parametrize(
    ("places", "groups"),
    [
        ((1,), "groups by sample: a incomplete"),
        ((3,), "groups by sample: c missing as a whole"),
        ((0, 1), "groups by sample: a missing as a whole"),
        ((1, 3), "groups by sample: a incomplete; c missing as a whole"),
    ],
)
def test_the_groups_that_lack_something_are_named(flow: Flow, places: tuple[int, ...], groups: str) -> None:
    assert sentences(flow, lost(*places))["merge"].endswith(f"; {groups}")


def test_groups_that_cannot_be_known_are_not_invented(flow: Flow) -> None:
    assert "lack them, or are missing" in sentences(flow, lost(1), {"lanes": []})["merge"]


def test_an_iteration_that_was_cancelled_is_told_as_such(flow: Flow) -> None:
    assert "clean[1], which was cancelled" in sentences(flow, lost(1, state="cancelled"))["count"]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (with_reason(CANCELLED_WORDS, "the lane is bad"), "the lane is bad"),
        (with_reason(REMOVED_WORDS, "the lane is bad"), "the lane is bad"),
        (with_reason(CANCELLED_WORDS, ""), ""),
        (with_reason(REMOVED_WORDS, ""), ""),
        ("cancelled by the owner of the lane", "cancelled by the owner of the lane"),
        (with_reason(CANCELLED_WORDS, "it was removed: see the log"), "it was removed: see the log"),
    ],
)
def test_the_reason_of_who_cancelled_an_item_is_told_as_it_was_given(message: str, reason: str) -> None:
    item = ItemView(
        case=CaseId("c"), item=ItemId("clean[0]"), name="clean", kind="job", serial=1, state="cancelled", reason=message
    )
    assert removal_reason(item) == reason
    fault = Fault(name="cancelled", category=Category.CANCELLED, message=message)
    assert removal_reason(msgspec.structs.replace(item, reason="", fault=fault)) == reason
