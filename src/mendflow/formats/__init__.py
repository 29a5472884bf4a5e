"""Reads flows from documents; the file name gives the format."""

from pathlib import Path
from typing import TYPE_CHECKING

from mendflow.core.model.errors import BadFlow, Problem
from mendflow.core.model.flow import Flow
from mendflow.formats.files import select_flow
from mendflow.lazy import LazyModule

if TYPE_CHECKING:
    from mendflow.formats import bpel, jsdl, wfformat, xml_files
    from mendflow.formats import yaml as flow_files
    from mendflow.formats.python import loader as python_files
else:
    bpel = LazyModule("mendflow.formats.bpel")
    jsdl = LazyModule("mendflow.formats.jsdl")
    wfformat = LazyModule("mendflow.formats.wfformat")
    xml_files = LazyModule("mendflow.formats.xml_files")
    flow_files = LazyModule("mendflow.formats.yaml")
    python_files = LazyModule("mendflow.formats.python.loader")

__all__ = ["JOB", "PROCESS", "PYTHON", "TRACE", "XML", "YAML", "load"]

YAML = (".yaml", ".yml")
PYTHON, TRACE, JOB, PROCESS, XML = ".py", ".json", ".jsdl", ".bpel", ".xml"


def load(path: str | Path, flow_name: str = "", *, xpath2_as_1: bool = False) -> Flow:
    """The flow of a file: `flow.yaml`, `flow.py` if it has one flow, `flow.py:name`, a process, `process.bpel`, a job,
    `job.jsdl`, or a trace, `trace.json`; what is in an `.xml` file is known by its root element. `xpath2_as_1`:
    what a process has in XPath 2.0 is read as XPath 1.0. Raises BadFlow."""
    text = str(path)
    if ".py:" in text and not flow_name:
        text, _, flow_name = text.rpartition(":")
    file = Path(text)
    if file.suffix in YAML:
        return select_flow({(flow := flow_files.load_flow(file)).name: flow}, flow_name, text)
    if file.suffix == PYTHON:
        return select_flow(python_files.load_python(file, flow_name), flow_name, text)
    if file.suffix == TRACE:
        return select_flow({(flow := wfformat.load_trace_flow(file)).name: flow}, flow_name, text)
    if file.suffix == JOB:
        return select_flow({(flow := jsdl.load_jsdl(file)).name: flow}, flow_name, text)
    if file.suffix == PROCESS:
        return select_flow({(flow := bpel.load_bpel(file, xpath2_as_1=xpath2_as_1)).name: flow}, flow_name, text)
    if file.suffix == XML:
        return select_flow({(flow := xml_files.load_xml(file, xpath2_as_1=xpath2_as_1)).name: flow}, flow_name, text)
    message = "a flow file ends in .yaml, .yml, .py, .bpel, .jsdl or .xml for a job, or .json for a trace"
    raise BadFlow(problems=[Problem(file=text, message=message)])
