"""What is data and what is text, where data may be written as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.model.text_data import data_or_text, number_text
from mendflow.core.model.values import Value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-5", -5),
        ("0", 0),
        ("0.1", 0.1),
        ("1.0", 1.0),
        ("0.00001", 0.00001),
        ("18446744073709551615", 2**64 - 1),
        ("true", True),
        ("false", False),
        ("null", None),
        ('"abc"', "abc"),
        ('"1.10"', "1.10"),
        (r'"\u00e9"', "\u00e9"),
        ("[1, 2]", [1, 2]),
        ('{"a": 1.50}', {"a": 1.5}),
        ('\n  {"a":\n 1}\n', {"a": 1}),
    ],
)
def test_what_is_written_as_json_writes_it_is_data(text: str, value: Value) -> None:  # DU-1
    found = data_or_text(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    "text",
    [
        "1.10",
        "3.10",
        "1234567e8",
        "1e5",
        "1E5",
        "1e16",
        "00123",
        "007",
        "+5",
        "-0",
        ".5",
        "5.",
        "1_000",
        "1,000",
        "0x1f",
        "\u0661",
        "NaN",
        "nan",
        "Infinity",
        "-Infinity",
        "True",
        "False",
        "None",
        "NULL",
        "yes",
        " 5",
        "5 ",
        " true",
        "",
        " ",
        "99999999999999999999999",
        "-9223372036854775809",
        "1" * 5000,
        "3.14159265358979323846",
        "1.10.3",
        "2024-01-01",
        "'abc'",
        '"abc',
        '"',
        '"a" b',
        "[1, 2",
        "{a: 1}",
        "[NaN]",
        "a=b",
        "Gr\u00f6\u00dfe",
    ],
)
def test_everything_else_is_text_and_loses_nothing(text: str) -> None:  # DU-1
    assert data_or_text(text) == text


@given(st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text())
def test_a_text_is_never_taken_for_a_number_that_is_written_otherwise(value: float | str) -> None:
    text = value if isinstance(value, str) else repr(value)
    found = data_or_text(text)
    assert found == text or type(found) not in (int, float) or number_text(found) == text
