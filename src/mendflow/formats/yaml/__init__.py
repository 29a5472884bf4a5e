"""The native flow file, in YAML."""

from pathlib import Path

from mendflow.core.model.flow import NO_FOLDER, Flow
from mendflow.formats.yaml.called_flows import FlowFileLoader

__all__ = ["load_flow", "read_flow", "read_flow_alone"]


def load_flow(path: str | Path) -> Flow:
    """The flow in a file. Raises BadFlow with every problem and its place."""
    path = Path(path)
    return FlowFileLoader(path.parent).load(path, str(path))


def read_flow(text: str, path: str | Path) -> Flow:
    """The flow in a text that stands, or would stand, at this path."""
    path = Path(path)
    return FlowFileLoader(path.parent).read(text, path, str(path))


def read_flow_alone(text: str, file: str) -> Flow:
    """The flow in a text that came without the files beside it; nothing on this machine is looked at."""
    return FlowFileLoader(Path(NO_FOLDER), is_alone=True).read(text, Path(file), file)
