"""A file beside a flow that has the name of a module of Python's own is refused where it is imported: plain Python
takes the file, and where jobs run Python's own may be loaded already."""

import subprocess
import sys
from pathlib import Path

import pytest

from mendflow.core.model.errors import BadFlow
from mendflow.formats import load
from mendflow.formats.check import problems_of

FLOW = """
from mendflow import flow, job
{imports}

@job
def work(x):
    {inside}
    return x

@flow
def main(x: int = 1):
    return work(x)
"""


def write(folder: Path, *, imports: str = "", inside: str = "pass", **modules: str) -> str:
    (folder / "main.py").write_text(FLOW.format(imports=imports, inside=inside))
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    return str(folder / "main.py")


@pytest.mark.parametrize(
    ("imports", "inside", "line"),
    [
        ("import json", "pass", 3),
        ("import os, json.decoder as d", "pass", 3),
        ("from json import dumps", "pass", 3),
        ("", "import json", 7),
    ],
)
def test_an_import_that_a_file_and_pythons_own_answer_to_is_refused_at_its_line(
    tmp_path: Path, imports: str, inside: str, line: int
) -> None:  # DU-2
    path = write(tmp_path, imports=imports, inside=inside, json="def dumps(x): return 'mine'\n")
    [problem] = problems_of(path)
    assert (problem.file, problem.line) == (path, line)
    assert "`json` is json.py beside the flow and a module of Python's own" in problem.message
    assert problem.message.endswith("rename json.py")


def test_an_import_in_a_module_beside_the_flow_is_refused_there(tmp_path: Path) -> None:
    path = write(tmp_path, imports="import helper", helper="import queue\n", queue="")
    [problem] = problems_of(path)
    assert (Path(problem.file).name, problem.line) == ("helper.py", 1)


def test_a_package_counts_like_a_file(tmp_path: Path) -> None:
    path = write(tmp_path, imports="import json")
    (tmp_path / "json").mkdir()
    assert problems_of(path) == []
    (tmp_path / "json" / "__init__.py").write_text("")
    assert "json/" in problems_of(path)[0].message


@pytest.mark.parametrize("imports", ["", "import mine", "import os, sys, io, time"])
def test_a_file_that_nobody_imports_or_that_plain_python_passes_over_too_is_no_problem(
    tmp_path: Path, imports: str
) -> None:
    path = write(tmp_path, imports=imports, json="raise ValueError\n", mine="", os="", sys="", io="", time="")
    assert load(path).name == "main"
    assert str(tmp_path) not in sys.path, "what this program imports later is not looked for there"


def test_plain_python_passes_over_files_of_these_names(tmp_path: Path) -> None:
    names = ("abc", "codecs", "encodings", "genericpath", "io", "os", "posixpath", "site", "stat", "sys", "time")
    for name in names:
        (tmp_path / f"{name}.py").write_text("raise ValueError\n")
    (tmp_path / "plain.py").write_text(f"import {', '.join(names)}\n")
    subprocess.run([sys.executable, "plain.py"], cwd=tmp_path, check=True)


def test_a_function_that_a_yaml_flow_names_is_looked_at_too(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text("import random\n\ndef pick(): return 1\n")
    (tmp_path / "random.py").write_text("")
    (tmp_path / "flow.yaml").write_text("jobs:\n  a: {python: 'tools.py:pick'}\n")
    with pytest.raises(BadFlow) as refused:
        load(tmp_path / "flow.yaml")
    [problem] = refused.value.problems
    assert problem.line == 2 and problem.message.startswith("tools.py, line 1: `random` is random.py beside the flow")


def test_a_flow_may_have_the_name_of_a_module_of_pythons_own(tmp_path: Path) -> None:
    path = tmp_path / "secrets.py"
    path.write_text(FLOW.format(imports="", inside="pass"))
    assert load(path).name == "main"
    assert "main" not in vars(__import__("secrets"))
