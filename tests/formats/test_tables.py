"""Tables: what their cells are, and what is refused, with its place."""

import os
from pathlib import Path

import pytest

from mendflow.cli.inputs import read_inputs
from mendflow.core.engine.elements import short
from mendflow.core.model.errors import BadFlow, InvalidRequest
from mendflow.core.model.flow import ForEach, Input
from mendflow.core.model.values import Value
from mendflow.formats.tables import PROBLEMS_MAX, BadTable, read_table
from tests.formats.conftest import Complaints, Reader
from tests.formats.python_flows import Loader, module_of, parts

ROWS = [{"name": "a", "n": "007"}, {"name": "b", "n": "1.10"}]


def rows_of(tmp_path: Path, name: str, content: str | bytes, **columns: str) -> list[Value]:
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_table(file, columns)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("s.csv", "name,n\na,007\nb,1.10\n"),
        ("s.csv", "\ufeffname,n\r\na,007\r\nb,1.10\r\n"),
        ("s.csv", "name,n\n\na,007\n , \nb,1.10"),
        ("s.csv", 'name, n\n"a", 007\n b ,"1.10"\n'),
        ("s.csv", "name;n\na;007\nb;1.10\n"),
        ("s.tsv", "name\tn\na\t007\nb\t1.10\n"),
        ("s.yaml", "- {name: a, n: 007}\n- name: b\n  n: 1.10\n"),
        ("s.yml", "[{name: a, n: '007'}, {name: b, n: 1.10}]"),
        ("s.json", '[{"name": "a", "n": "007"}, {"name": "b", "n": "1.10"}]'),
    ],
)
def test_a_table_is_its_rows_and_its_cells_are_as_written(tmp_path: Path, name: str, content: str) -> None:  # DU-1
    assert rows_of(tmp_path, name, content) == ROWS


def test_a_cell_may_hold_separators_quotes_and_lines(tmp_path: Path) -> None:
    found = rows_of(tmp_path, "s.csv", 'name,text\na,"x, ""y""\nz"\n')
    assert found == [{"name": "a", "text": 'x, "y"\nz'}]


def test_an_empty_cell_in_quotes_is_a_row_and_an_empty_line_is_none(tmp_path: Path) -> None:  # DU-1
    assert rows_of(tmp_path, "s.csv", 'name\na\n""\n\n  \nb\n') == [{"name": "a"}, {"name": ""}, {"name": "b"}]


def test_many_missing_files_are_told_by_the_first_and_their_folder_is_listed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fq").mkdir()
    (tmp_path / "fq" / "sample-1.fq").write_text("x")
    listed: list[Path] = []
    real = os.listdir

    def noted(folder: Path) -> list[str]:
        listed.append(folder)
        return real(folder)

    monkeypatch.setattr(os, "listdir", noted)
    with pytest.raises(BadTable) as refused:
        rows_of(tmp_path, "s.csv", "file\n" + "fq/sampel-1.fq\n" * 800, file="file")
    assert len(refused.value.problems) == PROBLEMS_MAX
    assert "did you mean `sample-1.fq`?" in refused.value.problems[0].message
    assert listed == [tmp_path / "fq"]


def test_a_table_that_cannot_be_read_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "s.csv").symlink_to(tmp_path / "s.csv")
    with pytest.raises(BadTable, match="the file cannot be read: Too many levels of symbolic links"):
        read_table(tmp_path / "s.csv", {})


def test_a_table_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "s.csv").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(BadTable, match="larger than 10 MB"):
        read_table(tmp_path / "s.csv", {})


def test_declared_columns_have_their_types_and_an_empty_cell_is_null(tmp_path: Path) -> None:  # DU-1
    (tmp_path / "fq").mkdir()
    (tmp_path / "fq" / "a.fq").write_text("x")
    content = "n,ok,file,text\n1.10,yes,fq/a.fq,\n,,,x\n5,0,lfn:/store/a,\n"
    found = rows_of(tmp_path, "s.csv", content, n="number", ok="boolean", file="file", text="string")
    assert found == [
        {"n": 1.1, "ok": True, "file": str(tmp_path / "fq" / "a.fq"), "text": ""},
        {"n": None, "ok": None, "file": None, "text": "x"},
        {"n": 5, "ok": False, "file": "lfn:/store/a", "text": ""},
    ]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("s.csv", "", "s.csv: the table is empty; its first line has the names of its columns"),
        ("s.csv", "name,n\n", "s.csv: the table has no rows"),
        ("s.csv", "name,n,name\na,1,2\n", "s.csv:1: column 3 is called `name`, as column 1 is"),
        ("s.csv", "name,n,\na,1,2\n", "s.csv:1: column 3 has no name"),
        ("s.csv", "name\tn\na\t1\n", "s.csv:1: the columns are separated by tabs; such a table ends in .tsv"),
        ("s.csv", "name,n\na,1\nb\n", "s.csv:3: it has 1 of 2 columns; `n` is missing"),
        ("s.csv", 'name,n\n"a\nc",1\nb,1,2\n', "s.csv:4: it has 3 columns, and the first line names 2"),
        ("s.csv", 'name,n\na,"1\n', "s.csv:2: this is not CSV: unexpected end of data"),
        ("s.csv", b"name,n\na,\xe9\n", "s.csv:2: this is not UTF-8 text; save the table as UTF-8"),
        ("s.csv", "name,n\na,1\nb,x\n", "s.csv:3: column n: 'x' is not a number"),
        ("s.csv", "name,n\na,12345678901234567890123\n", "s.csv:2: column n: 12345678901234567890123 has more digits"),
        ("s.csv", "name,m\na,1\n", "s.csv: the table has no column `n`"),
        ("s.json", '[{"n": 1.10}]', "s.json: 1.10 could be meant as a text; write 1.1 for the number"),
        ("s.json", '[{"n": 1, "n": 2}]', "s.json: `n` is given twice"),
        ("s.json", '{"n": 1}', "s.json: a table is a list of maps"),
        ("s.yaml", "- 5\n", "s.yaml: row 1 is not a map"),
        ("s.yaml", "- {n: 1, n: 2}\n", "s.yaml:1:10: `n` is given twice"),
        ("s.yaml", "- {a: True}\n", "s.yaml:1:7: `True` is not `true` in a command"),
        ("s.txt", "name,n\n", "s.txt: a table is a file that ends in .csv, .tsv"),
    ],
)
def test_a_wrong_table_is_refused_with_the_place(tmp_path: Path, name: str, content: str | bytes, told: str) -> None:
    with pytest.raises(BadFlow) as caught:
        rows_of(tmp_path, name, content, n="number")
    assert told in str(caught.value).replace(f"{tmp_path}/", "")


def test_a_file_that_a_row_names_is_looked_for_beside_the_table(tmp_path: Path) -> None:  # FM-6
    (tmp_path / "a.fq").write_text("x")
    with pytest.raises(BadFlow, match=r"s.csv:3: column fq: there is no file `aa.fq` in .*, the folder of the table"):
        rows_of(tmp_path, "s.csv", "fq\na.fq\naa.fq\n", fq="file")


SHEET = "inputs: {rows: {type: table, default: data/s.csv, columns: {fq: file, n: number}}}\njobs:\n"
LOOP = '  x: {for-each: {row: "${{ inputs.rows }}"}, run: "echo ${{ row.n }}"}\n'


def test_a_table_beside_the_flow_is_read_with_it(read: Reader, complaints: Complaints, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.fq").write_text("x")
    (tmp_path / "data" / "s.csv").write_text("fq,n\na.fq,3\n")
    rows = read(SHEET + LOOP).inputs["rows"]
    assert rows == Input(
        type="table",
        default=[{"fq": "data/a.fq", "n": 3}],
        columns={"fq": "file", "n": "number"},
        read_from="data/s.csv",
        read_digest=rows.read_digest,
    )
    assert rows.read_digest
    (tmp_path / "data" / "s.csv").write_text("fq,n\na.fq,x\n")
    assert complaints(SHEET + LOOP) == ["1:39: data/s.csv:2: column n: 'x' is not a number"]
    assert complaints(SHEET.replace("s.csv", "t.csv") + LOOP) == [
        "1:39: data/t.csv: there is no such file (did you mean `s.csv`?)"
    ]


def test_what_is_said_wrong_of_a_table_is_answered(complaints: Complaints) -> None:
    assert complaints("inputs: {s: {columns: {a: file}}}\nsteps: [x]\n") == [
        "1:14: `columns` are those of a table (did you mean `type: table`?)"
    ]
    assert "did you mean `number`?" in complaints("inputs: {s: {type: table, columns: {a: int}}}\nsteps: [x]\n")[0]
    assert "(did you mean `table`?)" in complaints("inputs: {s: {type: csv}}\nsteps: [x]\n")[0]
    loop = 'jobs: {x: {for-each: {r: "${{ inputs.s }}"}, run: y}}\n'
    assert "(did you mean `s: {type: table, default: s.csv}`?)" in complaints(f"inputs: {{s: s.csv}}\n{loop}")[0]


@pytest.mark.parametrize("type", ["table", "list", ""])
def test_a_table_is_given_by_its_path_on_the_command_line(tmp_path: Path, type: str) -> None:  # DU-1
    (tmp_path / "s.csv").write_text("name,n\na,007\nb,1.10\n")
    declared = {"rows": Input(type=type)}
    assert read_inputs(declared, [f"rows=@{tmp_path / 's.csv'}"], "", flow="f") == {"rows": ROWS}
    given = tmp_path / "inputs.yaml"
    given.write_text(f"rows: {tmp_path / 's.csv'}\n")
    if type == "table":
        assert read_inputs(declared, [f"rows={tmp_path / 's.csv'}"], "", flow="f") == {"rows": ROWS}
        assert read_inputs(declared, [], str(given), flow="f") == {"rows": ROWS}
        assert read_inputs(declared, ['rows=[{"name": "a"}]'], "", flow="f") == {"rows": [{"name": "a"}]}
        with pytest.raises(InvalidRequest, match="input rows is a table: the path of a file that ends in"):
            read_inputs(declared, ["rows=[1]"], "", flow="f")


def test_a_table_in_python_is_an_input_and_a_list_of_rows(python: Loader, tmp_path: Path) -> None:
    (tmp_path / "a.fq").write_text("x")
    (tmp_path / "s.csv").write_text("name,fq\na,a.fq\n")
    flow = python(
        "one.map(rows['name'])", inputs="rows=Table('s.csv', fq='file')", top="\nfrom mendflow import Table\n"
    )
    rows = [{"name": "a", "fq": "a.fq"}]
    declared = flow.inputs["rows"]
    assert (declared.type, declared.default, declared.columns) == ("table", rows, {"fq": "file"})
    assert declared.read_from == "s.csv"
    loop = parts(flow)["one"]
    assert isinstance(loop, ForEach) and loop.items == "${{ inputs.rows.map(row, row.name) }}"
    with pytest.raises(BadFlow, match="has no column `nam`"):
        python("one.map(rows['nam'])", inputs="rows=Table('s.csv')", top="\nfrom mendflow import Table\n")
    (tmp_path / "work.py").write_text("from mendflow import Table\nrows = Table('s.csv', fq='file')\n")
    table = module_of(tmp_path / "work.py").rows
    assert list(table) == [{"name": "a", "fq": tmp_path / "a.fq"}] and table["name"] == ["a"] and len(table) == 1


def test_a_table_in_python_is_not_read_where_nobody_asks_for_its_rows(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text("from mendflow import Table\nrows = Table('not-here.csv')\n")
    assert repr(module_of(tmp_path / "work.py").rows).endswith("not-here.csv')")


def test_a_row_is_shown_by_what_names_it_or_by_its_first_column() -> None:
    assert short({"lane": "1", "sample": "s7"}) == "s7"
    assert short({"path": "a/b.fq", "reads": 3}) == "b.fq"
