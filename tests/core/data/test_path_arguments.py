"""Files among the arguments of a function become paths in the job's folder, wherever they stand."""

import pytest

from mendflow.core.data.path_arguments import paths_of_argument, with_placed_files
from mendflow.core.model.values import Value


def file(name: str, digit: str = "a") -> dict[str, Value]:
    return {"$file": digit * 64, "bytes": 3, "name": name}


A, B = file("a.txt"), file("b.txt", "b")


@pytest.mark.parametrize(
    ("argument", "paths"),
    [
        (A, "data/a.txt"),
        ([A, B], ["data/a.txt", "data/b.txt"]),
        ([A, A], ["data/0-a.txt", "data/1-a.txt"]),
        ([A, None], ["data/a.txt", None]),
    ],
)
def test_a_file_or_a_list_of_files_is_paths_below_the_name_of_the_argument(argument: Value, paths: Value) -> None:
    placed, inputs = with_placed_files(argument, "data")
    assert inputs == {"data/": argument}
    assert paths_of_argument(placed) == paths  # DU-3


def test_files_inside_other_data_are_paths_too_and_the_rest_stays() -> None:
    placed, inputs = with_placed_files({"name": "x", "reads": A, "more": [1, B]}, "row")
    assert placed["name"] == "x" and placed["more"][0] == 1
    assert paths_of_argument(placed["reads"]) == "row/1/a.txt"
    assert paths_of_argument(placed["more"][1]) == "row/2/1/b.txt"
    assert inputs == {"row/1/": A, "row/2/1/": B}


@pytest.mark.parametrize(
    "argument",
    [
        1,
        "a.txt",
        None,
        [],
        {"x": [1, 2]},
        {**A, "python": "array"},
        {"$path": "parts", "of": [A]},
        {"$spilled": "a" * 64, "bytes": 1},
    ],
)
def test_what_is_no_file_stays_as_it_is(argument: Value) -> None:
    assert with_placed_files(argument, "data") == (argument, {})
