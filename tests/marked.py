"""The marks of tests that have a stage of their own in the full check, and in which files these tests are."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

TESTS = Path(__file__).parent

SERVERS = "opensearch", "slurm", "gridengine", "ode", "openssh", "podman", "isolation", "genomics", "web"
"""Marks of tests that need software that not every machine has."""

APART = "waiting", "alone", *SERVERS
"""Marks of tests that have stages of their own in the full check; one with several is in the stage of the last."""

WHOLLY_APART = "tests/e2e", "tests/web"
"""Folders all of whose tests have such marks: the stage of all others need not read them."""


class Placed(Protocol):
    @property
    def path(self) -> Path: ...


Item = TypeVar("Item", bound=Placed)


def below(items: Iterable[Item], folder: Path) -> Iterator[Item]:
    """Those in this folder. Texts are compared: there are many thousand items, and paths are taken apart each time."""
    begin = f"{folder}{os.sep}"
    return (item for item in items if str(item.path).startswith(begin))


def files_with(mark: str, tests: Path = TESTS) -> list[Path]:
    """The files that name the mark, and the folders whose conftest.py does; tests/e2e is `waiting` as a whole."""
    naming = [path for path in sorted(tests.rglob("*.py")) if f"mark.{mark}" in path.read_text()]
    folders = {path.parent for path in naming if path.name == "conftest.py"} - {tests}
    if mark == "waiting":
        folders.add(tests / "e2e")
    files = [path for path in naming if path.name.startswith("test_") and folders.isdisjoint(path.parents)]
    return [*sorted(folders), *files]
