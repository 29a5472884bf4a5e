"""JSDL 1.0: reads a job description as a flow of one job, and writes a job as far as JSDL can express it."""

from pathlib import Path

from mendflow.core.model.flow import Flow
from mendflow.formats.files import flow_bytes
from mendflow.formats.jsdl.document import flow_of, read_document
from mendflow.formats.jsdl.writer import write_jsdl

RECEIVED = "the job description"
"""What errors call a description that came in a message."""

__all__ = ["RECEIVED", "flow_of", "load_jsdl", "read_jsdl", "write_jsdl"]


def load_jsdl(path: str | Path, file_name: str = "") -> Flow:
    """The flow of a file, which errors call `file_name`. Raises BadFlow with all that cannot be honoured."""
    path, file_name = Path(path), file_name or str(path)
    return read_document(flow_bytes(path, file_name), path, file_name)


def read_jsdl(data: bytes | str, path: str | Path = "job.jsdl") -> Flow:
    """The flow of a text at this (perhaps hypothetical) path."""
    return read_document(data, Path(path))
