"""Flows from texts, as tests of formats want them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mendflow.core.engine.plan import compile_flow
from mendflow.core.model.errors import BadFlow
from mendflow.core.model.flow import Flow
from mendflow.formats import load
from mendflow.formats.yaml import read_flow
from tests.formats.python_flows import TOP, Loader

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


@pytest.fixture
def python(tmp_path: Path) -> Loader:
    """The flow of a body that stands under TOP; `names` are the inputs of the flow."""

    def loaded(body: str, inputs: str = "", top: str = "") -> Flow:
        lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
        (tmp_path / "work.py").write_text(f"{TOP}{top}\n@flow\ndef main({inputs}):\n{lines}\n")
        flow = load(tmp_path / "work.py", "main")
        compile_flow(flow)
        return flow

    return loaded
