"""Reads the tables of a flow file: CSV and other files that it names, and that lie beside it."""

from collections.abc import Mapping

import msgspec

from mendflow.core.model.values import Value
from mendflow.formats import tables
from mendflow.formats.yaml.document import YamlNode
from mendflow.formats.yaml.reader import YamlReader
from mendflow.formats.yaml.unsent_files import refuse_unread


def read_flow_table(reader: YamlReader, node: YamlNode | None, path: str, columns: Mapping[str, str]) -> Value:
    """The rows of a table beside the flow, as they are when the flow is read."""
    if reader.is_alone:
        assert node is not None
        refuse_unread(reader, node, path)
        return []
    try:
        return tables.read_table(reader.folder / path, columns, str(reader.folder))
    except tables.BadTable as bad:
        assert node is not None
        for problem in bad.problems:
            told = str(msgspec.structs.replace(problem, file=path, suggestion=""))
            reader.problem(node, told, problem.suggestion)
        return []
