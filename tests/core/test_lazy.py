"""What is made on first use is what it would have been at once."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import mendflow
from mendflow.lazy import LazyModule, lazy_pattern

PACKAGE = Path(mendflow.__file__).parent


def test_a_pattern_is_used_like_one_that_was_compiled_at_once() -> None:
    lazy, whole = lazy_pattern(r"(\w+)-(?P<n>\d+)", re.IGNORECASE), re.compile(r"(\w+)-(?P<n>\d+)", re.IGNORECASE)
    assert (lazy.pattern, lazy.flags, lazy.groups) == (whole.pattern, whole.flags, whole.groups)
    for text in ("a-1", "A-12 b-3", "none"):
        assert lazy.findall(text) == whole.findall(text)
        assert lazy.sub("x", text) == whole.sub("x", text)
        assert (lazy.fullmatch(text) is None) == (whole.fullmatch(text) is None)


def test_a_pattern_is_compiled_when_it_is_first_used() -> None:
    wrong = lazy_pattern("(")
    with pytest.raises(re.error):
        wrong.search("text")


def test_every_pattern_of_the_product_can_be_compiled() -> None:
    files = [path for path in PACKAGE.rglob("*.py") if "lazy_pattern(" in path.read_text() and path.name != "lazy.py"]
    calls = {path: list(_calls_in(path)) for path in files}
    assert sum(map(len, calls.values())) > 200
    for path, found in calls.items():
        module = importlib.import_module(".".join(("mendflow", *path.relative_to(PACKAGE).with_suffix("").parts)))
        for call in found:
            pattern, *flags = (eval(ast.unparse(given), dict(vars(module))) for given in call.args)
            re.compile(pattern, *flags)


def _calls_in(path: Path) -> Iterator[ast.Call]:
    """Where a module makes a pattern."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "lazy_pattern":
            assert not node.keywords
            yield node


def test_a_module_is_loaded_when_one_of_its_names_is_first_used() -> None:
    assert LazyModule("math").floor(2.5) == 2
    with pytest.raises(ModuleNotFoundError):
        _ = LazyModule("mendflow.nowhere").anything
    with pytest.raises(AttributeError):
        _ = LazyModule("math").nothing
