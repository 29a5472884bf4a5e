"""Files that a process imports: only files near it, nothing from the network.

A location is a path relative to the document that contains it. It may lead up, at most a few folders above the process,
because WSDL files are often beside the folders of the processes that share them. Symbolic links are resolved before
this is checked."""

import os
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from mendflow.core.model.errors import BadFlow, Problem
from mendflow.core.xml import ParsedElement, XmlBounds, parse
from mendflow.formats.bpel.ports import port_wsdl
from mendflow.formats.bpel.reader import SourceDocument, XmlReader, abbreviate
from mendflow.formats.files import flow_bytes

LEVELS_UP: Final = 3
FILES_MAX: Final = 300
BYTES_MAX: Final = 50 * (1 << 20)
BOUNDS: Final = XmlBounds()


class UnreachableFile(Exception):
    """A location leads nowhere that is read. The text says why."""


class SourceFiles:
    """The files around one process, each read once."""

    def __init__(self, folder: Path, problems: list[Problem]) -> None:
        self.folder = folder
        self.documents: dict[str, SourceDocument] = {}
        self._problems = problems
        up = folder.resolve()
        self._root = [up, *up.parents][: LEVELS_UP + 1][-1]
        self._bytes = 0

    def document(self, reader: XmlReader, at: ParsedElement, location: str, base: str) -> SourceDocument | None:
        """The XML that an import names; None if there is none, which is then told of."""
        try:
            place = resolve_location(location, base)
            if place not in self.documents:
                file = self._file(place)
                self.documents[place] = SourceDocument(
                    root=parse(self._read(file), str(file), BOUNDS), file=str(file), location=place
                )
            return self.documents[place]
        except UnreachableFile as error:
            reader.problem(at, str(error))
        except BadFlow as error:
            self._problems.extend(error.problems)
        return None

    def ours(self, port: str) -> SourceDocument:
        """The description of a port of our own."""
        place = f"mendflow:{port}"
        if place not in self.documents:
            self.documents[place] = SourceDocument(root=parse(port_wsdl(port), place), file=place, location=place)
        return self.documents[place]

    def text(self, location: str, base: str = "") -> str | None:
        """The text of a file; None if there is none."""
        try:
            return self._read(self._file(resolve_location(location, base))).decode("utf-8-sig", errors="replace")
        except (UnreachableFile, BadFlow):
            return None

    def _file(self, place: str) -> Path:
        file = Path(os.path.normpath(self.folder / place))
        try:
            near, there = file.resolve().is_relative_to(self._root), file.is_file()
        except (OSError, ValueError, RuntimeError):  # a name that no disk has, or links in a cycle
            near, there = True, False
        if not near:
            raise UnreachableFile(
                f"{abbreviate(place)} leads too far from the process: put the file at most {LEVELS_UP} folders above it"
            )
        if not there:
            raise UnreachableFile(
                f"there is no file {abbreviate(place)}; locations are paths as seen from the file they stand in"
            )
        return file

    def _read(self, file: Path) -> bytes:
        if len(self.documents) >= FILES_MAX:
            raise UnreachableFile(f"the process imports more than {FILES_MAX} files")
        data = flow_bytes(file, str(file))
        self._bytes += len(data)
        if self._bytes > BYTES_MAX:
            raise UnreachableFile(f"the process imports more than {BYTES_MAX >> 20} MB")
        return data


def resolve_location(location: str, base: str) -> str:
    """A location in the document `base`, as seen from the process's folder."""
    parts = urlsplit(location)
    if parts.scheme or parts.netloc or not parts.path or parts.path.startswith("/") or "\0" in location:
        raise UnreachableFile(
            f"{abbreviate(location)} is not fetched: put the file beside the process, and give its path as"
            " seen from there"
        )
    return os.path.normpath(os.path.join(os.path.dirname(base), unquote(parts.path)))


def is_remote(location: str) -> bool:
    parts = urlsplit(location)
    return bool(parts.scheme or parts.netloc)
