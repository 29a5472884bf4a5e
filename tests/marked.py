"""The marks of tests that have a stage of their own in the full check, and in which files these tests are."""

from pathlib import Path

TESTS = Path(__file__).parent

SERVERS = "opensearch", "slurm", "gridengine", "ode", "openssh", "podman", "isolation", "genomics", "web"
"""Marks of tests that need software that not every machine has."""

APART = "waiting", "alone", *SERVERS
"""Marks of tests that have stages of their own in the full check; one with several is in the stage of the last."""


def files_with(mark: str, tests: Path = TESTS) -> list[Path]:
    """The files that name the mark, and the folders whose conftest.py does; tests/e2e is `waiting` as a whole."""
    naming = [path for path in sorted(tests.rglob("*.py")) if f"mark.{mark}" in path.read_text()]
    folders = {path.parent for path in naming if path.name == "conftest.py"} - {tests}
    if mark == "waiting":
        folders.add(tests / "e2e")
    files = [path for path in naming if path.name.startswith("test_") and folders.isdisjoint(path.parents)]
    return [*sorted(folders), *files]
