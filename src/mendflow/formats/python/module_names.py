"""Finds imports that two modules answer to: a file beside the flow, and a module of Python's own.

Plain Python takes the file, as its folder comes first. Where jobs run, Python's own may be loaded already, and nobody
would be told that the file was passed over. So it is refused while nothing has run."""

import ast
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from mendflow.formats.python.dynamic_lookups import ImportNode
from mendflow.formats.python.sources import ModulesBeside

_BEFORE_ANY_FILE: Final = frozenset(
    {"abc", "builtins", "codecs", "encodings", "genericpath", "io", "marshal", "ntpath", "os", "posix", "posixpath"}
    | {"site", "stat", "sys", "time", "zipimport", *sys.builtin_module_names}
)
"""What Python itself has loaded before it looks at any folder: no file can stand for one of these."""


class NameClash(NamedTuple):
    """An import statement, and the module that it names."""

    path: Path
    line: int
    column: int
    module: str

    def sentence(self, folder: Path) -> str:
        found = f"{self.module}.py" if (folder / f"{self.module}.py").is_file() else f"{self.module}/"
        return (
            f"`{self.module}` is {found} beside the flow and a module of Python's own, and a job may get either; rename"
            f" {found}"
        )


def name_clashes(path: Path, folder: Path) -> list[NameClash]:
    """The imports of a source file, and of the modules beside it that it imports, that two modules answer to."""
    names = {name for name in _modules_in(folder) if name in sys.stdlib_module_names} - _BEFORE_ANY_FILE
    if not names:
        return []
    paths = [path, *(folder / name for name in sorted(ModulesBeside(path, folder).digests))]
    return [clash for each in dict.fromkeys(paths) for clash in _clashes_in(each, names)]


def _modules_in(folder: Path) -> Iterator[str]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.name.endswith(".py"):
            yield entry.name.removesuffix(".py")
        elif entry.name in sys.stdlib_module_names and os.path.isfile(os.path.join(entry.path, "__init__.py")):
            yield entry.name


def _clashes_in(path: Path, names: set[str]) -> Iterator[NameClash]:
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return  # whoever imports it is told
    for node in ast.walk(tree):
        if isinstance(node, ImportNode):
            for name in sorted(_first_names(node) & names):
                yield NameClash(path, node.lineno, node.col_offset + 1, name)


def _first_names(node: ImportNode) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name.split(".")[0] for alias in node.names}
    return {node.module.split(".")[0]} if node.module and not node.level else set()
