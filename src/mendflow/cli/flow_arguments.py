"""Arguments that name a flow file: which flow they mean, and the text that is sent with it. If a Python file has
several flows, the user must choose one; the error names all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mendflow.cli.printing import say
from mendflow.core.model.errors import InvalidRequest, Problem
from mendflow.core.model.flow import Flow
from mendflow.core.model.flow_files import FLOW_TEXT_MAX, FlowSource, plain_file_name
from mendflow.formats import JOB, PROCESS, PYTHON, TRACE, XML, YAML, load
from mendflow.formats.check import flows_of
from mendflow.lazy import LazyModule
from mendflow.pages.formatting import count_text

if TYPE_CHECKING:
    from mendflow.formats import bpel, wfformat
else:
    bpel = LazyModule("mendflow.formats.bpel")
    wfformat = LazyModule("mendflow.formats.wfformat")


Xpath2As1 = Annotated[
    bool,
    typer.Option("--xpath2-as-1", help="Read what a BPEL process has in XPath 2.0 as XPath 1.0."),
]


UTF8_BYTES_MAX: Final = 4
"""Bytes of a character."""
TOO_LONG: Final = f"the file is longer than {FLOW_TEXT_MAX:,} characters, and not kept"


def load_one(text: str, scale: wfformat.Scale | None = None, *, xpath2_as_1: bool = False) -> Flow:
    """The flow of `flow.yaml`, `flow.py`, `flow.py:name`, `process.bpel`, `job.jsdl` or `trace.json`; only a trace
    can be scaled."""
    if scale is not None:
        if not text.endswith(TRACE):
            raise InvalidRequest(
                f"{text} is not a trace, so its times cannot be scaled; leave --scale and --size-scale out"
            )
        return wfformat.load_trace_flow(text, scale)
    if not text.endswith(PYTHON):
        found = load(Path(text), xpath2_as_1=xpath2_as_1)
        if xpath2_as_1 and (differences := xpath2_notes(text)):
            number = count_text(len(differences), "expression")
            say(f"{number} may mean something else in XPath 2.0; `mendflow check --xpath2-as-1` lists them", err=True)
        return found
    flows = main_first(flows_of(text))
    if len(flows) == 1:
        return flows[0]
    names = ", ".join(flow.name for flow in flows)
    raise InvalidRequest(f"{text} has several flows: {names}; choose one, as {text}:{flows[0].name}")


def source_of(text: str) -> FlowSource | None:
    """The file that a word names, as a server keeps it beside the flow; None if it is no text. Of a job description it
    is not: what it logs in with at other places stands in it, and in nothing that is kept."""
    path = Path(text if ".py:" not in text else text.rpartition(":")[0])
    name = plain_file_name(path.name)
    if path.suffix in (JOB, XML):
        return FlowSource(file=name, left_out="it may have credentials in it, and is not kept")
    try:
        content = path.read_text(encoding="utf-8") if path.stat().st_size <= UTF8_BYTES_MAX * FLOW_TEXT_MAX else None
        if content is None or len(content) > FLOW_TEXT_MAX:
            return FlowSource(file=name, left_out=TOO_LONG)
        return FlowSource(file=name, text=content)
    except (OSError, UnicodeDecodeError):
        return None


def xpath2_notes(text: str) -> list[Problem]:
    """The expressions of a process in XPath 2.0 that may mean something else as XPath 1.0; none for other files."""
    return bpel.xpath2_differences(text) if Path(text).suffix in (PROCESS, XML) else []


def main_first(flows: list[Flow]) -> list[Flow]:
    """Flows that no other one calls come first."""
    called = {inner.name for flow in flows for inner in flow.calls}
    return sorted(flows, key=lambda flow: flow.name in called)


def is_flow_file(text: str) -> bool:
    """Whether a word names a file: a deployed flow's name has no ending and no folder."""
    return Path(text).suffix in (*YAML, PYTHON, PROCESS, JOB, XML, TRACE) or ".py:" in text or "/" in text


def named_stores(flows: list[Flow]) -> set[str]:
    """The storage elements that flows name under `on`."""
    arrivals = [each.triggers.files for each in flows if each.triggers is not None]
    return {files.element for files in arrivals if files is not None and files.element}
