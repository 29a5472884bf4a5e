"""<DataStaging>: files that are brought to a job before it starts, and taken to their places after it.

A job's folder is new for each attempt and gone after it. So whatever is brought overwrites nothing, and nothing has to
be deleted: a file that is to stay is one that has a target."""

import posixpath
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from mendflow.core.data.paths import name_flaw
from mendflow.core.data.protocols import PROTOCOLS, WRITTEN, protocol_flaw, target_flaw
from mendflow.core.expressions import literal
from mendflow.core.model.data import LOGICAL
from mendflow.core.model.flow import Publishing
from mendflow.core.xml import Node
from mendflow.formats.jsdl.file_systems import FileSystems, Spot
from mendflow.formats.jsdl.reading import Reading, local, shown
from mendflow.formats.jsdl.vocabulary import FLAGS
from mendflow.formats.names import NAME
from mendflow.formats.spelling import nearest

PARTS: Final = {
    "FileName": 1,
    "FilesystemName": 1,
    "CreationFlag": 1,
    "DeleteOnTermination": 1,
    "Source": 1,
    "Target": 1,
}
SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
APPEND: Final = (
    "<CreationFlag> append cannot be honoured: a job's folder is new each time, so there is nothing to append to, and "
    "an attempt that is repeated would append to its target twice; say overwrite, and let the job join files"
)


class Staged(msgspec.Struct, kw_only=True):
    """Files by their paths in the job's folder. `names` are what those with a target are called."""

    inputs: dict[str, str]
    targets: dict[str, Publishing]
    names: dict[str, str]


def staged_files(reading: Reading, given: Sequence[Node], systems: FileSystems, folder: Spot) -> Staged:
    found = Staged(inputs={}, targets={}, names={})
    for at in given:
        _take_in(reading, at, systems, folder, found)
    return found


def _take_in(reading: Reading, at: Node, systems: FileSystems, folder: Spot, found: Staged) -> None:
    name = reading.attributes(at, "name").get("name", "").strip()
    parts = reading.parts(at, PARTS)
    path = _path(reading, at, parts.get("FileName", []), parts.get("FilesystemName", []), systems, folder)
    flag = _flag(reading, at, parts.get("CreationFlag", []))
    for each in parts.get("DeleteOnTermination", []):
        reading.truth(each)
    for each in parts.get("Source", []):
        source = _source(reading, each)
        if path and path in found.inputs:
            reading.problem(
                each, f"two sources are brought to {shown(path)}, and nobody says which one stays; give them names"
            )
        if path and source:
            found.inputs[path] = source
    for each in parts.get("Target", []):
        target = _target(reading, each, overwrite=flag != "dontOverwrite")
        if path and path in found.targets:
            reading.problem(each, f"{shown(path)} has two targets: let the job copy it under a second name")
        if path and target is not None:
            found.targets[path] = target
            found.names[path] = _called(name, found)


def _called(name: str, found: Staged) -> str:
    """A name of its own: the given one, if it can be one."""
    if NAME.fullmatch(name) and name not in (*found.names.values(), "output", "error"):
        return name
    return next(each for n in range(1, 1 << 30) if (each := f"staged_{n}") not in found.names.values())


def _path(
    reading: Reading, at: Node, names: Sequence[Node], given: Sequence[Node], systems: FileSystems, folder: Spot
) -> str:
    if not names:
        reading.problem(at, "<DataStaging> has no <FileName>")
        return ""
    text = reading.word(names[0])
    if not text:
        return ""
    system = reading.word(given[0]) if given else None
    if system is None and (text.startswith("/") or folder.inside is None):
        where = text if text.startswith("/") else f"{text} in the working directory"
        reading.problem(names[0], f"<FileName> {shown(where)} cannot be honoured: {OUTSIDE}")
        return ""
    spot = systems.spot(names[0], text, system, folder)
    if spot.inside is None and system is not None:
        reading.problem(given[0], f"<FilesystemName> {shown(system)} cannot be honoured for staging: {OUTSIDE}")
    return posixpath.normpath(spot.inside) if spot.inside else ""


OUTSIDE: Final = (
    "a pilot puts files only into the job's own folder; leave it away, or say SCRATCH, which is that folder"
)


def _flag(reading: Reading, at: Node, given: Sequence[Node]) -> str:
    if not given:
        reading.problem(at, "<DataStaging> has no <CreationFlag>: say overwrite, or dontOverwrite")
        return ""
    flag = reading.word(given[0])
    if flag == "append":
        reading.problem(given[0], APPEND)
    elif flag and flag not in FLAGS:
        reading.problem(
            given[0], f"{shown(flag)} is no <CreationFlag>; there are {', '.join(FLAGS)}", nearest(flag, FLAGS)
        )
    return flag


def _uri(reading: Reading, at: Node) -> tuple[Node, str] | None:
    reading.attributes(at)
    found = reading.parts(at, {"URI": 1}).get("URI", [])
    if not found:
        reading.problem(at, f"<{local(at)}> has no <URI>: say where the file is")
        return None
    text = reading.word(found[0])
    if re.match(r"file:/(?!/)", text):
        text = f"file://{text.removeprefix('file:')}"
    return (found[0], text) if text else None


def _source(reading: Reading, at: Node) -> str:
    """Where a file comes from, as a template that is nothing but text."""
    given = _uri(reading, at)
    if given is None:
        return ""
    place, text = given
    scheme = SCHEME.match(text)
    if text.startswith(LOGICAL):
        if flaw := name_flaw(text.removeprefix(LOGICAL)):
            reading.problem(place, f"<URI> {shown(text)} names no logical file: {flaw}")
    elif scheme is None:
        _demand_file(reading, place, text)
    elif flaw := _unspoken(scheme.group(1), PROTOCOLS) or protocol_flaw(text):
        reading.problem(place, f"<URI> of a source cannot be honoured: {flaw}")
    return literal(text)


def _demand_file(reading: Reading, at: Node, text: str) -> None:
    """A file beside the document must be there."""
    if reading.folder is None:
        reading.problem(at, f"<URI> {shown(text)} is a file beside the document, and this one came alone: give a URL")
        return
    try:
        there = Path(reading.folder, text).is_file()
    except (OSError, ValueError):
        there = False
    if not there:
        reading.problem(at, f"there is no file {shown(text)} in {reading.folder}")


def _target(reading: Reading, at: Node, *, overwrite: bool) -> Publishing | None:
    given = _uri(reading, at)
    if given is None:
        return None
    place, text = given
    if text.startswith(LOGICAL):
        if flaw := name_flaw(text.removeprefix(LOGICAL)):
            reading.problem(place, f"<URI> {shown(text)} cannot be a logical name: {flaw}")
        return Publishing(logical=literal(text))
    scheme = SCHEME.match(text)
    flaw = (
        _unspoken(scheme.group(1), WRITTEN)
        if scheme
        else "it is no URL; say where it goes, such as file:///data/out.txt"
    )
    if flaw := flaw or target_flaw(text):
        reading.problem(place, f"<URI> of a target cannot be honoured: {flaw}")
    return Publishing(url=literal(text), overwrite=overwrite)


def _unspoken(scheme: str, useful: frozenset[str]) -> str:
    if scheme in PROTOCOLS:
        return ""
    return f"nobody here speaks {shown(scheme)}; use one of {', '.join(sorted(useful))}, or lfn: for a logical file"
