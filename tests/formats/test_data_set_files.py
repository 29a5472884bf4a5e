"""Files that say which data sets there are: with times and sizes as people write them, and refused with the reason."""

from pathlib import Path

import pytest

from mendflow.core.model.data_sets import DataSetSpec, FolderWatch, Gathering
from mendflow.core.model.errors import BadFile
from mendflow.formats.data_sets import load_data_set_file, read_data_set_file

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
    found = read_data_set_file(GIVEN)
    merge = Gathering(
        name="merge", flow="g", size_bytes=2_000_000_000, wait_ms=600_000, inputs={"files": "${{ files }}"}
    )
    assert found.sets == [
        DataSetSpec(name="raw", gatherings=(Gathering(name="each", flow="f", count=1),)),
        DataSetSpec(name="merged", gatherings=(merge,), after=("raw",)),
    ]
    assert found.watches == [
        FolderWatch(name="incoming", element="disk", prefix="in", data_set="raw", every_ms=5_000, stable_ms=60_000)
    ]


def test_the_file_of_tier0_is_sound() -> None:
    found = load_data_set_file(TIER0)
    known = {wish.name for wish in found.sets}
    assert all(set(wish.after) <= known for wish in found.sets)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("data_sets: [a]", "1:12: data_sets has names and values, not a list"),
        ("data_set: {a: {}}", "1:1: the file has no 'data_set'.*did you mean `data_sets`"),
        ("data_sets: {a: {gathering: {}}}", "1:17: data set a has no 'gathering'.*did you mean `gatherings`"),
        ("data_sets: {a: {gatherings: {g: {flow: f, cuont: 1}}}}", "1:43: gathering g of .*did you mean `count`"),
        ("data_sets: {a: {gatherings: {g: {flow: f, wait: soon}}}}", "1:43: .*wait 'soon' cannot be read"),
        ("data_sets: {a: {gatherings: {g: {flow: f, count: many}}}}", "1:43: .*count: Expected `int`, got `str`"),
        ("data_sets: {a: {gatherings: {g: {count: 1}}}}", "1:30: gathering g of data set a needs `flow`"),
        ("data_sets: {a: {after: [{b: c}]}}", "1:25: `after` has the names of data sets, not a map"),
        ("data_sets: {a b: {}}", "1:13: 'a b' is not a valid name for a data set"),
        ("data_sets: {a: {after: a}}", "1:13: data set a cannot come after itself$"),
        ("watches: {w: {element: disk}}", "1:11: watch w needs `data_set`"),
        ("data_sets: {a: {}, a: {}}", "1:20: `a` is given twice"),
        ("{", "not YAML"),
        ("# nothing", "the file is empty; it has `data_sets:` or `watches:`"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, reason: str) -> None:
    with pytest.raises(BadFile, match=f"^sets.yaml:.*{reason}"):
        read_data_set_file(text, "sets.yaml")


def test_all_that_is_wrong_is_told_at_once() -> None:
    text = """
data_sets:
  a:
    gatherings:
      g: {flow: f, count: -1, inputs: {x: "${{ fiels }}"}}
      h: {count: 1}
  b c: {aftr: a}
watches:
  w: {element: disk, data_set: a, every: soon, stable: never}
"""
    with pytest.raises(BadFile) as told:
        read_data_set_file(text)
    assert [problem.line for problem in told.value.problems] == [5, 5, 6, 7, 7, 9, 9]


def test_sets_in_a_circle_are_refused() -> None:
    with pytest.raises(BadFile, match="in a cycle: x after z after y after x") as told:
        read_data_set_file("data_sets: {w: {after: x}, x: {after: [w2, z]}, y: {after: x}, z: {after: y}}")
    assert [problem.column for problem in told.value.problems] == [28, 49, 64]
