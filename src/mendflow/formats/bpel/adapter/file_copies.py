"""Copies the files that a process imports. A process that is written to another folder gets copies of all its imports
in a folder beside it, and every location in them refers to a copy."""

import posixpath
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

from lxml import etree

from mendflow.core.xml import ParsedElement
from mendflow.formats.bpel.adapter.text_edits import TextEditor
from mendflow.formats.bpel.names import local_name, namespace, own_elements
from mendflow.formats.bpel.reader import SourceDocument
from mendflow.formats.bpel.source_files import UnreachableFile, resolve_location
from mendflow.formats.bpel.vocabulary import SCHEMA, WSDL

LOCATIONS: Final = {WSDL: "location", SCHEMA: "schemaLocation"}


def copy_files(
    splice: TextEditor, process: ParsedElement, documents: list[SourceDocument], folder: str
) -> dict[str, bytes]:
    """Copies by their paths, as seen from the new place of the process. Changes the locations in the process itself."""
    names = _names(documents, folder)
    for at in own_elements(process, "import"):
        if copy := _copy_of(at.get("location", "").strip(), "", names):
            splice.set(at, "location", copy)
    return {names[each.location]: _copy(each, names) for each in documents if each.location in names}


def _names(documents: list[SourceDocument], folder: str) -> dict[str, str]:
    """Where each document goes: it keeps its name, with a number if another one has it."""
    found: dict[str, str] = {}
    for each in documents:
        if posixpath.isabs(each.location):
            continue  # one of the ports that ship with the product: nobody has a location for it
        file = PurePosixPath(each.location)
        name, number = f"{folder}/{file.name}", 1
        while name in found.values():
            number += 1
            name = f"{folder}/{file.stem}-{number}{file.suffix}"
        found[each.location] = name
    return found


def _copy(document: SourceDocument, names: dict[str, str]) -> bytes:
    folder = posixpath.dirname(names[document.location])
    for at in _imports(document.root):
        attribute = LOCATIONS[namespace(at)]
        if copy := _copy_of(at.get(attribute, "").strip(), document.location, names):
            at.set(attribute, posixpath.relpath(copy, folder))
    return serialize_document(document.root)


def _imports(root: ParsedElement) -> Iterator[ParsedElement]:
    for at in root.iter(f"{{{WSDL}}}import", f"{{{SCHEMA}}}*"):
        if local_name(at) in ("import", "include", "redefine"):
            yield at


def _copy_of(location: str, base: str, names: dict[str, str]) -> str:
    """Where the copy of a file stands; empty for what has none, since it leads into the network."""
    try:
        return names.get(resolve_location(location, base), "")
    except UnreachableFile:
        return ""


def serialize_document(root: ParsedElement) -> bytes:
    """The whole document as it is written to a file, with what stands before and after its root."""
    text = etree.tostring(root.getroottree(), encoding="unicode").strip()
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode()
