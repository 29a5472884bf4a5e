"""Paths of files beside a flow's text, where the text came without its folder."""

from typing import Any, Final

from mendflow.core.data.path_patterns import means_many
from mendflow.core.engine.files_beside import AT_START, is_beside
from mendflow.formats.yaml.document import ListNode, YamlNode
from mendflow.formats.yaml.reader import YamlReader

BY_COMMAND: Final = "deploy with `mendflow flows deploy FILE`"


def sent_source(reader: YamlReader, node: YamlNode, source: Any) -> Any:
    """What stands for a source where a text came alone: the stored file, if it is the path of one beside the text. A
    path from the root is one of the server's machine."""
    if reader.sent is None or not is_beside(source):
        return source
    if means_many(source):
        reader.problem(node, f"`{source}` may be several files beside the flow's file: {BY_COMMAND}, which sends them")
        return source
    return _sent_file(reader, node, source, BY_COMMAND)


def sent_sources(reader: YamlReader, node: YamlNode, given: Any) -> Any:
    """What stands for the paths that are the default of an input of the type `files`, where a text came alone. What a
    pattern matches is looked for only when a case starts, so it is not sent by a command that deploys, either."""
    if reader.sent is None:
        return given
    sources = given if isinstance(given, list) else [given]
    nodes = node.parts if isinstance(node, ListNode) else [node]
    found = [_sent_of_several(reader, each, source) for each, source in zip(nodes, sources, strict=True)]
    return given if found == sources else found


def _sent_of_several(reader: YamlReader, node: YamlNode, source: Any) -> Any:
    if not is_beside(source):
        return source
    if means_many(source):
        told = f"`{source}` may be several files beside the flow's file, and none is sent by that"
        reader.problem(node, f"{told}: list their paths here, and add the files, or {AT_START}")
        return source
    return _sent_file(reader, node, source, AT_START)


def _sent_file(reader: YamlReader, node: YamlNode, path: str, otherwise: str) -> Any:
    assert reader.sent is not None
    if (found := reader.sent.take(path)) is not None:
        return found.as_value()
    reader.problem(node, f"`{path}` is beside the flow's file, and was not sent: add it here, or {otherwise}")
    return path


def refuse_unread(reader: YamlReader, node: YamlNode, path: str) -> None:
    """What stands in the file goes into the flow, and a text that came alone is read without it."""
    if reader.sent is not None:
        reader.problem(node, f"what stands in `{path}` goes into the flow, and is not read here: {BY_COMMAND}")
