"""<DataStaging>: files that are fetched before a job starts, and written to their targets after it.

A job's folder is new for each attempt and removed after it. So nothing is overwritten, and nothing has to be deleted: a
file that should stay has a target."""

import posixpath
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from mendflow.core.data.paths import name_flaw
from mendflow.core.data.protocols import PROTOCOLS, WRITABLE, protocol_flaw, target_flaw
from mendflow.core.expressions import literal
from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.templates import PublicationTemplate
from mendflow.core.xml import ParsedElement
from mendflow.formats.jsdl.credentials import Login, read_credential, with_login
from mendflow.formats.jsdl.file_systems import FileLocation, FileSystems
from mendflow.formats.jsdl.reader import JsdlReader, abbreviate, local
from mendflow.formats.jsdl.vocabulary import CREDENTIAL, FLAGS
from mendflow.formats.names import NAME
from mendflow.formats.spelling import nearest_word

PARTS: Final = {
    "FileName": 1,
    "FilesystemName": 1,
    "CreationFlag": 1,
    "DeleteOnTermination": 1,
    "Source": 1,
    "Target": 1,
    "Credential": 1,
}
SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
APPEND: Final = (
    "<CreationFlag> append cannot be honoured: a job's folder is new each time, so there is nothing to append to, and "
    "an attempt that is repeated would append to its target twice; say overwrite, and let the job join files"
)


class JsdlStaging(msgspec.Struct, kw_only=True):
    """Files by their paths in the job's folder. `names` are what those with a target are called."""

    inputs: dict[str, str]
    targets: dict[str, PublicationTemplate]
    names: dict[str, str]


def staged_files(
    reader: JsdlReader, given: Sequence[ParsedElement], systems: FileSystems, folder: FileLocation
) -> JsdlStaging:
    found = JsdlStaging(inputs={}, targets={}, names={})
    for at in given:
        _add_staging(reader, at, systems, folder, found)
    return found


def _add_staging(
    reader: JsdlReader, at: ParsedElement, systems: FileSystems, folder: FileLocation, found: JsdlStaging
) -> None:
    name = reader.attributes(at, "name").get("name", "").strip()
    parts = reader.parts(at, PARTS, namespaces=CREDENTIAL)
    login = read_credential(reader, parts.get("Credential", []))
    path = _path(reader, at, parts.get("FileName", []), parts.get("FilesystemName", []), systems, folder)
    flag = _flag(reader, at, parts.get("CreationFlag", []))
    for each in parts.get("DeleteOnTermination", []):
        reader.truth(each)
    for each in parts.get("Source", []):
        source = _source(reader, each, login)
        if path and path in found.inputs:
            reader.problem(
                each, f"two sources are brought to {abbreviate(path)}, and nobody says which one stays; give them names"
            )
        if path and source:
            found.inputs[path] = source
    for each in parts.get("Target", []):
        target = _target(reader, each, login, overwrite=flag != "dontOverwrite")
        if path and path in found.targets:
            reader.problem(each, f"{abbreviate(path)} has two targets: let the job copy it under a second name")
        if path and target is not None:
            found.targets[path] = target
            found.names[path] = _unique_name(name, found)


def _unique_name(name: str, found: JsdlStaging) -> str:
    """A name of its own: the given one, if it can be one."""
    if NAME.fullmatch(name) and name not in (*found.names.values(), "output", "error"):
        return name
    return next(each for n in range(1, 1 << 30) if (each := f"staged_{n}") not in found.names.values())


def _path(
    reader: JsdlReader,
    at: ParsedElement,
    names: Sequence[ParsedElement],
    given: Sequence[ParsedElement],
    systems: FileSystems,
    folder: FileLocation,
) -> str:
    if not names:
        reader.problem(at, "<DataStaging> has no <FileName>")
        return ""
    text = reader.word(names[0])
    if not text:
        return ""
    system = reader.word(given[0]) if given else None
    if system is None and (text.startswith("/") or folder.inside is None):
        where = text if text.startswith("/") else f"{text} in the working directory"
        reader.problem(names[0], f"<FileName> {abbreviate(where)} cannot be honoured: {OUTSIDE}")
        return ""
    spot = systems.spot(names[0], text, system, folder)
    if spot.inside is None and system is not None:
        reader.problem(given[0], f"<FilesystemName> {abbreviate(system)} cannot be honoured for staging: {OUTSIDE}")
    return posixpath.normpath(spot.inside) if spot.inside else ""


OUTSIDE: Final = (
    "a pilot puts files only into the job's own folder; leave it away, or say SCRATCH, which is that folder"
)


def _flag(reader: JsdlReader, at: ParsedElement, given: Sequence[ParsedElement]) -> str:
    if not given:
        reader.problem(at, "<DataStaging> has no <CreationFlag>: say overwrite, or dontOverwrite")
        return ""
    flag = reader.word(given[0])
    if flag == "append":
        reader.problem(given[0], APPEND)
    elif flag and flag not in FLAGS:
        reader.problem(
            given[0],
            f"{abbreviate(flag)} is no <CreationFlag>; there are {', '.join(FLAGS)}",
            nearest_word(flag, FLAGS),
        )
    return flag


def _uri(reader: JsdlReader, at: ParsedElement, login: Login) -> tuple[ParsedElement, str] | None:
    reader.attributes(at)
    found = reader.parts(at, {"URI": 1}).get("URI", [])
    if not found:
        reader.problem(at, f"<{local(at)}> has no <URI>: say where the file is")
        return None
    text = reader.word(found[0])
    if re.match(r"file:/(?!/)", text):
        text = f"file://{text.removeprefix('file:')}"
    return (found[0], with_login(reader, found[0], text, login)) if text else None


def _source(reader: JsdlReader, at: ParsedElement, login: Login) -> str:
    """Where a file comes from, as a template that is nothing but text."""
    given = _uri(reader, at, login)
    if given is None:
        return ""
    place, text = given
    scheme = SCHEME.match(text)
    if text.startswith(LOGICAL_PREFIX):
        if flaw := name_flaw(text.removeprefix(LOGICAL_PREFIX)):
            reader.problem(place, f"<URI> {abbreviate(text)} names no logical file: {flaw}")
    elif scheme is None:
        _demand_file(reader, place, text)
    elif flaw := _unsupported_scheme(scheme.group(1), PROTOCOLS) or protocol_flaw(text):
        reader.problem(place, f"<URI> of a source cannot be honoured: {flaw}")
    return literal(text)


def _demand_file(reader: JsdlReader, at: ParsedElement, text: str) -> None:
    """A file beside the document must be there."""
    if reader.folder is None:
        reader.problem(
            at, f"<URI> {abbreviate(text)} is a file beside the document, and this one came alone: give a URL"
        )
        return
    try:
        there = Path(reader.folder, text).is_file()
    except (OSError, ValueError):
        there = False
    if not there:
        reader.problem(at, f"there is no file {abbreviate(text)} in {reader.folder}")


def _target(reader: JsdlReader, at: ParsedElement, login: Login, *, overwrite: bool) -> PublicationTemplate | None:
    given = _uri(reader, at, login)
    if given is None:
        return None
    place, text = given
    if text.startswith(LOGICAL_PREFIX):
        if flaw := name_flaw(text.removeprefix(LOGICAL_PREFIX)):
            reader.problem(place, f"<URI> {abbreviate(text)} cannot be a logical name: {flaw}")
        return PublicationTemplate(logical=literal(text))
    scheme = SCHEME.match(text)
    flaw = (
        _unsupported_scheme(scheme.group(1), WRITABLE)
        if scheme
        else "it is no URL; say where it goes, such as file:///data/out.txt"
    )
    if flaw := flaw or target_flaw(text):
        reader.problem(place, f"<URI> of a target cannot be honoured: {flaw}")
    return PublicationTemplate(url=literal(text), overwrite=overwrite)


def _unsupported_scheme(scheme: str, useful: frozenset[str]) -> str:
    if scheme in PROTOCOLS:
        return ""
    return f"{abbreviate(scheme)} is not supported; use one of {', '.join(sorted(useful))}, or lfn: for a logical file"
