"""Processes come on stage by their text."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bpel.stage import Stage

Playing = Callable[..., Stage]


@pytest.fixture
def play(tmp_path: Path) -> Callable[[str], Stage]:
    return lambda text: Stage(tmp_path, text)


@pytest.fixture
def spelled(tmp_path: Path) -> Callable[[str], str]:
    """What a process spells when it is given the word 0."""
    return lambda text: Stage(tmp_path, text).spell()
