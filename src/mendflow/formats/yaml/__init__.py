"""The native flow file, in YAML."""

from pathlib import Path

from msgspec.structs import replace

from mendflow.core.engine.files_beside import paths_beside
from mendflow.core.model.errors import BadFlow
from mendflow.core.model.flow import UNSENT_FOLDER, Flow
from mendflow.formats.yaml.called_flows import FlowFileLoader
from mendflow.formats.yaml.sent_files import SentFiles

__all__ = ["load_flow", "read_flow", "read_flow_alone"]


def load_flow(path: str | Path) -> Flow:
    """The flow in a file. Raises BadFlow with every problem and its place."""
    path = Path(path)
    return FlowFileLoader(path.parent).load(path, str(path))


def read_flow(text: str, path: str | Path) -> Flow:
    """The flow in a text that stands, or would stand, at this path."""
    path = Path(path)
    return FlowFileLoader(path.parent).read(text, path, str(path))


def read_flow_alone(text: str, file: str, sent: SentFiles | None = None) -> Flow:
    """The flow in a text that came without its folder; nothing on this machine is looked at. With `sent`, it is a
    problem if the text names a file beside it that was not sent."""
    loader = FlowFileLoader(Path(UNSENT_FOLDER), is_alone=True, sent=sent)
    if sent is None:
        return loader.read(text, Path(file), file)
    try:
        flow = loader.read(text, Path(file), file)
    except BadFlow:
        if not sent.must_read_again:
            raise
    if sent.must_read_again:
        flow = loader.read(text, Path(file), file)
    beside = paths_beside({path: ref for path, ref in sent.named.items() if ref is not None})
    return replace(flow, beside=beside) if beside else flow
