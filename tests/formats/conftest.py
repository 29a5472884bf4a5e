"""Flows from texts, as tests of formats want them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mendflow.core.model.errors import BadFlow
from mendflow.core.model.flow import Flow
from mendflow.formats.yaml import read_flow

Reader = Callable[[str], Flow]
Complaints = Callable[[str], list[str]]


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    """The flow of a text that stands in an empty folder as flow.yaml."""

    def reader(text: str) -> Flow:
        return read_flow(text, tmp_path / "flow.yaml")

    return reader


@pytest.fixture
def complaints(tmp_path: Path) -> Complaints:
    """Everything that is wrong with a text, one line each, as `line:column: message (did you mean ...?)`."""

    def complain(text: str) -> list[str]:
        with pytest.raises(BadFlow) as caught:
            read_flow(text, tmp_path / "flow.yaml")
        return [str(problem).removeprefix(f"{tmp_path / 'flow.yaml'}:").strip() for problem in caught.value.problems]

    return complain
