"""What holds for all tests: how many examples Hypothesis draws, and which tests the full check alone runs."""

import gc
from collections.abc import Generator, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from mendflow.event_loop import GC_YOUNG_MAX
from tests.examples import PROFILE, PROFILES
from tests.marked import APART, TESTS, below, files_with
from tests.reading import one_reads_first
from tests.servers.warm_starts import warm_starts

STARTED = frozenset({"postgresql", "elastic-light", "s3"})
"""Servers that take seconds to start; memory, SQLite and folders prove the same contracts in the short check."""

WARM = {"cli": True, "recovery": True, "web": True, "pilot": False, "e2e": False}
"""Folders whose tests start many processes of mendflow, and whether what these start is forked as well."""

for name, examples in PROFILES.items():
    hypothesis.settings.register_profile(
        name,
        max_examples=examples,
        # The machine may be busy; how long an example takes proves nothing.
        deadline=None,
        print_blob=True,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
hypothesis.settings.load_profile(PROFILE)
if PROFILE == "short":
    # Hypothesis reads all our sources for constants to try: 5.6 seconds in each process of a fresh clone, and with few
    # examples it tries hardly any of them.
    providers._get_local_constants = Constants


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Nothing that is read goes before the end, so that no garbage is looked for meanwhile."""
    own = session.config.option.basetemp
    gc.disable()
    try:
        with one_reads_first(Path(own) if own else None):
            return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on a server that has to be started, and all of tests/e2e but those marked `short`, are for the full check.
    Those of tests/e2e start real processes and mostly wait for them."""
    e2e = frozenset(below(items, Path(__file__).parent / "e2e"))
    for item in items:
        if item in e2e:
            item.add_marker(pytest.mark.waiting)
            if item.get_closest_marker("short") is None:
                item.add_marker(pytest.mark.full)
        elif not STARTED.isdisjoint(value for value in _parameters(item) if isinstance(value, str)):
            item.add_marker(pytest.mark.full)
    _found_by_their_stages(items)


def _found_by_their_stages(items: list[pytest.Item]) -> None:
    """A stage of the check reads only the files of its mark: a test with the mark elsewhere would never be run."""
    marked: dict[str, set[Path]] = {}
    above = {item.parent for item in items if item.parent is not None}
    for node in (*items, *above):
        for each in node.own_markers if isinstance(node, pytest.Item) else node.iter_markers():
            if each.name in APART:
                marked.setdefault(each.name, set()).add(node.path)
    for mark, paths in marked.items():
        places = files_with(mark)
        for path in paths:
            if not any(path.is_relative_to(place) for place in places):
                raise pytest.UsageError(f"{path} has tests marked {mark}, but does not name the mark itself")


@pytest.fixture(scope="module", autouse=True)
def starting_warm(request: pytest.FixtureRequest) -> Iterator[None]:
    """Processes of mendflow are forked from one that has loaded it."""
    folder = request.path.relative_to(TESTS).parts[0]
    with warm_starts(below=WARM[folder]) if folder in WARM else nullcontext():
        yield


def pytest_collection_finish() -> None:
    """What was collected stays to the end, with the little garbage among it: whoever looks for garbage need not look
    through thousands of tests. It is looked for nearly as seldom as in a server. A server freezes what there is when it
    begins; in this process that would keep all that earlier tests have left, such as tasks, through which every
    `asyncio.run` looks at its end."""
    gc.freeze()
    gc.set_threshold(GC_YOUNG_MAX, 10, 10)
    collector: Any = gc
    collector.freeze = lambda: None


def _parameters(item: pytest.Item) -> Iterable[object]:
    return item.callspec.params.values() if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
