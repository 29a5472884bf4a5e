"""The result of a Python job depends on its function and on what that uses, and on nothing else of the file. # DU-2"""

import hashlib
from pathlib import Path

import pytest

from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import FunctionRef
from mendflow.core.model.values import FileRef
from mendflow.formats.python.sources import functions_of, with_code

BASE = '''
"""A flow."""
from __future__ import annotations
import json
import math
from mendflow import flow, job
import helper
import other
from helper import cut

LIMIT = 3
OTHER = 4
TABLE = {"a": 1}
UNUSED = {"a": 1}

def inner(x):
    return x + LIMIT

def outer(x: int) -> int:
    """Text."""
    return inner(x) * len(TABLE)

@job(retries=2)
def f(x):
    return outer(x) + helper.value

@job
def g(x):
    return other.value + OTHER + math.pi

@job
def h(x):
    return json.dumps(cut(x))

@flow
def whole(x: int = 1):
    return g(f(x))

if __name__ == "__main__":
    print("script")
'''
HELPER = "from deep import more\nvalue = 1\n\ndef cut(x): return more + x\n"
FILES = {"work.py": BASE, "helper.py": HELPER, "deep.py": "more = 1\n", "other.py": "value = 2\n"}


def digest(folder: Path, name: str = "f", **changed: str) -> str:
    for file, text in {**FILES, **{f"{module}.py": text for module, text in changed.items()}}.items():
        (folder / file).write_text(text)
    path = folder / "work.py"
    flow = Flow(name=FlowName("f"), body=JobActivity(name="a", function=function_in(folder, name)))
    stored = FileRef(sha256=hashlib.sha256(path.read_bytes()).hexdigest(), bytes=1, name="work.py")
    [made] = functions_of(with_code(flow, {path: stored}))
    return made.uses


def function_in(folder: Path, name: str) -> FunctionRef:
    return FunctionRef(module="work", name=name, folder=str(folder))


WITHOUT_EFFECT = {
    "another job": ("OTHER + math.pi", "OTHER - math.pi"),
    "a number that it does not use": ("OTHER = 4", "OTHER = 5"),
    "a table that it does not use": ('UNUSED = {"a": 1}', 'UNUSED = {"a": 2}'),
    "how it is run": ("retries=2", "retries=5"),
    "the flow": ("return g(f(x))", "return f(x)"),
    "a comment and a line": ("def inner(x):", "# new\n\n\ndef inner(x):"),
    "what only a script does": ('print("script")', 'print("other")'),
    "a new job": ("@flow\n", "@job\ndef new(x):\n    return 1\n\n@flow\n"),
    "an import that it does not use": ("import json\n", "import json\nimport csv\n"),
}


@pytest.mark.parametrize(("old", "new"), WITHOUT_EFFECT.values(), ids=WITHOUT_EFFECT)
def test_an_edit_of_what_a_function_does_not_use_leaves_its_results(tmp_path: Path, old: str, new: str) -> None:
    assert old in BASE
    before = digest(tmp_path)
    assert before and digest(tmp_path, work=BASE.replace(old, new)) == before


WITH_EFFECT = {
    "its own text": ("outer(x) + helper.value", "outer(x) - helper.value"),
    "what it calls": ("inner(x) * len(TABLE)", "inner(x) + len(TABLE)"),
    "what that calls": ("return x + LIMIT", "return x - LIMIT"),
    "a number that it uses through others": ("LIMIT = 3", "LIMIT = 4"),
    "a table": ('TABLE = {"a": 1}', 'TABLE = {"a": 1, "b": 2}'),
    "a statement that may do anything": ("LIMIT = 3\n", "LIMIT = 3\nTABLE['b'] = 2\n"),
    "a call while the file is loaded": ("OTHER = 4", "OTHER = math.floor(4.5)"),
    "a decorator of another function": ("@job\ndef g", "@math.floor\n@job\ndef g"),
    "a class of a class": ("OTHER = 4", "class New(helper.Base):\n    pass\n"),
    "a name that is given twice": ("def outer(x", "LIMIT = 9\n\ndef outer(x"),
    "another function that changes a table that it uses": ("return other.value", "TABLE['x'] = 1; return other.value"),
    "another function that names anew what it uses": (
        "return other.value",
        "global LIMIT; LIMIT = 1; return other.value",
    ),
    "an import of its own": ("return outer(x) + helper.value", "import other; return outer(x) + helper.value"),
}


@pytest.mark.parametrize(("old", "new"), WITH_EFFECT.values(), ids=WITH_EFFECT)
def test_an_edit_of_what_a_function_may_use_makes_it_run_again(tmp_path: Path, old: str, new: str) -> None:
    assert old in BASE
    before = digest(tmp_path)
    assert before and digest(tmp_path, work=BASE.replace(old, new)) != before


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("f", {"helper": True, "deep": True, "other": False}),
        ("g", {"helper": False, "deep": False, "other": True}),
        ("h", {"helper": True, "deep": True, "other": False}),
    ],
)
def test_modules_beside_the_file_count_for_those_who_use_them(
    tmp_path: Path, name: str, changes: dict[str, bool]
) -> None:
    before = digest(tmp_path, name)
    for module, expected in changes.items():
        text = FILES[f"{module}.py"] + "new = 1\n"
        assert (digest(tmp_path, name, **{module: text}) != before) is expected, module


def test_a_module_that_does_something_when_it_is_loaded_counts_for_all(tmp_path: Path) -> None:
    acts = "value = 2\nprint('loaded')\n"
    assert digest(tmp_path, "f", other=acts) != digest(tmp_path, "f", other=acts + "print('again')\n")


def test_a_module_that_is_imported_and_never_named_counts_for_all(tmp_path: Path) -> None:
    work = BASE.replace("import other", "import other, quiet").replace("other.value", "1")
    (tmp_path / "quiet.py").write_text("a = 1\n")
    before = digest(tmp_path, work=work)
    (tmp_path / "quiet.py").write_text("a = 2\n")
    assert digest(tmp_path, work=work) != before


CANNOT_TELL = {
    "names by their texts": "globals()['LIMIT']",
    "any code": "eval('LIMIT')",
    "its own file": "open(__file__).read()",
    "a file of Python": "open('/home/me/work.py').read()",
    "loaded modules": "__import__('sys').modules",
    "a way to look at code": "(lambda: __import__('inspect'))()",
}


@pytest.mark.parametrize("text", CANNOT_TELL.values(), ids=CANNOT_TELL)
def test_where_it_cannot_be_told_what_a_function_uses_its_whole_file_counts(tmp_path: Path, text: str) -> None:
    assert digest(tmp_path, work=BASE.replace("outer(x) + helper.value", text)) == ""
    assert digest(tmp_path, work=BASE.replace("return inner(x)", f"{text}; return inner(x)")) == ""
    assert digest(tmp_path, work=BASE.replace("OTHER + math.pi", text)), "what others do does not matter"


@pytest.mark.parametrize("module", ["inspect", "pickle", "importlib"])
def test_modules_that_find_things_by_their_names_are_not_seen_through(tmp_path: Path, module: str) -> None:
    work = BASE.replace("import json", f"import json, {module}").replace(
        "return outer(x)", f"{module}.x; return outer(x)"
    )
    assert digest(tmp_path, work=work) == ""


def test_a_file_that_its_own_imports_import_counts_as_a_whole(tmp_path: Path) -> None:
    assert digest(tmp_path, helper=HELPER + "import work\n") == ""


def test_a_function_that_is_not_written_at_the_top_counts_with_its_whole_file(tmp_path: Path) -> None:
    assert digest(tmp_path, "nowhere") == ""
