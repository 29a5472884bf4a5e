"""Whatever a job returns is what the next one gets: dataclasses, times, bytes, files, dicts of any look."""

import dataclasses
import tempfile
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import example, given
from hypothesis import strategies as some

from tests.python_values.kept_files import RoundTrip


@dataclass
class Node:
    name: str
    when: datetime | date | None = None
    content: bytes = b""
    took: timedelta = timedelta()
    below: "list[Node]" = field(default_factory=list)
    sizes: dict[int, tuple[float, ...]] = field(default_factory=dict)
    other: Any = None


def takes(node: Node) -> None:
    """Knows the class by its annotation."""


offsets = some.timedeltas(timedelta(hours=-23, minutes=-59), timedelta(hours=23, minutes=59))
zones = (
    some.none()
    | some.builds(timezone, offsets)
    | some.sampled_from(
        [
            ZoneInfo(name)
            for name in ("UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu")
        ]
    )
)
texts = some.text(some.characters(exclude_categories=["Cs"]), max_size=20)
datetimes = some.datetimes(timezones=zones, allow_imaginary=True).flatmap(
    lambda found: some.sampled_from([found, found.replace(fold=1)])
)
numbers = some.integers() | some.floats(allow_nan=False) | some.booleans()
keys = texts | some.sampled_from(["$python", "$file", "$spilled", "$path", "$too-large", "value", "bytes", "python"])
others: list[some.SearchStrategy[Any]] = [
    some.dates(),
    some.timedeltas(),
    some.times(timezones=some.none() | some.just(ZoneInfo("UTC"))),
    some.decimals(allow_nan=False),
    some.uuids(),
]
scalars: some.SearchStrategy[Any] = some.one_of(
    some.none(), numbers, texts, some.binary(max_size=9000), datetimes, *others
)
hashables: some.SearchStrategy[Any] = some.integers() | texts | some.dates() | some.tuples(some.integers(), texts)
nodes: some.SearchStrategy[Node] = some.deferred(
    lambda: some.builds(
        Node,
        texts,
        some.none() | datetimes | some.dates(),
        some.binary(max_size=5000),
        some.timedeltas(),
        some.lists(nodes, max_size=2),
        some.dictionaries(some.integers(), some.lists(some.floats(allow_nan=False), max_size=3).map(tuple), max_size=2),
        values,
    )
)
values: some.SearchStrategy[Any] = some.recursive(
    scalars,
    lambda inner: (
        some.lists(inner, max_size=3)
        | some.dictionaries(keys, inner, max_size=3)
        | some.dictionaries(hashables, inner, max_size=3)
        | some.sets(hashables, max_size=3)
        | some.frozensets(hashables, max_size=3)
    ),
    max_leaves=8,
)


def is_same(found: Any, given: Any) -> bool:
    """The same value of the same type, through and through: 1 and True are equal, and not the same."""
    if type(found) is not type(given):
        return False
    if isinstance(given, list | tuple):
        return len(found) == len(given) and all(map(is_same, found, given))
    if isinstance(given, dict):
        return list(found) == list(given) and all(is_same(found[key], given[key]) for key in given)
    if dataclasses.is_dataclass(given):
        return all(is_same(getattr(found, each.name), getattr(given, each.name)) for each in dataclasses.fields(given))
    if isinstance(given, datetime | time):
        zone = type(found.tzinfo) is type(given.tzinfo) and str(found.tzinfo) == str(given.tzinfo)
        return zone and found.fold == given.fold and found.replace(tzinfo=None) == given.replace(tzinfo=None)
    return bool(found == given)


@given(values | nodes)
@example({"$python": "tuple", "value": []})
@example({"$file": "0" * 64, "$python": 1})
def test_what_one_job_returns_is_what_the_next_one_gets(value: Any) -> None:  # DU-8
    with tempfile.TemporaryDirectory() as folder:
        assert is_same(RoundTrip(Path(folder), takes)(value), value)


@given(nodes)
def test_an_annotation_changes_nothing_of_what_has_its_class(node: Node) -> None:  # DU-8
    with tempfile.TemporaryDirectory() as folder:
        trip = RoundTrip(Path(folder), takes)
        assert is_same(trip(node, Node), node) and is_same(trip([node, None], list[Node | None]), [node, None])


@given(some.binary(max_size=100_000), some.text(some.characters(categories=["L", "N"]), min_size=1, max_size=30))
def test_a_file_comes_back_with_its_content_and_its_name(content: bytes, name: str) -> None:  # DU-8
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as elsewhere:
        path = Path(elsewhere, name)
        path.write_bytes(content)
        found = RoundTrip(Path(folder), takes)({"files": [path]})["files"][0]
        assert found.read_bytes() == content and found.name == name


@given(datetimes)
def test_a_moment_stays_the_same_moment(moment: datetime) -> None:  # DU-8
    with tempfile.TemporaryDirectory() as folder:
        found = RoundTrip(Path(folder), takes)(moment)
        assert found.utcoffset() == moment.utcoffset() and found.tzname() == moment.tzname()
