"""Flow files that end in `.xml`: their root element says whether they describe a process or a job."""

from pathlib import Path

from mendflow.core.model.errors import BadFlow, Problem
from mendflow.core.model.flow import Flow
from mendflow.core.xml import parse
from mendflow.formats.bpel import load_bpel
from mendflow.formats.bpel.names import local_name
from mendflow.formats.files import flow_bytes
from mendflow.formats.jsdl import load_jsdl


def load_xml(path: Path, *, xpath2_as_1: bool = False) -> Flow:
    """Raises BadFlow if it is neither, and with all that is wrong with it."""
    root = local_name(parse(flow_bytes(path, str(path)), str(path)))
    if root == "JobDefinition":
        return load_jsdl(path)
    if root == "process":
        return load_bpel(path, xpath2_as_1=xpath2_as_1)
    message = f"<{root:.80}> is neither a job description in JSDL, <JobDefinition>, nor a BPEL process, <process>"
    raise BadFlow(problems=[Problem(file=str(path), line=1, message=message)])
