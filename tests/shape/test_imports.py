"""Imports point one way. The table says what each room may know of the others and of the world outside; whatever is
not in it is a violation, so a new dependency between rooms, or on a library, is a decision that shows in a diff."""

import ast
import re
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.shape.source import PACKAGE, Place, listed, python_files, statements

MAY_IMPORT: dict[str, frozenset[str]] = {
    "core": frozenset({"mendflow.core", "mendflow.references_to_none", "msgspec", "cel_expr_python", "lxml", "re2"}),
    "formats": frozenset({"mendflow.formats", "mendflow.core", "mendflow.python_values", "msgspec", "yaml", "lxml"}),
    "python_values": frozenset({"mendflow.python_values", "mendflow.core", "msgspec"}),
    "stores": frozenset({"mendflow.stores", "mendflow.core", "msgspec", "aiohttp", "psycopg"}),
    "batch": frozenset({"mendflow.batch", "mendflow.core", "msgspec", "psij"}),
    "pages": frozenset({"mendflow.pages", "mendflow.core", "msgspec"}),
    "services": frozenset(
        {"mendflow.address_guard", "mendflow.services", "mendflow.core", "mendflow.stores.contract", "msgspec"}
    ),
    "address_guard": frozenset({"mendflow.core"}),
    "event_loop": frozenset({"uvloop"}),
    "keyed_semaphore": frozenset(),
    "process_priority": frozenset(),
    "lazy": frozenset(),
    "log_lines": frozenset(),
    "tls": frozenset({"msgspec"}),
    "local_accounts": frozenset(),
    "references_to_none": frozenset(),
    "reporting": frozenset({"msgspec"}),
    "transfer": frozenset({"mendflow.address_guard", "mendflow.transfer", "mendflow.core", "fsspec", "msgspec"}),
    "pilot": frozenset(
        {
            "mendflow.address_guard",
            "mendflow.pilot",
            "mendflow.core",
            "mendflow.event_loop",
            "mendflow.log_lines",
            "mendflow.python_values",
            "mendflow.transfer",
            "msgspec",
            "aiohttp",
        }
    ),
    "operations": frozenset({"mendflow.operations", "mendflow.core", "msgspec"}),
    "client": frozenset({"mendflow.client", "mendflow.core", "mendflow.operations", "msgspec", "aiohttp"}),
    "server": frozenset(
        {
            "mendflow.address_guard",
            "mendflow.server",
            "mendflow.services",
            "mendflow.core",
            "mendflow.operations",
            "mendflow.formats.xes",
            "mendflow.local_accounts",
            "mendflow.log_lines",
            "mendflow.version",
            "msgspec",
            "aiohttp",
            "yarl",  # the addresses of aiohttp
            "litestar",
            "opentelemetry",
            "prometheus_client",
            "uvicorn",
            "httptools",
        }
    ),
    "cli": frozenset(
        {
            "mendflow.address_guard",
            "mendflow.cli",
            "mendflow.local_accounts",
            "mendflow.client",
            "mendflow.core",
            "mendflow.formats",
            "mendflow.maintenance",
            "mendflow.operations",
            "mendflow.pilot.bounds",
            "mendflow.pilot.environment",
            "mendflow.pilot.isolation.hidden_process",
            "mendflow.pilot.isolation.options",
            "mendflow.pilot.isolation.variables",
            "mendflow.pilot.launch",
            "mendflow.pilot.main",
            "mendflow.pilot.slot.kept_attempts",
            "mendflow.pilot.slot.memory",
            "mendflow.pilot.options",
            "mendflow.pilot.agent.orphan",
            "mendflow.pages",
            "mendflow.python_values",
            "mendflow.server.access",
            "mendflow.server.log_output",
            "mendflow.server.oidc",
            "mendflow.server.web_app",
            "mendflow.services.api.domain",
            "mendflow.sim",
            "mendflow.version",
            "mendflow.wiring",
            "msgspec",
            "click",
            "rich",
            "typer",
        }
    ),
    "scripts": frozenset(
        {
            "mendflow.scripts",
            "mendflow.cli",
            "mendflow.client",
            "mendflow.core",
            "mendflow.formats",
            "mendflow.pages",
            "mendflow.python_values",
            "msgspec",
        }
    ),
    "sim": frozenset(
        {
            "mendflow.sim",
            "mendflow.core",
            "mendflow.formats.shipped",
            "mendflow.formats.wfformat",
            "mendflow.pages",
            "mendflow.services",
            "mendflow.stores.contract",
            "mendflow.stores.memory",
            "mendflow.pilot",
            "mendflow.server.access",
            "mendflow.server.peers",
            "mendflow.server.pilot_exchange",
            "msgspec",
        }
    ),
    "wiring": frozenset({"mendflow", "msgspec", "aiohttp", "uvicorn"}),
    "maintenance": frozenset({"mendflow.core", "mendflow.lazy", "mendflow.stores", "mendflow.version"}),
    "reading_process": frozenset(
        {
            "mendflow.core",
            "mendflow.formats",
            "mendflow.services.base.module_processes",
            "mendflow.services.base.reading_tasks",
            "mendflow.services.recovery.rules.trial_evaluation",
            "msgspec",
        }
    ),
    "server_options": frozenset(
        {
            "mendflow.address_guard",
            "mendflow.local_accounts",
            "mendflow.client",
            "mendflow.core",
            "mendflow.server",
            "mendflow.services",
            "mendflow.tls",
            "msgspec",
        }
    ),
    "__init__": frozenset(
        {"mendflow.client", "mendflow.core", "mendflow.formats", "mendflow.reporting", "mendflow.scripts"}
    ),
    "__main__": frozenset({"mendflow.cli", "mendflow.pilot.standby", "mendflow.version"}),
    "version": frozenset(),
}

EVERYBODY = frozenset({"mendflow.keyed_semaphore", "mendflow.lazy", "mendflow.process_priority", "mendflow.tls"})
"""What every room may import: how something is made on first use knows nothing of what it makes."""

INDENTED_IMPORT = re.compile(r"(^[ \t]+|[:;][ \t]*)(import|from)\b", re.MULTILINE)
"""Where it is not found no import is inside of anything, and the text need not be parsed."""


def room_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imported(node: ast.AST, path: Path) -> list[str]:
    """The modules that a statement imports. `from a import b` may mean the module a.b, and is read as that where
    there is one."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:
        package = ("mendflow", *path.relative_to(PACKAGE).with_suffix("").parts)[: -node.level]
        base = ".".join([*package, base]).rstrip(".")
    return [f"{base}.{alias.name}" if _is_module(base, alias.name) else base for alias in node.names]


@cache
def _is_module(base: str, name: str) -> bool:
    folder = PACKAGE.parent.joinpath(*base.split("."))
    return (folder / name).is_dir() or (folder / f"{name}.py").is_file()


def allowed(module: str, room: str) -> bool:
    if module.split(".", maxsplit=1)[0] in sys.stdlib_module_names:
        return True
    return any(module == prefix or module.startswith(prefix + ".") for prefix in MAY_IMPORT[room] | EVERYBODY)


def wrong_direction(path: Path, source: str) -> list[Place]:
    room = room_of(path)
    return [
        Place(path, getattr(node, "lineno", 0), f"{room} may not import {module}")
        for node in statements(source)
        for module in imported(node, path)
        if not allowed(module, room)
    ]


def inside_functions(path: Path, source: str) -> list[Place]:
    if not INDENTED_IMPORT.search(source):
        return []
    functions = [node for node in statements(source) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    found = {
        Place(path, inner.lineno, f"import inside {function.name}; put it at the top of the module")
        for function in functions
        for inner in ast.walk(function)
        if isinstance(inner, ast.Import | ast.ImportFrom)
    }
    return sorted(found)


def test_every_room_of_the_package_is_in_the_table() -> None:
    rooms = {room_of(path) for path in python_files("src")}
    assert rooms <= MAY_IMPORT.keys(), f"say in MAY_IMPORT what these may import: {sorted(rooms - MAY_IMPORT.keys())}"


def test_imports_point_one_way() -> None:  # FM-3
    found = [place for path in python_files("src") for place in wrong_direction(path, path.read_text())]
    assert not found, listed(found)


def test_no_import_hides_inside_a_function() -> None:
    found = [place for path in python_files("src") for place in inside_functions(path, path.read_text())]
    assert not found, listed(found)


@pytest.mark.parametrize(
    ("room", "line"),
    [
        ("core", "import aiohttp"),
        ("core", "from mendflow.services.base.contracts import Clock"),
        ("core", "from ..stores import contract"),
        ("services", "from mendflow.stores import sqlite"),
        ("services", "import mendflow.stores.memory"),
        ("pilot", "from mendflow.services.api.domain import Domain"),
        ("server", "from mendflow.stores.contract import Store"),
        ("cli", "from mendflow.pilot.executor import Executor"),
        ("formats", "import requests"),
    ],
)
def test_the_reader_of_imports_sees_a_wrong_one(room: str, line: str) -> None:
    assert wrong_direction(PACKAGE / room / "example.py", line)


@pytest.mark.parametrize(
    ("room", "line"),
    [
        ("core", "from mendflow.core.model import ids"),
        ("core", "from .model import ids"),
        ("services", "from mendflow.stores.contract import Store"),
        ("services", "from mendflow.stores import contract"),
        ("pilot", "import asyncio"),
    ],
)
def test_the_reader_of_imports_lets_a_right_one_pass(room: str, line: str) -> None:
    assert not wrong_direction(PACKAGE / room / "example.py", line)


def test_the_reader_of_imports_sees_one_inside_a_method() -> None:
    source = "class A:\n    async def b(self) -> None:\n        import os\n"
    assert [place.line for place in inside_functions(PACKAGE / "pilot" / "example.py", source)] == [3]
