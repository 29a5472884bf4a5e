"""What is a value, and what is not."""

import math

import msgspec
import pytest

from mendflow.core.model.values import INT_MAX, INT_MIN, LEVELS_MAX, Value, check_made_value, check_value


def nested(levels: int) -> Value:
    value: Value = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value", [None, True, 0, INT_MIN, INT_MAX, 1.5, "", "é", [], {}, {"a": [1, {"b": None}]}, nested(LEVELS_MAX)]
)
def test_what_json_can_say_is_a_value(value: Value) -> None:
    assert check_value(value) == ""
    assert msgspec.json.decode(msgspec.json.encode(value)) == value


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (nested(LEVELS_MAX + 1), "deeper than 64 levels"),
        (nested(100_000), "deeper than 64 levels"),
        (INT_MAX + 1, "too large"),
        (INT_MIN - 1, "too large"),
        ([{"a": 10**30}], "too large"),
        (math.nan, "nan is not a number"),
        ({"a": [math.inf]}, "inf is not a number"),
        ({1: "a"}, "key 1"),
        (["\ud800"], "not Unicode"),
        ({"\ud800": 1}, "not Unicode"),
        (b"bytes", "bytes"),
        ({"a": {1, 2}}, "set"),
        ((1, 2), "tuple"),
    ],
)
def test_what_json_cannot_say_is_refused_with_the_reason(value: Value, reason: str) -> None:
    assert reason in check_value(value)


def test_a_value_that_contains_itself_is_refused() -> None:
    circle: list[Value] = []
    circle.extend([circle, circle])
    assert "deeper" in check_value(circle)


def test_a_value_made_of_itself_many_times_over_is_refused_before_it_is_unfolded() -> None:
    value: Value = 0
    for _ in range(50):
        value = [value, value]
    assert "more than 250,000 parts" in check_value(value)
    assert "more than 1,000,000 parts" in check_made_value(value)


def test_a_case_may_make_a_larger_value_than_it_is_given() -> None:
    rows: Value = [{"a": 1, "b": 2}] * 100_000
    assert "more than 250,000 parts" in check_value(rows)
    assert check_made_value(rows) == "", "it always could, so a replay can"
