"""The measurement of staging tells what it could not measure, and goes on."""

import errno
from collections.abc import Callable

import pytest

from bench import staging
from bench.staging import StagingResult, StagingVariants, measured, shown

pytestmark = pytest.mark.usefixtures("no_pauses")


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr("os.sync", lambda: None)


def refusing(times: int) -> Callable[[], None]:
    """A server that has room only after so many tries."""
    left = [times]

    def way() -> None:
        if left[0]:
            left[0] -= 1
            raise OSError(errno.EIO, "InternalError")

    return way


def ways(staged: Callable[[], object]) -> StagingVariants:
    return StagingVariants("to S3", 1000, lambda: None, lambda: None, staged, lambda: None)


def test_a_try_that_a_server_refused_is_made_again() -> None:
    found = measured(ways(refusing(staging.TRIES - 1)), 2)
    assert not found.left_out and found.of_plain > 0 and found.of_careful > 0


def test_a_way_that_is_refused_again_and_again_is_told_of_and_leaves_the_others() -> None:
    found = [StagingResult("on a disk", 100, 50, 95, 0.95, 1.9), measured(ways(refusing(100)), 2)]
    text = shown(found)
    assert "to S3 is left out: OSError: [Errno 5] InternalError" in text and "|to S3|" not in text
    assert "|on a disk|100|50|95|95%|190%|" in text
