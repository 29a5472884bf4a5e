"""Services stand on each other one way, hear of each other through the hub, and are whole when they are built."""

import ast
from pathlib import Path

import pytest

from tests.shape.source import PACKAGE, Place, listed, python_files, statements
from tests.shape.test_imports import imported

SERVICES = PACKAGE / "services"
STANDS_ON: dict[str, frozenset[str]] = {
    "base": frozenset(),
    "audit": frozenset({"base"}),
    "cases": frozenset({"base"}),
    "scheduling": frozenset({"base"}),
    "data": frozenset({"base", "cases"}),
    "schedules": frozenset({"base", "cases", "data"}),
    "recovery": frozenset({"base", "cases", "scheduling", "data"}),
    "messaging": frozenset({"base", "cases", "scheduling", "data"}),
    "domains": frozenset({"base", "cases", "scheduling", "data"}),
    "cluster": frozenset({"base", "cases", "scheduling", "data"}),
    "observe": frozenset({"base", "cases", "scheduling", "data", "cluster"}),
    "learning": frozenset({"base", "cases", "scheduling", "data", "recovery"}),
    "retention": frozenset(
        {"base", "cases", "scheduling", "data", "recovery", "messaging", "domains", "observe", "schedules"}
    ),
    "runtime": frozenset(
        {
            *("base", "cases", "scheduling", "data", "recovery", "learning", "messaging", "domains", "cluster"),
            *("observe", "schedules", "retention", "runtime"),
        }
    ),
    "api": frozenset(
        {
            *("base", "cases", "scheduling", "data", "recovery", "learning", "messaging", "domains", "cluster"),
            *("observe", "schedules", "retention", "runtime", "audit"),
        }
    ),
}
RECORDS = frozenset({"server", "told", "document"})
"""Names of documents, which are values and not services, where services are put together."""


def wrong_way(path: Path, source: str) -> list[Place]:
    room = path.relative_to(SERVICES).parts[0]
    return [
        Place(path, getattr(node, "lineno", 0), f"services/{room} may not import {module}")
        for node in statements(source)
        for module in imported(node, path)
        if (other := _room_of(module)) and other != room and other not in STANDS_ON[room]
    ]


def _room_of(module: str) -> str:
    parts = module.split(".")
    return parts[2] if parts[:2] == ["mendflow", "services"] and len(parts) > 2 else ""


def set_from_outside(path: Path, source: str) -> list[Place]:
    """Where services are put together nothing but `self` is assigned to. Elsewhere no object is handed a function after
    it was built, which is what a callback that is wired by hand looks like."""
    assembling = path.name in ("assembly.py", "wiring.py") or path.is_relative_to(SERVICES / "runtime")
    read = list(statements(source))
    methods = frozenset(node.name for node in read if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return [
        Place(
            path, node.lineno, f"{ast.unparse(target)} is set from outside; give it to the constructor, or use the hub"
        )
        for node in read
        if isinstance(node, ast.Assign)
        for target in _targets(node)
        if isinstance(target, ast.Attribute) and not _is_own(target)
        if (assembling and not _is_record(target)) or _is_function(node.value, methods)
    ]


def _targets(node: ast.Assign) -> list[ast.expr]:
    return [each for target in node.targets for each in (target.elts if isinstance(target, ast.Tuple) else [target])]


def _is_own(target: ast.Attribute) -> bool:
    return isinstance(target.value, ast.Name) and target.value.id in ("self", "cls")


def _is_record(target: ast.Attribute) -> bool:
    holder = target.value
    name = holder.id if isinstance(holder, ast.Name) else holder.attr if isinstance(holder, ast.Attribute) else ""
    return name in RECORDS


def _is_function(value: ast.expr, methods: frozenset[str]) -> bool:
    if isinstance(value, ast.Tuple):
        return any(_is_function(each, methods) for each in value.elts)
    return isinstance(value, ast.Lambda) or (
        isinstance(value, ast.Attribute) and _is_own(value) and value.attr in methods
    )


def test_every_room_of_services_is_in_the_table() -> None:
    assert {path.name for path in SERVICES.iterdir() if path.is_dir() and path.name[0] != "_"} == STANDS_ON.keys()
    assert [path.name for path in SERVICES.glob("*.py")] == ["__init__.py"]


def test_imports_inside_services_point_one_way() -> None:
    files = [path for path in python_files("src") if path.is_relative_to(SERVICES) and path.parent != SERVICES]
    found = [place for path in files for place in wrong_way(path, path.read_text())]
    assert not found, listed(found)


def test_nothing_but_the_edges_stands_on_the_operations() -> None:
    may = ("services/api", "server", "cli", "sim", "client", "wiring.py")
    found = [
        Place(path, getattr(node, "lineno", 0), "imports services.api")
        for path in python_files("src")
        if not path.relative_to(PACKAGE).as_posix().startswith(may)
        if "services" in (source := path.read_text())
        for node in statements(source)
        for module in imported(node, path)
        if _room_of(module) == "api"
    ]
    assert not found, listed(found)


def test_no_attribute_of_a_service_is_set_from_outside() -> None:
    files = [path for path in python_files("src") if path.is_relative_to(SERVICES) or path.name == "wiring.py"]
    found = [place for path in files for place in set_from_outside(path, path.read_text())]
    assert not found, listed(found)


@pytest.mark.parametrize(
    ("room", "line"),
    [
        ("base", "from mendflow.services.cases.live_case import LiveCase"),
        ("cases", "from mendflow.services.recovery.levels import Levels"),
        ("scheduling", "from mendflow.services import cases"),
        ("observe", "from mendflow.services.runtime.server import Server"),
        ("runtime", "from mendflow.services.api.domain import Domain"),
    ],
)
def test_the_reader_of_imports_sees_one_that_points_up(room: str, line: str) -> None:
    assert wrong_way(SERVICES / room / "example.py", line)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("runtime/example.py", "self.meta.moved = self._moved"),
        ("observe/assembly.py", "monitor.tell = tell"),
        ("cases/example.py", "manager.ended = lambda document: None"),
        ("cases/example.py", "class A:\n    def b(self):\n        c.d = self.b"),
    ],
)
def test_the_reader_of_assignments_sees_one_from_outside(path: str, line: str) -> None:
    assert set_from_outside(SERVICES / path, line)


@pytest.mark.parametrize(
    ("path", "line"),
    [("runtime/example.py", "self.meta = meta"), ("cases/example.py", "document.status = 'failed'")],
)
def test_the_reader_of_assignments_lets_records_change(path: str, line: str) -> None:
    assert not set_from_outside(SERVICES / path, line)
