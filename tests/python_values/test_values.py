"""Values of Python as plain data and back: the same value of the same type, or an error that says what to do."""

import os
import subprocess
import sys
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum, Flag, auto
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import numpy
import pandas
import polars
import pytest

from mendflow.python_values.errors import BadPythonValue
from mendflow.python_values.readable import readable
from tests.python_values.kept_files import RoundTrip

BERLIN = ZoneInfo("Europe/Berlin")


@dataclass(frozen=True)
class Point:
    x: float
    y: float = 0.0


@dataclass
class Track:
    name: str
    points: tuple[Point, ...] = ()
    when: datetime | None = None
    parent: Optional["Track"] = None
    tags: set[str] = field(default_factory=set)
    type: str = "track"
    value: int = 0
    length: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self.length = float(len(self.points))


class Colour(Enum):
    RED = "r"
    GREEN = (0, 255, 0)


class Right(Flag):
    READ = auto()
    WRITE = auto()


class Pair(NamedTuple):
    left: int
    right: bytes = b""


class Model(msgspec.Struct):
    weights: dict[int, float]
    colour: Colour = Colour.RED


def takes(track: Track, colour: Colour, pair: Pair, model: Model, right: Right) -> None:
    """Knows these classes by its annotations."""


@pytest.fixture
def trip(tmp_path: Path) -> RoundTrip:
    return RoundTrip(tmp_path, takes)


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, 2.5, True, None, "ä"], "b": {"c": {}}, "d": 2**63},
        Track("a", (Point(1, 2), Point(3)), datetime(2026, 3, 29, 2, 30, tzinfo=BERLIN), Track("b"), {"x"}),
        [Colour.RED, Colour.GREEN, Right.READ, Right.READ | Right.WRITE],
        Pair(1, b"\0\xff"),
        Model({1: 0.5}, Colour.GREEN),
        {1: "a", (1, (2, 3)): "b", None: "c", date(2026, 1, 1): "d"},
        {frozenset({1, 2}), ("a", 1)},
        {"$python": "date", "value": "2026-01-01"},
        {"$file": "a" * 63, "$spilled": "x", "$path": "y", "$too-large": 1},
        [{"$path": "a.txt"}, {"$spilled": "b" * 64, "bytes": 3}],
        [float("inf"), -float("inf"), 2**64, -(10**40), 1e308, complex(1, float("inf")), Decimal("1.10")],
        [datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC), timezone(timedelta(hours=1)).utcoffset(None)],
        [date(1, 1, 1), timedelta(-3, 5, 7), datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=1).timetz()],
        [UUID(int=5), BERLIN, PurePosixPath("/a/b"), bytearray(b"x"), b""],
    ],
)
def test_a_value_comes_back_as_it_was(trip: RoundTrip, value: Any) -> None:  # DU-8
    found = trip(value)
    assert found == value and type(found) is type(value) and repr(found) == repr(value)


def test_a_time_zone_is_kept_by_its_name_and_its_fold(trip: RoundTrip) -> None:  # DU-8
    second = datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=1)
    found = trip(second)
    assert (found.tzinfo.key, found.fold, found.utcoffset()) == ("Europe/Berlin", 1, timedelta(hours=1))
    named = trip(datetime(2026, 1, 1, tzinfo=timezone(timedelta(seconds=3723, microseconds=1), "ship")))
    assert named.tzname() == "ship" and named.utcoffset() == timedelta(seconds=3723, microseconds=1)


ODD: Any = {1j, len}


class Moon(tzinfo):
    def utcoffset(self, _: datetime | None) -> timedelta:
        return timedelta()

    dst = tzname = utcoffset  # type: ignore[assignment]  # nobody asks


class Stamp(datetime):
    """Means more than a datetime."""


def inner_class() -> Any:
    @dataclass
    class Inside:
        x: int = 1

    return Inside()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": [1, object()]}, "its ['a'][1] is a object, which has no form as data; return plain data, a dataclass"),
        (Track("a", parent=Track("b", tags=ODD)), "its .parent.tags is a builtin_function_or_method"),
        ([datetime(2026, 1, 1, tzinfo=Moon())], "use zoneinfo.ZoneInfo or datetime.timezone"),
        (Stamp(2026, 1, 1), "it is a tests.python_values.test_values.Stamp"),
        (inner_class(), "move it to the top of its file"),
        (numpy.array([{}, 1], dtype=object), "dtype object), which only pickle could write"),
        (numpy.ma.masked_array([1.0], [True]), "return it.filled(numpy.nan), or it.data and numpy.ma.getmaskarray(it)"),
        (numpy.datetime64("2026-01-01", "ns"), "return it as an array"),
        (Path("/nowhere/at/all"), "there is no such file when the job has ended; for the mere path return str(path)"),
        (Path("/"), "is the path of the folder /"),
        ((i for i in "ab"), "it is a generator"),
        ([pandas.DataFrame({"a": [object()]})], "Parquet cannot hold"),
    ],
)
def test_what_has_no_form_is_refused_with_its_place_and_what_to_do(trip: RoundTrip, value: Any, said: str) -> None:
    with pytest.raises(BadPythonValue) as refusal:
        trip.written(value)
    assert said in str(refusal.value)


def test_nothing_that_is_read_is_looked_up_beyond_what_the_function_knows(tmp_path: Path) -> None:  # DU-8
    known = RoundTrip(tmp_path)  # a function of another module, without annotations
    data, made = known.written(Point(1, 2))
    with pytest.raises(BadPythonValue) as refusal:
        known.read(data, made=made)
    assert "is a tests.python_values.test_values.Point, which the function does not know" in str(refusal.value)
    for name in ("os.system", "subprocess.Popen", "builtins.eval", "enum.Enum"):
        for kind in ("dataclass", "enum", "struct", "namedtuple"):
            with pytest.raises(BadPythonValue, match="does not know"):
                known.read({"$python": f"{kind} {name}", "x": 1})


@pytest.mark.parametrize(
    "data",
    [
        {"$python": "datetime", "value": "soon"},
        {"$python": "datetime"},
        {"$python": "timedelta", "value": [1, 2, 3, 4, 5, 6, 7, 8]},
        {"$python": "bytes", "value": "%%%"},
        {"$python": "numpy", "value": "AAAA"},
        {"$python": "set", "value": [[1]]},
        {"$python": "dict", "value": 3},
        {"$python": "zone", "value": "../../etc/passwd"},
        {"$python": "other", "value": 1},
        {"$python": 5},
        {"$python": "enum Colour", "name": "BLUE"},
        {"$python": "dataclass Point", "x": 1, "z": 2},
        {"$python": "dataclass Point", "y": 1},
    ],
)
def test_what_only_looks_like_a_value_is_refused(trip: RoundTrip, data: Any) -> None:
    with pytest.raises(BadPythonValue):
        trip.read(data)


Metres = NewType("Metres", float)


@pytest.mark.parametrize(
    ("data", "annotation", "wanted"),
    [
        ({"x": 1, "y": 2}, Point, Point(1, 2)),
        ({"x": 1}, Point | None, Point(1)),
        (None, Optional[Point], None),
        ([{"x": 1}], list[Point], [Point(1)]),
        ({"a": {"x": 1}}, dict[str, Point], {"a": Point(1)}),
        ({"1": 2.5}, dict[int, float], {1: 2.5}),
        ([1, "a"], tuple[int, str], (1, "a")),
        ([[1, 2], [3]], tuple[tuple[int, ...], ...], ((1, 2), (3,))),
        ([1, 2, 1], set[int], {1, 2}),
        (["2026-01-01"], list[date], [date(2026, 1, 1)]),
        ("2026-01-01T10:00:00+01:00", datetime | str, datetime(2026, 1, 1, 9, tzinfo=UTC)),
        ("r", Colour, Colour.RED),
        ("GREEN", Colour, Colour.GREEN),
        ([1, ""], Pair, Pair(1, "")),  # type: ignore[arg-type]  # texts are not taken for bytes
        ({"weights": {"1": 2}, "colour": "r"}, Model, Model({1: 2})),
        ("a/b", Path, Path("a/b")),
        (3, Annotated[Metres, "m"], 3),
        ("x", Literal["x", "y"], "x"),
        (3, int | str, 3),
        ("1.10", Decimal, Decimal("1.10")),
        ({"a": 1}, "Nowhere", {"a": 1}),
    ],
)
def test_plain_data_become_what_an_annotation_asks_for(
    trip: RoundTrip, data: Any, annotation: Any, wanted: Any
) -> None:  # DU-8
    found = trip.read(data, annotation)
    assert found == wanted and type(found) is type(wanted)


@pytest.mark.parametrize(
    ("data", "annotation", "said"),
    [
        ("tomorrow", date, "it is 'tomorrow', which is no datetime.date such as 2026-03-01"),
        ({"x": 1, "w": 2}, Point, "has the field `w`, which tests.python_values.test_values.Point has not"),
        ([{"x": 1}, {}], list[Point], "its [1] lacks the field `x`"),
        (5, Point, "it is 5, and a tests.python_values.test_values.Point is wanted: give a map of its fields"),
        ({"weights": {}, "colour": "blue"}, Model, "its .colour is 'blue', which is none of RED, GREEN"),
    ],
)
def test_what_does_not_fit_an_annotation_is_refused(trip: RoundTrip, data: Any, annotation: Any, said: str) -> None:
    with pytest.raises(BadPythonValue) as refusal:
        trip.read(data, annotation)
    assert said in str(refusal.value)


def test_classes_made_from_those_of_json_are_read_as_these(trip: RoundTrip) -> None:
    found = trip(
        [OrderedDict(a=1), numpy.float64(1.5), numpy.int8(3), numpy.bool_(True), numpy.float32(0.5), (1, (2,))]
    )
    assert found == [{"a": 1}, 1.5, 3, True, 0.5, [1, [2]]]
    assert [type(each) for each in found] == [dict, float, int, bool, float, list]


def test_a_field_of_a_record_can_be_asked_for_in_an_expression(trip: RoundTrip) -> None:
    data, _ = trip.written(Point(1, 2))
    assert data == {"$python": "dataclass tests.python_values.test_values.Point", "x": 1, "y": 2}


@pytest.mark.parametrize("dtype", ["f8", "<i2", ">u4", "?", "c16", "U7", "S3", "M8[ns]", "m8[s]", "f2", "i4,(2,)f8"])
@pytest.mark.parametrize("shape", [(), (0, 3), (7,), (40, 50), (3, 4, 5)])
def test_an_array_comes_back_with_its_dtype_shape_and_order(trip: RoundTrip, dtype: str, shape: Any) -> None:  # DU-8
    whole = numpy.arange(numpy.prod(shape, dtype=int) * 2).astype("i8").reshape(*shape, 2)
    array = numpy.zeros((*shape, 2), dtype) if "," in dtype else whole.astype("f8").astype(dtype)
    for given in (array, numpy.asfortranarray(array), array[..., ::2]):
        found = trip(given)
        assert type(found) is numpy.ndarray and found.dtype == given.dtype and found.shape == given.shape
        assert found.tobytes() == given.tobytes()


def test_a_large_array_is_mapped_and_what_is_written_to_it_stays_out_of_the_file(trip: RoundTrip) -> None:  # DU-8
    array = numpy.arange(400_000.0)
    data, made = trip.written({"all": array, "again": [array]})
    assert data["all"] == data["again"][0] and data["all"]["python"] == "numpy"
    assert data["all"]["bytes"] == os.path.getsize(made.paths[0]) == array.nbytes + 128
    found = trip.read(data, made=made)["all"]
    assert isinstance(found.base, numpy.memmap) and type(found) is numpy.ndarray
    found[:] = -1  # private to whoever reads
    assert numpy.array_equal(numpy.load(made.paths[0]), array)


def test_a_list_is_an_array_where_one_is_asked_for(trip: RoundTrip) -> None:
    found = trip.read([[1, 2], [3, 4]], numpy.typing.NDArray[numpy.float64])
    assert found.shape == (2, 2) and trip.read([1.5], numpy.ndarray).dtype == numpy.float64


def test_tables_of_pandas_come_back_as_parquet_files(trip: RoundTrip) -> None:  # DU-8
    frame = pandas.DataFrame(
        {"a": [1, 2], "when": pandas.to_datetime(["2026-01-01", None])}, index=pandas.Index(["x", "y"], name="key")
    )
    pandas.testing.assert_frame_equal(trip(frame), frame)
    for series in (frame["a"], pandas.Series([1.5, 2.5])):
        pandas.testing.assert_series_equal(trip(series), series)
    assert trip.written(frame)[0]["python"] == "pandas.DataFrame"


def test_tables_of_polars_come_back_as_parquet_files(trip: RoundTrip) -> None:
    frame = polars.DataFrame({"a": [1, 2], "b": ["x", None]})
    assert trip(frame).equals(frame) and trip(frame["b"]).equals(frame["b"])


def test_large_bytes_and_files_are_references(trip: RoundTrip, tmp_path: Path) -> None:  # DU-8
    (tmp_path / "made").mkdir()
    file = tmp_path / "made" / "tabelle ä.csv"
    file.write_text("a,b\n")
    data, made = trip.written([b"x" * 5000, file, file])
    assert [each["python"] for each in data] == ["bytes", "path", "path"] and len(made.paths) == 2
    assert data[1]["name"] == "tabelle ä.csv" and data[1]["bytes"] == 4
    found = trip.read(data, made=made)
    assert found[0] == b"x" * 5000 and found[1].read_text() == "a,b\n"


def test_a_summary_shows_values_without_their_tags(trip: RoundTrip) -> None:
    value = [
        Track("a", (Point(1),), datetime(2026, 1, 1, tzinfo=BERLIN)),
        Colour.RED,
        {1: timedelta(2)},
        numpy.zeros(2),
    ]
    shown = readable(trip.written(value)[0])
    assert shown[0]["when"] == "2026-01-01T00:00:00 Europe/Berlin" and shown[0]["points"] == [{"x": 1, "y": 0.0}]
    assert shown[1:] == ["Colour.RED", {"1": "2 days, 0:00:00"}, "an array"]


def test_no_library_for_arrays_is_loaded_unless_a_value_needs_it() -> None:  # DU-8
    code = (
        "import sys, mendflow.pilot.worker.process, mendflow.formats.python.flows\n"
        "assert not {'numpy', 'pandas', 'polars', 'pickle'} & set(sys.modules), sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
