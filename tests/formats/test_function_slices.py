"""The result of a Python job depends on its function and on what that uses, and on nothing else of the file. # DU-2"""

import hashlib
from pathlib import Path
from typing import NamedTuple

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
    "an option of another job": ("@job\ndef g", "@job(memory='2 GB', retries=OTHER)\ndef g"),
    "what is imported from this package": ("import flow, job", "import flow, job, each"),
}


@pytest.mark.parametrize(("old", "new"), WITHOUT_EFFECT.values(), ids=WITHOUT_EFFECT)
def test_an_edit_of_what_a_function_does_not_use_leaves_its_results(tmp_path: Path, old: str, new: str) -> None:
    assert old in BASE
    before = digest(tmp_path)
    assert before and digest(tmp_path, work=BASE.replace(old, new)) == before


WITH_TABLE = BASE.replace("import flow, job", "import flow, job, Table").replace(
    "def whole(x: int = 1)", 'def whole(x: int = 1, rows: Table = Table("rows.csv", fq="file"))'
)
"""A call as a default: it says where rows are, and does nothing."""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("OTHER + math.pi", "OTHER - math.pi"),
        ("return g(f(x))", "return f(x)"),
        ('"rows.csv"', '"others.csv"'),
        ("LIMIT = 3\n", 'LIMIT = 3\nROWS = Table("rows.csv")\n'),
    ],
)
def test_a_table_that_a_flow_has_as_a_default_leaves_the_results_of_functions(
    tmp_path: Path, old: str, new: str
) -> None:
    assert old in WITH_TABLE
    before = digest(tmp_path, work=WITH_TABLE)
    assert before and digest(tmp_path, work=WITH_TABLE.replace(old, new)) == before


def test_a_table_that_a_function_uses_counts_for_it(tmp_path: Path) -> None:
    text = WITH_TABLE.replace("LIMIT = 3\n", 'LIMIT = 3\nROWS = Table("rows.csv")\n').replace("+ LIMIT", "+ len(ROWS)")
    before = digest(tmp_path, work=text)
    assert before and digest(tmp_path, work=text.replace('ROWS = Table("rows', 'ROWS = Table("other')) != before


WITH_EFFECT = {
    "an import that it does not use": ("import json\n", "import json\nimport csv\n"),
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


class Edit(NamedTuple):
    """A program with a function `f`, and an edit outside of it that may change what `f` returns."""

    program: str
    old: str
    new: str


F = "\ndef f(x):\n    return "
EDITS = {
    "a name in a query": Edit('LIMIT = 3\ndef f(df):\n    return df.query("x > @LIMIT")', "3", "4"),
    "a name in a text of bytes": Edit('LIMIT = 3\ndef f(df):\n    return df.ask(b"x > LIMIT")', "3", "4"),
    "a name in a text that it uses": Edit(
        'LIMIT = 3\nASK = "x > @LIMIT"\ndef f(df):\n    return df.ask(ASK)', "= 3", "= 4"
    ),
    "a name in a default text": Edit('LIMIT = 3\ndef f(df, ask="x > @LIMIT"):\n    return df.ask(ask)', "= 3", "= 4"),
    "a query that is an argument": Edit("LIMIT = 3\ndef f(df, ask):\n    return df.query(ask)", "3", "4"),
    "a query that is put together": Edit(
        'LIMIT1 = 3\ndef f(df, n):\n    return df.query(f"x > @LIMIT{n}")', "= 3", "= 4"
    ),
    "the text at the top": Edit(
        '"""Usage: work A"""\nfrom docs import parse\ndef f(x):\n    return parse(__doc__)', "work A", "work B"
    ),
    "the text at the top, through another": Edit(
        '"""A"""\ndef usage():\n    return __doc__' + F + "usage()", '"A"', '"B"'
    ),
    "a side effect of an import": Edit(
        "import math" + F + "math.pi", "import math", "import math\nfrom sklearn.experimental import on"
    ),
    "an import that is gone": Edit("import numpy.random" + F + "x", "import numpy.random", "import math"),
    "an import in a module beside it": Edit("import aside\ndef g():\n    return aside.a" + F + "x", "aside", "inside"),
    "annotations": Edit("a: int = 1" + F + "__annotations__", "int", "str"),
    "all variables": Edit("A = 1" + F + "vars()", "1", "2"),
    "a list of names": Edit("A = 1" + F + "dir()", "A =", "B ="),
    "a name of an argument": Edit("class C:\n    a = 1\nA = 1" + F + "getattr(C, x)", "\nA = 1", "\nA = 2"),
    "getattr by another name": Edit("A = 1" + F + "map(getattr, x)", "1", "2"),
    "getattr of a builtin": Edit("import builtins\nA = 1" + F + "getattr(builtins, 'eval')(x)", "1", "2"),
    "an attribute of an attribute": Edit("from operator import attrgetter\nA = 1" + F + "attrgetter(x)", "1", "2"),
    "loaded modules": Edit("from sys import modules as m\nA = 1" + F + "m", "1", "2"),
    "eval by another name": Edit("from builtins import eval as e\nA = 1" + F + "e(x)", "1", "2"),
    "itself as a module": Edit("import work\nA = 1" + F + "work.A", "1", "2"),
    "itself in a function": Edit("A = 1\ndef f(x):\n    from work import A as b\n    return b", "1", "2"),
    "itself as the script": Edit("import __main__\nA = 1" + F + "__main__.A", "1", "2"),
    "itself as a program": Edit("import subprocess\nA = 1" + F + "subprocess.run(['p', '-m', x])", "A = 1", "A = 2"),
    "objects that name their class": Edit(
        "import pandas as pd\nclass C:\n    a = 1" + F + "pd.read_pickle(x)", "a = 1", "a = 2"
    ),
    "objects in a file": Edit("import torch\nclass C:\n    a = 1" + F + "torch.load(x)", "a = 1", "a = 2"),
    "objects in an array": Edit(
        "import numpy as np\nclass C:\n    a = 1" + F + "np.load(x, allow_pickle=True)", "a = 1", "a = 2"
    ),
    "lines of the file": Edit("import traceback\nA = 1" + F + "traceback.format_exc()", "A", "\n\nA"),
    "classes by their base": Edit("class C:\n    a = 1" + F + "object.__subclasses__()", "C", "D"),
    "a call": Edit("import math" + F + "x", "import math", "import math\nmath.seed(1)"),
    "an attribute": Edit("import math" + F + "x", "import math", "import math\nmath.pi = 3"),
    "a part": Edit("T = [1]" + F + "x", "T = [1]", "T = [1]\nT[0] = 2"),
    "try": Edit("try:\n    A = 1\nexcept E:\n    A = 2" + F + "x", "= 2", "= 3"),
    "if": Edit("if C:\n    A = 1" + F + "x", "= 1", "= 3"),
    "a script's own, where the name was changed": Edit(
        "__name__ = '__main__'\nif __name__ == '__main__':\n    A = 1" + F + "A", "= 1", "= 3"
    ),
    "a block for type checkers that runs": Edit(
        "TYPE_CHECKING = True\nif TYPE_CHECKING:\n    A = 1" + F + "A", "= 1", "= 3"
    ),
    "with": Edit("with C:\n    A = 1" + F + "x", "= 1", "= 3"),
    "a loop": Edit("for i in (1, 2):\n    pass" + F + "x", "2", "3"),
    "del": Edit("A = len = 1" + F + "len(x)", "A = len = 1", "A = len = 1\ndel len"),
    "more of a number": Edit("A = 1\nA += 1" + F + "x", "+= 1", "+= 2"),
    "a decorator": Edit("def deco(g):\n    return 1\n@deco" + F + "x", "return 1", "return 2"),
    "a decorator's part": Edit("K = 1\ndef deco(g):\n    return K\n@deco" + F + "x", "K = 1", "K = 2"),
    "a default": Edit("K = 1\ndef f(x=K):\n    return x", "1", "2"),
    "a default of what it calls": Edit("K = 1\ndef g(x=K):\n    return x" + F + "g()", "1", "2"),
    "a base of a class": Edit("class B:\n    a = 1\nclass C(B):\n    pass" + F + "C.a", "1", "2"),
    "a base of a base": Edit("class A:\n    a = 1\nclass B(A):\n    pass\nclass C(B):\n    pass" + F + "C.a", "1", "2"),
    "a metaclass": Edit("class M(type):\n    a = 1\nclass C(metaclass=M):\n    pass" + F + "C.a", "1", "2"),
    "another class of a registry": Edit("class B:\n    pass\nclass C(B):\n    a = 1" + F + "B.all", "1", "2"),
    "a class with something that learns of it": Edit(
        "FIELD = make()\nclass C:\n    a = FIELD\n    b = 1" + F + "x", "b = 1", "b = 2"
    ),
    "a function of a library that another replaces": Edit(
        "import math\ndef g():\n    math.floor = 1" + F + "math.floor(x)", "1", "2"
    ),
    "the same by setattr": Edit("import math\ndef g():\n    setattr(math, 'floor', 1)" + F + "math.floor(x)", "1", "2"),
    "an attribute of a function that another sets": Edit(
        "def h():\n    pass\ndef g():\n    h.a = 1" + F + "h.a", "1", "2"
    ),
    "a list by another name": Edit("T = []\nU = T\ndef g():\n    U.append(1)" + F + "T", "append(1)", "append(2)"),
    "a list in a lambda": Edit("T = []\nL = lambda: T.append(1)" + F + "T", "append(1)", "append(2)"),
    "an operator of a thing": Edit("P = make()\nQ = P >> 1" + F + "P", ">> 1", ">> 2"),
    "a property of a thing": Edit("P = make()\nQ = P.first" + F + "P", "first", "second"),
    "an option that does something": Edit(
        "from mendflow import job\nT = {}\n@job(retries=T.setdefault('a', 1))\ndef g(x):\n    pass" + F + "x", "1", "2"
    ),
    "a decorator that is ours no longer": Edit(
        "from mendflow import job\nfrom other import job\n@job(a=1)" + F + "x", "a=1", "a=2"
    ),
    "a list of a class": Edit(
        "class C:\n    a = []\ndef g():\n    C.a.append(1)" + F + "C.a", "append(1)", "append(2)"
    ),
    "a list that is a default": Edit(
        "def h(x=[]):\n    return x\ndef g():\n    h().append(1)" + F + "h()", "append(1)", "append(2)"
    ),
    "a name in a text with attributes": Edit("A = 1" + F + "'{0.__globals__}'.format(f)", "A = 1", "A = 2"),
    "a question to a database that sees variables": Edit(
        "import duckdb\nA = 1" + F + "duckdb.connect().execute(x)", "A = 1", "A = 2"
    ),
    "a word for type checkers that is another's": Edit(
        "from typing import TYPE_CHECKING\nfrom mine import TYPE_CHECKING\nif TYPE_CHECKING:\n    A = 1" + F + "A",
        "= 1",
        "= 2",
    ),
    "a private name in a class": Edit(
        "_C__k = 1\nclass C:\n    def m(self):\n        return __k" + F + "C().m()", "= 1", "= 2"
    ),
    "a name in other letters": Edit('fix = 1\ndef f(df):\n    return df.ask("x > @\ufb01x")', "= 1", "= 2"),
    "what Python asks for": Edit("def __getattr__(name):\n    return 1" + F + "x", "1", "2"),
    "a word of Python that has another meaning": Edit("def len(x):\n    return 1" + F + "len(x)", "1", "2"),
    "a function by its type": Edit(
        "import functools as t\n@t.singledispatch\ndef g(x):\n    pass\n@g.register\ndef _(x: int):\n    return 1"
        + F
        + "g(x)",
        "return 1",
        "return 2",
    ),
}


def key(folder: Path, program: str) -> tuple[str, str]:
    """What the key of the result has of the code: the part that is used, or else the whole file."""
    found = digest(folder, work=program)
    return (found, "") if found else ("", program)


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edit_that_changes_a_result_changes_its_key(tmp_path: Path, edit: Edit) -> None:
    for module in ("aside", "inside"):
        (tmp_path / f"{module}.py").write_text(f"import {module}_needs\na = 1\n")
    assert edit.old in edit.program
    assert key(tmp_path, edit.program) != key(tmp_path, edit.program.replace(edit.old, edit.new, 1))


def test_what_a_module_beside_the_file_imports_counts_for_all(tmp_path: Path) -> None:
    before = digest(tmp_path, "f", other="import math\nvalue = 2\n")
    assert before and digest(tmp_path, "f", other="import numpy.random\nvalue = 2\n") != before


@pytest.mark.parametrize("text", ["import sys\ndef cut(x): return sys._getframe(1)", "import pickle\ndef cut(x): pass"])
def test_a_module_that_looks_at_its_caller_makes_the_whole_file_count(tmp_path: Path, text: str) -> None:
    assert digest(tmp_path, "h", helper=text) == ""


def test_a_name_in_a_query_counts_without_all_of_the_file(tmp_path: Path) -> None:
    program = EDITS["a name in a query"].program
    before = digest(tmp_path, work=f"OTHER = 1\n{program}")
    assert before and digest(tmp_path, work=f"OTHER = 2\n{program}") == before


def test_texts_for_readers_may_tell_of_programs(tmp_path: Path) -> None:
    assert digest(tmp_path, work=BASE.replace('"""Text."""', '"""Started by python work.py."""'))
