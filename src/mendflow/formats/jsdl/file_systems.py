"""File systems by name: those of JSDL, and those that a document describes. Each is a place for the shell; some are in
the job's own folder, which is the only place for a pilot's staging."""

import posixpath
import shlex
from typing import Final

import msgspec

from mendflow.core.xml import ParsedElement
from mendflow.formats.jsdl.program import FOLDER
from mendflow.formats.jsdl.ranges import Range, choose_amount, range_of
from mendflow.formats.jsdl.reader import JsdlReader, abbreviate, local
from mendflow.formats.jsdl.vocabulary import FILE_SYSTEM_TYPES
from mendflow.formats.spelling import nearest_word

PARTS: Final = {"FileSystemType": 1, "Description": 1, "MountPoint": 1, "DiskSpace": 1}
REFUSED_PARTS: Final = {"MountSource": "a pilot mounts nothing: name a MountPoint that its hosts have"}


class FileSystemRoot(msgspec.Struct, frozen=True):
    """Where a file system begins: as a word of a shell, or as a path in the job's folder."""

    word: str = ""
    inside: str | None = None


class FileLocation(msgspec.Struct, frozen=True):
    """Where a file is: as a word of a shell that is in the working directory, and, if it is there, as a path in the
    job's folder."""

    word: str = ""
    inside: str | None = None


KNOWN_ROOTS: Final = {
    "ROOT": FileSystemRoot("/"),
    "HOME": FileSystemRoot('"$HOME"/'),
    "TMP": FileSystemRoot('"${TMPDIR:-/tmp}"/'),
    "SCRATCH": FileSystemRoot(inside=""),
}
"""What JSDL knows without a description. The job's own folder is scratch: it is gone when the job is over."""


class FileSystems:
    """`disk_bytes` is what those in the job's folder are to hold."""

    def __init__(self, reader: JsdlReader) -> None:
        self._reader = reader
        self._roots = dict(KNOWN_ROOTS)
        self._described: set[str] = set()
        self.disk_bytes = 0

    def describe(self, at: ParsedElement) -> None:
        """Take in a <FileSystem>."""
        reader = self._reader
        name = reader.attributes(at, "name").get("name", "").strip()
        if not name or "/" in name or name in (".", ".."):
            reader.problem(at, "a <FileSystem> has a name")
        elif name in self._described:
            reader.problem(at, f"the <FileSystem> {abbreviate(name)} is described twice")
        self._described.add(name)
        parts = reader.parts(at, PARTS, REFUSED_PARTS)
        for each in parts.get("Description", []):
            reader.text(each)
        for each in parts.get("FileSystemType", []):
            self._type(each)
        if mount := parts.get("MountPoint"):
            self._mounted(name, mount[0])
        elif name not in KNOWN_ROOTS:
            self._roots[name] = FileSystemRoot(inside=name)  # JSDL leaves it to us where it is
        for each in parts.get("DiskSpace", []):
            self._space(name, each)

    def _type(self, at: ParsedElement) -> None:
        kind = self._reader.word(at)
        if kind == "swap":
            self._reader.problem(at, "a pilot gives no swap space: say IndividualPhysicalMemory for what the job needs")
        elif kind and kind not in FILE_SYSTEM_TYPES:
            self._reader.problem(
                at, f"{abbreviate(kind)} is no type of a file system", nearest_word(kind, FILE_SYSTEM_TYPES)
            )

    def _mounted(self, name: str, at: ParsedElement) -> None:
        path = self._reader.word(at)
        if path and not path.startswith("/"):
            self._reader.problem(at, f"<MountPoint> is a whole path, such as /scratch, not {abbreviate(path)}")
        self._roots[name] = FileSystemRoot(shlex.quote(path.rstrip("/")) + "/" if path.strip("/") else "/")

    def _space(self, name: str, at: ParsedElement) -> None:
        wanted = range_of(self._reader, at)
        if self._roots.get(name, FileSystemRoot()).inside is None:
            self._reader.problem(
                at,
                f"nobody knows how much room {abbreviate(name)} has: say IndividualDiskSpace for the job's own folder",
            )
        elif wanted is not None:
            self.disk_bytes += chosen_amount(self._reader, at, [wanted])

    def spot(self, at: ParsedElement, text: str, name: str | None, folder: FileLocation | None) -> FileLocation:
        """Where a path is: in a file system, or in the working directory `folder`."""
        if name is None:
            return self._unnamed(at, text, folder)
        root = self._roots.get(name.strip())
        if root is None:
            self._reader.problem(
                at,
                f"<{local(at)}> names the file system {abbreviate(name)}, which is not described",
                nearest_word(name, self._roots),
            )
            return FileLocation(".")
        path = text.lstrip("/")
        if root.inside is None:
            return FileLocation(root.word + (shlex.quote(path) if path else ""))
        inner = self._reader.path(at, posixpath.join(root.inside, path)) if root.inside or path else ""
        return FileLocation(f'"${FOLDER}"' + (f"/{shlex.quote(inner)}" if inner else ""), inner)

    def _unnamed(self, at: ParsedElement, text: str, folder: FileLocation | None) -> FileLocation:
        if text.startswith("/") or (folder is not None and folder.inside is None):
            return FileLocation(shlex.quote(text))
        inner = self._reader.path(at, text)
        return FileLocation(
            shlex.quote(inner), posixpath.join(folder.inside or "", inner) if folder is not None else inner
        )


def chosen_amount(reader: JsdlReader, at: ParsedElement, ranges: list[Range], usual: int | None = None) -> int:
    """What is chosen of the ranges that an element, and others with it, allow."""
    found = choose_amount(ranges, usual)
    if found is None:
        reader.problem(at, f"<{local(at)}> allows no amount that a job can be given, with all else that is said of it")
    elif found > 2**53:
        reader.problem(at, f"<{local(at)}> asks for more than there is anywhere")
    return min(found or 0, 2**53)
