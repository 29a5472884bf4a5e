"""Files that say which data sets there are: with times and sizes as people write them, and refused with the reason."""

from pathlib import Path

import pytest

from mendflow.core.model.data_sets import DataSetWish, Gathering, Watch
from mendflow.core.model.problems import Invalid
from mendflow.formats.data_sets import load_sets, read_sets

TIER0 = Path(__file__).parents[2] / "examples" / "tier0" / "sets.yaml"

GIVEN = """
data_sets:
  raw:
    gatherings:
      each: {flow: f, count: 1}
  merged:
    after: raw
    gatherings:
      merge: {flow: g, size: 2 GB, wait: 10 min, inputs: {files: "${{ files }}"}}
watches:
  incoming: {element: disk, prefix: in, data_set: raw, every: 5 s, stable: 1 min}
"""


def test_sets_gatherings_and_watches_are_read() -> None:  # PJ-9
    found = read_sets(GIVEN)
    merge = Gathering(
        name="merge", flow="g", size_bytes=2_000_000_000, wait_ms=600_000, inputs={"files": "${{ files }}"}
    )
    assert found.sets == [
        DataSetWish(name="raw", gatherings=(Gathering(name="each", flow="f", count=1),)),
        DataSetWish(name="merged", gatherings=(merge,), after=("raw",)),
    ]
    assert found.watches == [
        Watch(name="incoming", element="disk", prefix="in", data_set="raw", every_ms=5_000, stable_ms=60_000)
    ]


def test_the_file_of_tier0_is_sound() -> None:
    found = load_sets(TIER0)
    known = {wish.name for wish in found.sets}
    assert all(set(wish.after) <= known for wish in found.sets)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("data_sets: [a]", "data_sets has names and values"),
        ("data_set: {a: {}}", "did you mean `data_sets`"),
        ("data_sets: {a: {gathering: {}}}", "data set a has no 'gathering'.*did you mean `gatherings`"),
        ("data_sets: {a: {gatherings: {g: {flow: f, cuont: 1}}}}", "did you mean `count`"),
        ("data_sets: {a: {gatherings: {g: {flow: f, wait: soon}}}}", "wait 'soon' cannot be read"),
        ("data_sets: {a: {gatherings: {g: {count: 1}}}}", "flow"),
        ("data_sets: {a b: {}}", "no name for a data set"),
        ("watches: {w: {element: disk}}", "data_set"),
        ("{", "not YAML"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, reason: str) -> None:
    with pytest.raises(Invalid, match=reason) as told:
        read_sets(text, "sets.yaml")
    assert told.value.message.startswith("sets.yaml:")
