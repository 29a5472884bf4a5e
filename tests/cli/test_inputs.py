"""Text from the command line becomes what the flow asks for, or is refused with a sentence."""

import re
from pathlib import Path

import pytest

from mendflow.cli.inputs import json_or_text, read_inputs
from mendflow.core.model.errors import InvalidRequest, NotFound
from mendflow.core.model.flow import Input

DECLARED = {
    "name": Input(type="string", required=True),
    "count": Input(type="number", default=3),
    "deep": Input(type="boolean"),
    "samples": Input(type="list"),
    "options": Input(type="map"),
    "table": Input(type="file"),
    "any": Input(),
}


def read(*pairs: str, file: str = "") -> dict[str, object]:
    return read_inputs(DECLARED, ["name=x", *pairs], file, flow="align")


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("name=42", "42"),
        ("name=a=b", "a=b"),
        ("name=", ""),
        ("name=@@home", "@home"),
        ("count=4", 4),
        ("count=1.5", 1.5),
        ("deep=yes", True),
        ("deep=False", False),
        ('samples=["a", "b"]', ["a", "b"]),
        ('options={"a": 1}', {"a": 1}),
        ("any=7", 7),
        ("any=seven", "seven"),
        ("any=null", None),
    ],
)
def test_a_value_is_read_by_the_declared_type(pair: str, value: object) -> None:
    assert read(pair)[pair.partition("=")[0]] == value


@pytest.mark.parametrize(
    ("pair", "told"),
    [
        ("count=many", "input count is a number"),
        ("count=true", "input count is a number"),
        ("deep=perhaps", "true or false"),
        ("samples=a,b", "a list in JSON"),
        ("samples={}", "a list in JSON"),
        ("options=[]", "a map in JSON"),
        ("samples=a,b", """Write --input 'samples=["a","b"]'"""),
        ("samples=*.txt", "a pattern is for an input of the type files"),
        ("nmae=x", "has no input nmae (did you mean `name`?); its inputs are: name, count"),
        ("name", "write --input NAME=VALUE"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_what_is_wanted(pair: str, told: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(told)):
        read(pair)


def test_a_value_in_place_of_a_file_of_inputs_is_told_its_option() -> None:
    with pytest.raises(InvalidRequest, match="one value is --input count=3"):
        read_inputs({"count": Input(type="number")}, [], "count=3", flow="f")


def test_a_file_in_place_of_a_value_is_told_its_option(tmp_path: Path) -> None:
    (tmp_path / "in.yaml").write_text("count: 3")
    with pytest.raises(InvalidRequest, match=r"or --inputs .*in\.yaml for a file of inputs"):
        read_inputs({"count": Input(type="number")}, [str(tmp_path / "in.yaml")], "", flow="f")


def test_all_missing_inputs_are_told_at_once() -> None:
    declared = {"a": Input(required=True), "b": Input(required=True), "c": Input()}
    with pytest.raises(InvalidRequest, match=r"needs a, b; give --input a=\.\.\. --input b=\.\.\."):
        read_inputs(declared, [], "", flow="f")


def test_a_value_may_come_from_a_file(tmp_path: Path) -> None:
    source = tmp_path / "list.json"
    source.write_text('["a"]')
    assert read(f"samples=@{source}")["samples"] == ["a"]
    with pytest.raises(NotFound, match="there is no file"):
        read("name=@nowhere.txt")


def test_pairs_go_over_the_file_of_inputs(tmp_path: Path) -> None:
    source = tmp_path / "inputs.yaml"
    source.write_text("name: from-file\ncount: 9\nsamples: [a, b]\n")
    values = read_inputs(DECLARED, ["count=1"], str(source), flow="align")
    assert values == {"name": "from-file", "count": 1, "samples": ["a", "b"]}


def test_a_file_of_inputs_that_is_no_map_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "inputs.json"
    source.write_text("[1]")
    with pytest.raises(InvalidRequest, match="must contain a map"):
        read(file=str(source))
    source.write_text("{")
    with pytest.raises(InvalidRequest, match="line 1, column 2: this is not JSON"):
        read(file=str(source))


def test_a_file_input_is_a_path_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("1,2")
    assert read("table=t.csv")["table"] == str(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("data/*.txt", ["1.txt", "10.txt", "2.txt"]),
        ("data/2.txt", ["2.txt"]),
        ("**/*.csv", ["a.csv"]),
        ('["data/2.txt", "data/1*.txt"]', ["2.txt", "1.txt", "10.txt"]),
        ("[]", []),
    ],
)
def test_an_input_of_files_is_a_pattern_from_here(  # DU-3
    text: str, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data" / "deep").mkdir(parents=True)
    for name in ("2.txt", "10.txt", "1.txt", "deep/a.csv"):
        (tmp_path / "data" / name).write_text(name)
    monkeypatch.chdir(tmp_path)
    found = read_inputs({"samples": Input(type="files")}, [f"samples={text}"], "", flow="align")["samples"]
    assert [Path(path).name for path in found] == names
    assert all(Path(path).is_absolute() for path in found)


def test_a_pattern_that_no_file_matches_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFound, match=r"input samples: no file matches \*\.dat here"):
        read_inputs({"samples": Input(type="files")}, ["samples=*.dat"], "", flow="align")


def test_messages_are_json_or_text() -> None:
    assert json_or_text('{"a": [1]}') == {"a": [1]}
    assert json_or_text("hello") == "hello"


def test_all_that_is_wrong_with_the_inputs_is_told_at_once() -> None:
    with pytest.raises(InvalidRequest) as told:
        read_inputs(DECLARED, ["count=many", "deep=perhaps", "nmae=x"], "", flow="align")
    for word in ("count is a number", "deep is true or false", "no input nmae", "needs name"):
        assert word in told.value.message


def test_a_file_input_is_a_path_with_or_without_the_at_sign(tmp_path: Path) -> None:
    (tmp_path / "data.in").write_text("x")
    for text in (f"{tmp_path}/data.in", f"@{tmp_path}/data.in"):
        assert read(f"table={text}")["table"] == str(tmp_path / "data.in")
    with pytest.raises(NotFound, match=r"gone\.in"):
        read(f"table={tmp_path}/gone.in")


def test_a_number_by_its_default_alone_may_be_a_version(tmp_path: Path) -> None:  # DU-1
    declared = {"version": Input(type="number", default=1.9, inferred=True), "n": Input(type="number", default=1.9)}
    with pytest.raises(InvalidRequest, match=r"1\.10 would become 1\.1; for a text write `version: \{type: string"):
        read_inputs(declared, ["version=1.10"], "", flow="f")
    assert read_inputs(declared, ["version=2.1", "n=1.10"], "", flow="f") == {"version": 2.1, "n": 1.1}
    given = tmp_path / "inputs.yaml"
    given.write_text("version: 1.10\n")
    with pytest.raises(InvalidRequest, match=r"inputs.yaml: input version is a number"):
        read_inputs(declared, [], str(given), flow="f")


def test_words_in_a_file_of_inputs_are_read_by_the_declared_type(tmp_path: Path) -> None:  # DU-1
    declared = {"s": Input(type="string"), "n": Input(type="number"), "b": Input(type="boolean"), "any": Input()}
    given = tmp_path / "inputs.yaml"
    given.write_text("s: 1.90\nn: 1e3\nb: yes\nany: [007, 1.10, 12345678901234567890, 5]\n")
    any_ = ["007", "1.10", 12345678901234567890, 5]
    found = read_inputs(declared, [], str(given), flow="f")
    assert found == {"s": "1.90", "n": 1000.0, "b": True, "any": any_}
    given = tmp_path / "inputs.json"
    given.write_text('{"s": 1.90, "n": 1.10, "b": true, "any": [1e-05, 5]}')
    assert read_inputs(declared, [], str(given), flow="f") == {"s": "1.90", "n": 1.1, "b": True, "any": [1e-05, 5]}
    given.write_text('{"any": [1.10]}')
    with pytest.raises(InvalidRequest, match=r'1.10 could be meant as a text; write 1.1 for the number, or "1.10"'):
        read_inputs(declared, [], str(given), flow="f")
