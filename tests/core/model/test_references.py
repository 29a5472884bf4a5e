"""What in a value stands for a file, and what only looks like it."""

import pytest

from mendflow.core.expressions.text_values import too_large
from mendflow.core.model.references import foreign_reference, malformed_reference, named_file
from mendflow.core.model.values import FileRef, Value, file_of, spilled_file, spilled_value

REF = FileRef(sha256="ab" * 32, bytes=3, name="a.txt", logical="/store/a", executable=True)


def test_a_reference_is_read_as_it_was_written() -> None:
    assert file_of(REF.as_value()) == REF
    assert file_of({"$file": REF.sha256}) == FileRef(sha256=REF.sha256, bytes=0, name="")
    assert spilled_file(spilled_value(REF)) == FileRef(sha256=REF.sha256, bytes=3, name="value.json")


@pytest.mark.parametrize(
    "change",
    [
        {"$file": "../../../../etc/hostname"},
        {"$file": "AB" * 32},
        {"$file": 5},
        {"bytes": "abc"},
        {"bytes": -1},
        {"bytes": 1.5},
        {"bytes": True},
        {"bytes": 2**60},
        {"name": None},
        {"logical": 3},
    ],
    ids=str,
)
def test_what_is_not_well_formed_is_plain_data_and_no_file(change: dict[str, Value]) -> None:
    value = {**REF.as_value(), **change}
    assert file_of(value) is None
    assert "like a reference to a file, and is none" in malformed_reference({"deep": [value]})


@pytest.mark.parametrize("value", [{"$spilled": "x"}, {"$spilled": "ab" * 32, "bytes": "many"}, {"$spilled": None}])
def test_a_spilled_value_that_is_not_well_formed_is_no_file_and_can_be_told(value: dict[str, Value]) -> None:
    assert spilled_file(value) is None
    assert "0 kB" in str(too_large("it", value))
    assert malformed_reference(value, spilled=True)


def test_a_reference_names_its_place() -> None:
    value = {"a": [1, {"b": REF.as_value()}]}
    assert foreign_reference(value, {named_file(REF)}) == ""
    assert foreign_reference(value, ()).startswith("`a[1].b` refers to the file abababababab...")
