"""The files beside a flow's text that came to a server with it, or are stored there already.

A file stands for the path that it was sent under. People pick files in a browser, which may tell their names and no
folders: a bare name stands for a path that ends with it, unless two paths of the flow do."""

from collections.abc import Mapping
from posixpath import normpath

from mendflow.core.model.values import FileRef
from mendflow.formats.yaml.document import SourceSpan


class SentFiles:
    """`named` has each path that the flow names, with the file that stands for it; None if none does. `places` says
    where the steps of the text are, and their commands, by the names that people see. `must_read_again`: a file stood
    for a path by its name, and then another path of that name came; read again, it stands for neither."""

    def __init__(self, given: Mapping[str, FileRef]) -> None:
        self._given = {normpath(path): file for path, file in given.items()}
        self._paths: dict[str, set[str]] = {}  # by the name that they end with
        self.places: dict[str, SourceSpan] = {}
        self.named: dict[str, FileRef | None] = {}
        self.must_read_again = False

    def take(self, path: str) -> FileRef | None:
        named = normpath(path)
        name = named.rpartition("/")[2]
        paths = self._paths.setdefault(name, set())
        if len(paths) == 1 and named not in paths and name not in paths and name in self._given:
            self.must_read_again = True
        paths.add(named)
        found = self._given.get(named) or (self._given.get(name) if len(paths) == 1 else None)
        self.named[path] = found
        return found
