"""Contents of values in a folder, and a round trip through JSON."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from mendflow.core.model.values import FileRef, Value, check_value
from mendflow.pilot.worker.value_files import MadeFiles
from mendflow.python_values.annotations import KnownClasses
from mendflow.python_values.decoding import PythonDecoder
from mendflow.python_values.encoding import PythonEncoder


class KeptFiles:
    """What was made, for whoever reads it."""

    def __init__(self, made: MadeFiles) -> None:
        self._paths = {ref.sha256: path for path, ref in zip(made.paths, made.refs, strict=True)}

    def local_path(self, ref: FileRef) -> str:
        path = self._paths[ref.sha256]
        assert hashlib.sha256(Path(path).read_bytes()).hexdigest() == ref.sha256
        return path

    def own_copy(self, ref: FileRef) -> Path:
        return Path(self.local_path(ref))


def nothing_known(value: Any) -> Any:
    return value


class RoundTrip:
    """Writes a value, as a job does, and reads it, as the next one does."""

    def __init__(self, folder: Path, function: Callable[..., Any] = nothing_known) -> None:
        self._folder = folder
        self._function = function

    def written(self, value: Any) -> tuple[Value, MadeFiles]:
        made = MadeFiles(str(self._folder))
        data = PythonEncoder(made).encode(value)
        assert not check_value(data)
        return msgspec.json.decode(msgspec.json.encode(data)), made

    def __call__(self, value: Any, annotation: Any = Any) -> Any:
        data, made = self.written(value)
        return self.read(data, annotation, made)

    def read(self, data: Value, annotation: Any = Any, made: MadeFiles | None = None) -> Any:
        files = KeptFiles(made or MadeFiles(str(self._folder)))
        return PythonDecoder(files, KnownClasses(self._function)).decode(data, annotation)
