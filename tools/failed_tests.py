"""A plugin of pytest: it writes down which tests failed, which passed, and which failures no second run may excuse.

`-p tools.failed_tests` loads it; the variable MENDFLOW_TEST_LIST names the file. The list is written when the run has
come to its end: a run that crashed leaves none."""

import json
import os

import pytest

from tools.second_run import LIST

BY_CHANCE = frozenset({"law", "hypothesis"})
"""Marks of tests that look for a violation by chance: one that fails now and passes then has found one."""

_failed: dict[str, bool] = {}
_passed: set[str] = set()
_broken: set[str] = set()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed and report.when not in ("setup", "call", "teardown"):
        _broken.add(report.nodeid)  # the process that ran it is dead
    elif report.failed:
        _failed[report.nodeid] = not BY_CHANCE.isdisjoint(report.keywords)
    elif report.passed and report.when == "call":
        _passed.add(report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _broken.add(report.nodeid)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    path = os.environ.get(LIST, "")
    if not path or hasattr(session.config, "workerinput"):  # a worker knows only its own tests
        return
    told = {
        "failed": sorted(_failed),
        "by_chance": sorted(test for test, by_chance in _failed.items() if by_chance),
        "passed": sorted(_passed - _failed.keys()),
        "broken": sorted(_broken),
    }
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump(told, file)
    os.replace(f"{path}.new", path)
