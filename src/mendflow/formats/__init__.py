"""Documents to flows: which format a file is in is said by its name."""

from pathlib import Path

from mendflow.core.model.errors import BadFlow, Problem
from mendflow.core.model.flow import Flow
from mendflow.formats.bpel import BPEL_ENDING, load_bpel
from mendflow.formats.files import select_flow
from mendflow.formats.jsdl import JSDL_ENDING, load_jsdl
from mendflow.formats.python.loader import load_python
from mendflow.formats.wfformat import TRACE, load_trace_flow
from mendflow.formats.yaml import load_flow

__all__ = ["load"]

YAML = (".yaml", ".yml")


def load(path: str | Path, flow_name: str = "") -> Flow:
    """The flow of a file: `flow.yaml`, `flow.py` if it has one flow, `flow.py:name`, a process, `process.bpel`, a job,
    `job.jsdl`, or a trace, `trace.json`. Raises BadFlow."""
    text = str(path)
    if ".py:" in text and not flow_name:
        text, _, flow_name = text.rpartition(":")
    file = Path(text)
    if file.suffix in YAML:
        return select_flow({(flow := load_flow(file)).name: flow}, flow_name, text)
    if file.suffix == ".py":
        return select_flow(load_python(file, flow_name), flow_name, text)
    if file.suffix == TRACE:
        return select_flow({(flow := load_trace_flow(file)).name: flow}, flow_name, text)
    if file.suffix == JSDL_ENDING:
        return select_flow({(flow := load_jsdl(file)).name: flow}, flow_name, text)
    if file.suffix == BPEL_ENDING:
        return select_flow({(flow := load_bpel(file)).name: flow}, flow_name, text)
    message = "a flow file ends in .yaml, .yml, .py, .bpel, .jsdl for a job, or .json for a trace"
    raise BadFlow(problems=[Problem(file=text, message=message)])
