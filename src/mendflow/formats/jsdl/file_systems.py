"""File systems by their names: those that JSDL knows, and those that a document describes. Each is a place that a shell
finds, and some of them lie in the job's own folder, where alone a pilot puts files and takes them from."""

import posixpath
import shlex
from typing import Final

import msgspec

from mendflow.core.xml import Node
from mendflow.formats.jsdl.program import FOLDER
from mendflow.formats.jsdl.ranges import Range, chosen, range_of
from mendflow.formats.jsdl.reading import Reading, local, shown
from mendflow.formats.jsdl.vocabulary import FILE_SYSTEM_TYPES
from mendflow.formats.spelling import nearest

PARTS: Final = {"FileSystemType": 1, "Description": 1, "MountPoint": 1, "DiskSpace": 1}
REFUSED: Final = {"MountSource": "a pilot mounts nothing: name a MountPoint that its hosts have"}


class Root(msgspec.Struct, frozen=True):
    """Where a file system begins: as a word of a shell, or as a path in the job's folder."""

    word: str = ""
    inside: str | None = None


class Spot(msgspec.Struct, frozen=True):
    """Where a file is: as a word of a shell that is in the working directory, and, if it is there, as a path in the
    job's folder."""

    word: str = ""
    inside: str | None = None


KNOWN: Final = {
    "ROOT": Root("/"),
    "HOME": Root('"$HOME"/'),
    "TMP": Root('"${TMPDIR:-/tmp}"/'),
    "SCRATCH": Root(inside=""),
}
"""What JSDL knows without a description. The job's own folder is scratch: it is gone when the job is over."""


class FileSystems:
    """`disk_bytes` is what those in the job's folder are to hold."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._roots = dict(KNOWN)
        self._described: set[str] = set()
        self.disk_bytes = 0

    def describe(self, at: Node) -> None:
        """Take in a <FileSystem>."""
        reading = self._reading
        name = reading.attributes(at, "name").get("name", "").strip()
        if not name or "/" in name or name in (".", ".."):
            reading.problem(at, "a <FileSystem> has a name")
        elif name in self._described:
            reading.problem(at, f"the <FileSystem> {shown(name)} is described twice")
        self._described.add(name)
        parts = reading.parts(at, PARTS, REFUSED)
        for each in parts.get("Description", []):
            reading.text(each)
        for each in parts.get("FileSystemType", []):
            self._type(each)
        if mount := parts.get("MountPoint"):
            self._mounted(name, mount[0])
        elif name not in KNOWN:
            self._roots[name] = Root(inside=name)  # JSDL leaves it to us where it is
        for each in parts.get("DiskSpace", []):
            self._space(name, each)

    def _type(self, at: Node) -> None:
        kind = self._reading.word(at)
        if kind == "swap":
            self._reading.problem(
                at, "a pilot gives no swap space: say IndividualPhysicalMemory for what the job needs"
            )
        elif kind and kind not in FILE_SYSTEM_TYPES:
            self._reading.problem(at, f"{shown(kind)} is no type of a file system", nearest(kind, FILE_SYSTEM_TYPES))

    def _mounted(self, name: str, at: Node) -> None:
        path = self._reading.word(at)
        if path and not path.startswith("/"):
            self._reading.problem(at, f"<MountPoint> is a whole path, such as /scratch, not {shown(path)}")
        self._roots[name] = Root(shlex.quote(path.rstrip("/")) + "/" if path.strip("/") else "/")

    def _space(self, name: str, at: Node) -> None:
        wanted = range_of(self._reading, at)
        if self._roots.get(name, Root()).inside is None:
            self._reading.problem(
                at,
                f"nobody knows how much room {shown(name)} has: say IndividualDiskSpace for the job's own folder",
            )
        elif wanted is not None:
            self.disk_bytes += amount(self._reading, at, [wanted])

    def spot(self, at: Node, text: str, name: str | None, folder: Spot | None) -> Spot:
        """Where a path is: in a file system, or in the working directory `folder`."""
        if name is None:
            return self._unnamed(at, text, folder)
        root = self._roots.get(name.strip())
        if root is None:
            self._reading.problem(
                at,
                f"<{local(at)}> names the file system {shown(name)}, which is not described",
                nearest(name, self._roots),
            )
            return Spot(".")
        path = text.lstrip("/")
        if root.inside is None:
            return Spot(root.word + (shlex.quote(path) if path else ""))
        inner = self._reading.path(at, posixpath.join(root.inside, path)) if root.inside or path else ""
        return Spot(f'"${FOLDER}"' + (f"/{shlex.quote(inner)}" if inner else ""), inner)

    def _unnamed(self, at: Node, text: str, folder: Spot | None) -> Spot:
        if text.startswith("/") or (folder is not None and folder.inside is None):
            return Spot(shlex.quote(text))
        inner = self._reading.path(at, text)
        return Spot(shlex.quote(inner), posixpath.join(folder.inside or "", inner) if folder is not None else inner)


def amount(reading: Reading, at: Node, ranges: list[Range], usual: int | None = None) -> int:
    """What is chosen of the ranges that an element, and others with it, allow."""
    found = chosen(ranges, usual)
    if found is None:
        reading.problem(at, f"<{local(at)}> allows no amount that a job can be given, with all else that is said of it")
    elif found > 2**53:
        reading.problem(at, f"<{local(at)}> asks for more than there is anywhere")
    return min(found or 0, 2**53)
