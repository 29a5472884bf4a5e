"""What a person writes as a value is what a command gets, or it is refused: wherever values are written."""

import json
import tempfile
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendflow.cli.inputs import read_inputs
from mendflow.core.engine.plan import walk_activities
from mendflow.core.expressions import resolve_as_text
from mendflow.core.model.errors import BadFlow, InvalidRequest
from mendflow.core.model.flow import Assign, ForEach, Input, JobActivity
from mendflow.core.model.text_data import data_or_text, number_text
from mendflow.core.model.values import Value
from mendflow.formats.tables import read_table
from mendflow.formats.yaml import read_flow

WORDS = (
    *("007", "1.10", "1.0", "0.00001", "12345678901234567890", "123456789012345678901234", "1234567e8", "1e3", "1E5"),
    *("0x1F", "0o17", "1_000", "+5", ".5", "5.", "-0", "-0.0", "1e-05", "1e+22", "0.1000", "3.14159265358979323846"),
    *("on", "off", "yes", "no", "y", "n", "true", "True", "FALSE", "Null", "NULL", "NaN", ".inf", "22:30", "1:30:00"),
    *(
        "2024-01-31",
        "2024-01-31T08:00:00Z",
        "1.10.3",
        "9007199254740993",
        "0.30000000000000004",
        "100000000000000000000",
    ),
)
numbers = st.from_regex(r"[-+]?[0-9]{1,24}(\.[0-9]{1,24})?([eE][-+]?[0-9]{1,3})?", fullmatch=True)
written = st.sampled_from(WORDS) | numbers | st.floats(allow_nan=False, allow_infinity=False).map(repr)
words = written | st.integers().map(str) | st.from_regex(r"[A-Za-z0-9_.+][A-Za-z0-9_.+-]{0,12}", fullmatch=True)
typed = words.filter(lambda text: text != "null")


def in_a_command(value: Value) -> str:
    return resolve_as_text("${{ item }}", {"item": value}.__getitem__)


def flow_with(text: str) -> list[Value]:
    """The values of a flow file that has the text wherever data can be written."""
    source = (
        f"inputs: {{a: {text}, b: {{default: [{text}]}}}}\nvariables: {{v: {text}}}\njobs:\n"
        f"  one: {{for-each: [{text}], run: x, env: {{E: {text}}}}}\n  two: {{for-each: {{x: [{text}]}}, run: x}}\n"
        f"  three: {{python: 'mod:f', with: {{x: {text}}}}}\n"
    )
    flow = read_flow(source, "/f.yaml")
    found: list[Value] = [flow.inputs["a"].default, flow.inputs["b"].default[0]]
    for activity in walk_activities(flow):
        match activity:
            case Assign(copies=copies):
                found.append(copies[0].value)
            case ForEach(items=list() as items):
                found.append(items[0])
            case JobActivity(env=env, kwargs=kwargs):
                found += [*env.values(), *kwargs.values()]
    return found


@given(typed)
def test_what_stands_in_a_flow_file_is_what_a_command_gets(text: str) -> None:  # DU-1
    try:
        found = flow_with(text)
    except BadFlow as refused:
        assert "for the text" in str(refused) or "is a type" in str(refused)
        return
    assert [in_a_command(value) for value in found] == [text] * 7


@given(typed)
def test_what_is_given_on_the_command_line_is_what_a_command_gets(text: str) -> None:  # DU-1
    assert in_a_command(read_inputs({"x": Input()}, [f"x={text}"], "", flow="f")["x"]) == text
    assert read_inputs({"x": Input(type="string")}, [f"x={text}"], "", flow="f")["x"] == text


@given(typed)
def test_what_stands_in_a_file_of_inputs_is_what_a_command_gets(text: str) -> None:  # DU-1
    declared = {"x": Input(), "y": Input(), "s": Input(type="string")}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "inputs.yaml")
        file.write_text(f"x: {text}\ny: [{text}]\ns: {text}\n")
        try:
            found = read_inputs(declared, [], str(file), flow="f")
        except InvalidRequest as refused:
            assert "for the text" in refused.message
            return
    assert (in_a_command(found["x"]), in_a_command(found["y"][0]), found["s"]) == (text, text, text)


@given(numbers.filter(lambda text: not text.startswith("+")))
def test_a_number_in_json_keeps_its_value_and_its_zeros_or_is_refused(text: str) -> None:  # DU-1
    try:
        json.loads(text)
    except ValueError:
        return
    try:
        found = read_inputs({"x": Input(type="list")}, [f"x=[{text}]"], "", flow="f")["x"][0]
    except InvalidRequest:
        return
    shown = in_a_command(found)
    assert Decimal(shown) == Decimal(repr(float(text)) if isinstance(found, float) else text)
    if "e" not in text.lower() and Decimal(shown) == Decimal(text) and "e" not in shown:
        assert Decimal(shown).is_zero() or shown == text


@given(st.lists(st.lists(words, min_size=2, max_size=2), min_size=1, max_size=5))
def test_what_stands_in_a_table_is_what_a_command_gets(rows: list[list[str]]) -> None:  # DU-1
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "rows.csv")
        file.write_text("a,b\n" + "".join(f"{','.join(row)}\n" for row in rows))
        found = read_table(file, {})
    assert [[in_a_command(row["a"]), in_a_command(row["b"])] for row in found] == rows


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_in_a_command_reads_as_the_same_number(number: float) -> None:
    assert float(number_text(number)) == number
    assert data_or_text(number_text(number)) in (number, number_text(number))


@pytest.mark.parametrize(
    ("number", "text"),
    [(1.0, "1.0"), (0.00001, "0.00001"), (1e16, "10000000000000000.0"), (1e22, "1e+22"), (1e-8, "1e-08"), (3, "3")],
)
def test_a_fraction_keeps_its_point_and_has_no_exponent(number: float, text: str) -> None:
    assert in_a_command(number) == text
