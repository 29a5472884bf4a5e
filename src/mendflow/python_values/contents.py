"""Where the contents of values lie that are files: what a pilot, a client and a flow that is being built each do."""

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Protocol

from mendflow.core.model.values import FileRef, Value

Fill = Callable[[BinaryIO], None]


class ContentWriter(Protocol):
    """`inline_bytes`: what is shorter stands in the data itself."""

    inline_bytes: int

    def write(self, name: str, kind: str, fill: Fill) -> Value:
        """A new file, filled; returns what stands for it."""

    def take(self, path: Path) -> Value:
        """A file that is there; returns what stands for it. Raises `BadPythonValue`."""


class ContentReader(Protocol):
    def local_path(self, ref: FileRef) -> str:
        """Where the content lies on this machine, to be read only."""

    def own_copy(self, ref: FileRef) -> Path:
        """A copy that belongs to whoever reads, under the file's own name."""
