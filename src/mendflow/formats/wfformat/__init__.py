"""Traces of workflows in WfFormat, the JSON of WfCommons, as flows that can be checked, run and simulated."""

from pathlib import Path
from typing import Final

from mendflow.core.model.flow import Flow
from mendflow.formats.files import flow_text
from mendflow.formats.wfformat.flows import Scale, TaskWork, TraceFlow, as_flow, by_content, by_name
from mendflow.formats.wfformat.model import Trace, TraceTask
from mendflow.formats.wfformat.reader import read_trace

__all__ = [
    "TRACE",
    "Scale",
    "TaskWork",
    "Trace",
    "TraceFlow",
    "TraceTask",
    "as_flow",
    "by_content",
    "by_name",
    "load_trace",
    "load_trace_flow",
    "read_trace",
]

TRACE: Final = ".json"
TRACE_BYTES_MAX: Final = 64 * 1024 * 1024
AS_RECORDED: Final = Scale()


def load_trace(path: str | Path) -> Trace:
    """The trace in a file. Raises BadFlow with every problem and its place."""
    return read_trace(flow_text(Path(path), str(path), TRACE_BYTES_MAX), str(path))


def load_trace_flow(path: str | Path, scale: Scale = AS_RECORDED) -> Flow:
    """The trace as a flow that can be run."""
    return as_flow(load_trace(path), scale).flow
