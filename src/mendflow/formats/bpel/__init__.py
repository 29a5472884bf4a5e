"""WS-BPEL 2.0 processes with their WSDL 1.1 and XML Schema files, read as flows."""

from pathlib import Path

from mendflow.core.model.flow import Flow
from mendflow.core.model.problems import BadFlow, Problem
from mendflow.formats.bpel.definitions import Definitions
from mendflow.formats.bpel.process import Parsed, flow_of, parsed
from mendflow.formats.bpel.reading import Document
from mendflow.formats.files import flow_bytes

__all__ = ["BPEL_ENDING", "Definitions", "Document", "Parsed", "load_bpel", "parse_bpel", "read_bpel"]

BPEL_ENDING = ".bpel"


def load_bpel(path: str | Path, shown: str = "") -> Flow:
    """The flow of a file, which is told of as `shown`. Raises BadFlow with all that is wrong."""
    path, shown = Path(path), shown or str(path)
    return read_bpel(flow_bytes(path, shown), path, shown)


def read_bpel(data: bytes | str, path: str | Path = "process.bpel", shown: str = "") -> Flow:
    """The flow of a text that stands, or would stand, at this path."""
    given = parse_bpel(data, path, shown)
    flow = flow_of(given)
    if given.problems:
        raise BadFlow(problems=_in_order(given.problems))
    return flow


def parse_bpel(data: bytes | str, path: str | Path = "process.bpel", shown: str = "") -> Parsed:
    """The process and what its imports define, before any of it is judged."""
    return parsed(data, Path(path), shown or str(path))


def _in_order(problems: list[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda each: (each.file, each.line))
