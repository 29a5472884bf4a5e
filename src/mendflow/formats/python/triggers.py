"""The option `on` of a flow in Python: what a flow file has under `on:`, as a dict."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from mendflow.core.model.errors import BadFlow
from mendflow.core.model.flow import Flow
from mendflow.formats.yaml.document import SourceSpan
from mendflow.formats.yaml.reader import YamlReader
from mendflow.formats.yaml.triggers import node_of_data, triggers_of


def with_triggers(flow: Flow, on: object, function: Callable[..., Any]) -> Flow:
    """The flow with what `on` says, read as if it stood in a flow file. Raises BadFlow."""
    code = function.__code__
    place = SourceSpan(code.co_firstlineno, 1, 0, 0)
    reader = YamlReader(code.co_filename, "", Path(flow.folder))
    triggers = triggers_of(reader, node_of_data(on, place), flow)
    if reader.problems:
        raise BadFlow(problems=reader.problems)
    return msgspec.structs.replace(flow, triggers=triggers)
