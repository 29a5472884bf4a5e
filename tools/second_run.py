"""Which failures of a stage of tests may be excused by a second run, and what that run has shown.

A test that fails beside others and passes alone, once, on the same code, tells of a busy machine more often than of a
defect; it is told as unsteady, by name. What is never excused: docs/understand/decisions/0030."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

PLUGIN: Final = ("-p", "tools.failed_tests")
LIST: Final = "MENDFLOW_TEST_LIST"
"""The variable by which the plugin is told where to write its list."""

FAILED_MAX: Final = 20
"""So many failed tests of one stage are run again; more are no accident."""

UNSTEADY_MAX: Final = 5
"""So many tests of a whole check may be unsteady."""

TESTS_FAILED: Final = 1
"""The exit code by which pytest says that it ran to its end, and tests failed."""


class ListedTests(NamedTuple):
    """What tools/failed_tests.py has written of a run."""

    failed: tuple[str, ...] = ()
    by_chance: tuple[str, ...] = ()
    passed: frozenset[str] = frozenset()
    broken: tuple[str, ...] = ()


def read_list(path: Path) -> ListedTests | None:
    """None if the run has left no list that can be read."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return ListedTests(
            tuple(told["failed"]), tuple(told["by_chance"]), frozenset(told["passed"]), tuple(told["broken"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def refusal(code: int, listed: ListedTests | None) -> str:
    """Why the failures of a stage are not run again; empty if they are."""
    if listed is not None and listed.broken:
        return f"it could not be run to its end: {', '.join(listed.broken)}"
    if listed is None or code != TESTS_FAILED or not listed.failed:
        return f"it ended with {code} and left no list of failed tests"
    if listed.by_chance:
        return f"one violation in many runs is a defect: {', '.join(listed.by_chance)}"
    if len(listed.failed) > FAILED_MAX:
        return f"{len(listed.failed)} tests failed, more than {FAILED_MAX}"
    return ""


def steady_now(wanted: Sequence[str], second: ListedTests | None) -> list[str]:
    """Those of the tests that have certainly run again, and passed."""
    return [test for test in wanted if second is not None and test in second.passed and not second.broken]
