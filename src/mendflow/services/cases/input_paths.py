"""Where the inputs of a case came from that this server read by their paths: those that a schedule names, or whoever
starts a case without saying more.

Who corrects such a file and runs the case again means the corrected one, whoever started the case."""

from pathlib import Path

import msgspec

from mendflow.core.data.input_types import is_table_path
from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.flow import FILE, FILES, NO_FOLDER, UNSENT_FOLDER, Flow, Input
from mendflow.core.model.values import Value
from mendflow.core.model.views import CaseOrigin


def origin_of_paths(flow: Flow, given: dict[str, Value]) -> CaseOrigin | None:
    """The inputs that are given as paths, relative to the flow's folder, and the files that are looked for by a
    default; as a command line would name them. None if there are none."""
    if flow.folder in ("", NO_FOLDER, UNSENT_FOLDER):
        return None
    inputs = {
        name: text
        for name, declared in flow.inputs.items()
        if (text := _path_text(declared, given.get(name, declared.default), flow.folder))
    }
    return CaseOrigin(inputs=inputs) if inputs else None


def _path_text(declared: Input, value: Value, folder: str) -> str:
    """The value with its path made absolute; empty if it names no file of this machine."""
    if declared.type == FILES:
        return _patterns_text(value if isinstance(value, list) else [value], folder)
    if is_table_path(declared, value):
        return f"@{_absolute(str(value), folder)}"
    if declared.type == FILE and isinstance(value, str) and not _is_elsewhere(value):
        return _absolute(value, folder)
    return ""


def _patterns_text(patterns: list[Value], folder: str) -> str:
    texts = [each for each in patterns if isinstance(each, str)]
    if len(texts) < len(patterns) or all(map(_is_elsewhere, texts)):
        return ""
    named = [each if _is_elsewhere(each) else _absolute(each, folder) for each in texts]
    return named[0] if len(named) == 1 else msgspec.json.encode(named).decode()


def _is_elsewhere(path: str) -> bool:
    return path.startswith(LOGICAL_PREFIX) or "://" in path


def _absolute(path: str, folder: str) -> str:
    return str(Path(folder, path).absolute())
