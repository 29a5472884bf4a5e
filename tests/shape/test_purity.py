"""The core is pure: it gets time, chance and identity as arguments, and touches nothing outside itself.

Allowed is what is listed. A module of the standard library that cannot reach the world may be added here; one that can
may not."""

import ast
import sys
from pathlib import Path

import pytest

from tests.shape.source import PACKAGE, Place, listed, python_files

PURE_MODULES = frozenset(
    [
        "abc",
        "bisect",
        "collections",
        "contextlib",
        "copy",
        "dataclasses",
        "datetime",
        "decimal",
        "difflib",
        "enum",
        "fnmatch",
        "fractions",
        "functools",
        "graphlib",
        "hashlib",
        "hmac",
        "heapq",
        "itertools",
        "json",
        "math",
        "operator",
        "re",
        "string",
        "struct",
        "textwrap",
        "types",
        "typing",
        "unicodedata",
    ]
)
IMPURE_CALLS = frozenset({"open", "print", "input", "exec", "eval", "breakpoint", "__import__", "globals"})
CLOCK_READS = frozenset({"now", "utcnow", "today"})
ASYNC = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)


def impurities(path: Path, source: str) -> list[Place]:
    found = [(node, reason) for node in ast.walk(ast.parse(source)) if (reason := _impurity(node))]
    return [Place(path, getattr(node, "lineno", 0), reason) for node, reason in found]


def _impurity(node: ast.AST) -> str:
    if isinstance(node, ASYNC):
        return "async"
    if isinstance(node, ast.Import | ast.ImportFrom):
        return _impure_import(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
        return f"calls {node.func.id}()"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CLOCK_READS:
        return f"reads a clock with .{node.func.attr}()"
    return "changes a global" if isinstance(node, ast.Global) else ""


def _impure_import(node: ast.Import | ast.ImportFrom) -> str:
    names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
    tops = [name.split(".")[0] for name in names]
    wrong = [top for top in tops if top in sys.stdlib_module_names and top not in PURE_MODULES]
    return f"imports {', '.join(wrong)}" if wrong else ""


def test_the_core_is_pure() -> None:
    files = python_files("src/mendflow/core")
    assert files
    found = [place for path in files for place in impurities(path, path.read_text())]
    assert not found, listed(found)


@pytest.mark.parametrize(
    "source",
    [
        "import os",
        "from pathlib import Path",
        "import time",
        "from random import choice",
        "import uuid",
        "import logging",
        "import asyncio",
        "from os import environ",
        "open('x')",
        "print(1)",
        "from datetime import datetime\ndatetime.now()",
        "async def f() -> None: ...",
        "def f() -> None:\n    global x\n    x = 1",
    ],
)
def test_the_reader_of_the_core_sees_what_is_impure(source: str) -> None:
    assert impurities(PACKAGE / "core" / "example.py", source)


def test_the_reader_of_the_core_lets_pure_code_pass() -> None:
    source = "import math\nfrom collections import deque\ndef f(now: int) -> int:\n    return math.floor(now)"
    assert not impurities(PACKAGE / "core" / "example.py", source)
