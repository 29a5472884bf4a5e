"""What holds for all tests: how many examples Hypothesis draws, and which tests run alone."""

import os
from pathlib import Path

import hypothesis
import pytest

EXAMPLES = {"fast": 25, "usual": 100, "long": 2000}
RUN_ALONE = frozenset({"e2e"})

for name, examples in EXAMPLES.items():
    hypothesis.settings.register_profile(
        name,
        max_examples=examples,
        # The machine may be busy; how long an example takes proves nothing.
        deadline=None,
        print_blob=True,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
hypothesis.settings.load_profile(os.environ.get("MENDFLOW_TEST_PROFILE", "usual"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests under tests/e2e start and kill real servers, so they are all marked `alone`."""
    tests = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(tests) and item.path.relative_to(tests).parts[0] in RUN_ALONE:
            item.add_marker(pytest.mark.alone)
