"""The project's own text, as the tests of its shape read it."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "mendflow"
PYTHON_FOLDERS = ("src", "tests", "bench", "experiments", "tools", "examples")
TEXT_SUFFIXES = frozenset(
    {
        ".py",
        ".md",
        ".toml",
        ".yaml",
        ".yml",
        ".json",
        ".sql",
        ".in",
        ".cfg",
        ".sh",
        ".html",
        ".css",
        ".js",
        ".ts",
        ".tsx",
    }
)
NOT_OURS = frozenset({"__pycache__", "node_modules", "web_files"})


class Place(NamedTuple):
    """A finding that an editor can jump to."""

    path: Path
    line: int
    finding: str

    def __str__(self) -> str:
        shown = self.path.relative_to(ROOT) if self.path.is_relative_to(ROOT) else self.path
        return f"{shown}:{self.line}: {self.finding}"


def python_files(*folders: str) -> list[Path]:
    roots = [ROOT / folder for folder in folders or PYTHON_FOLDERS]
    files = [path for root in roots for path in root.rglob("*.py")]
    return sorted([*files, *(ROOT.glob("*.py") if not folders else ())])


def text_files() -> list[Path]:
    """Every text that the project holds, whatever it is for."""
    folders = [ROOT / folder for folder in (*PYTHON_FOLDERS, "docs", "requirements", ".ci", "web")]
    found = [path for folder in folders for path in folder.rglob("*") if _is_text(path)]
    return sorted([*found, *(path for path in ROOT.iterdir() if _is_text(path))])


def _is_text(path: Path) -> bool:
    ours = not NOT_OURS.intersection(path.parts) and path.is_file()
    return ours and (path.suffix in TEXT_SUFFIXES or path == ROOT / ".ci" / "run")


def nodes(source: str) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(source))


def statements(source: str) -> Iterator[ast.AST]:
    """Every statement, however deep inside others. No expression holds one, so that none needs to be looked through,
    and most of a text is expressions."""
    waiting: list[ast.AST] = [ast.parse(source)]
    while waiting:
        holder = waiting.pop()
        yield holder
        for part in ("handlers", "cases", "finalbody", "orelse", "body"):
            within = getattr(holder, part, ())
            waiting += reversed(within) if isinstance(within, list) else ()


def listed(places: list[Place]) -> str:
    return "\n" + "\n".join(str(place) for place in places)
