"""Processes that others wrote: all of them are read, and each makes a flow that can be run."""

import warnings
from pathlib import Path

import msgspec
import pytest

from mendflow.core.engine.plan import compile_flow
from mendflow.core.model.flow import Flow
from mendflow.formats import load

CONFORMANCE = Path(__file__).parents[4] / "shared" / "conformance" / "bpel" / "betsy"


def processes() -> list[Path]:
    """Those that there are; where the folder is not there, it is said so, and nothing of it was tried."""
    found = sorted(CONFORMANCE.glob("*/*.bpel"))
    if not found:
        warnings.warn(f"no processes of others lie at {CONFORMANCE}; none was tried", stacklevel=2)
    return found


def test_every_process_of_others_is_a_flow() -> None:  # FM-1
    for path in processes():
        flow = load(path)
        compile_flow(flow)
        assert flow.xml is not None and flow.xml.port_types and flow.xml.schemas, path.name
        assert flow.name == path.stem


@pytest.mark.full
def test_every_process_of_others_travels_as_json() -> None:  # FM-1
    for path in processes():
        flow = load(path)
        text = msgspec.json.encode(flow)
        assert msgspec.json.decode(text, type=Flow) == flow, path.name
        assert msgspec.json.encode(msgspec.json.decode(text, type=Flow)) == text, path.name
