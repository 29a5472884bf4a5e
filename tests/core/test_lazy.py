"""What is made on first use is what it would have been at once."""

import ast
import gc
import importlib
import re
from pathlib import Path

import pytest

import mendflow
from mendflow.lazy import LazyModule, LazyPattern, lazy_pattern

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
    modules = [path for path in PACKAGE.rglob("*.py") if "lazy_pattern(" in path.read_text() and path.name != "lazy.py"]
    assert modules
    for path in modules:
        importlib.import_module(".".join(("mendflow", *path.relative_to(PACKAGE).with_suffix("").parts)))
    gc.unfreeze()  # what was there when the tests were collected
    found = [each for each in gc.get_objects() if type(each) is LazyPattern and each.pattern != "("]
    gc.freeze()
    assert len(found) >= sum(_patterns_in(path) for path in modules)
    for each in found:
        re.compile(each.pattern, each._flags)


def _patterns_in(path: Path) -> int:
    """How many a module has whenever it is loaded."""
    return sum(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "lazy_pattern"
        for statement in ast.parse(path.read_text()).body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for node in ast.walk(statement)
    )


def test_a_module_is_loaded_when_one_of_its_names_is_first_used() -> None:
    assert LazyModule("math").floor(2.5) == 2
    with pytest.raises(ModuleNotFoundError):
        _ = LazyModule("mendflow.nowhere").anything
    with pytest.raises(AttributeError):
        _ = LazyModule("math").nothing
