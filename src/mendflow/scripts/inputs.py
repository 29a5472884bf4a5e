"""Inputs of a flow as a script gives them: values of Python, files by their paths, tables."""

import tempfile
from pathlib import Path
from typing import Any, Final

from mendflow.cli.inputs import input_value, upload_inputs, with_default_files
from mendflow.client import Client
from mendflow.client.files import reference_of
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.flow import FILE, FILES, TABLE, Flow, Input
from mendflow.core.model.values import CONTENT_KIND, FileRef, Value
from mendflow.python_values.contents import Fill
from mendflow.python_values.encoding import PythonEncoder
from mendflow.python_values.errors import BadPythonValue
from mendflow.python_values.tags import PATH

INLINE_BYTES: Final = 16384


class UploadedFiles:
    """Contents of inputs: written into a folder first, and uploaded when all inputs were found to be good."""

    inline_bytes: int = INLINE_BYTES

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[Path, FileRef] = {}

    def write(self, name: str, kind: str, fill: Fill) -> Value:
        path = self._folder / str(len(self._files)) / name
        path.parent.mkdir()
        with path.open("wb") as file:
            fill(file)
        return self._add(path, kind)

    def take(self, path: Path) -> Value:
        if not path.is_file():
            raise BadPythonValue(f"is the path {path}, and there is no such file; for the mere path give str(path)")
        return self._add(path.absolute(), PATH)

    def _add(self, path: Path, kind: str) -> Value:
        ref = self._files[path] = reference_of(path)
        return {**ref.as_value(), CONTENT_KIND: kind}

    async def upload(self, client: Client) -> None:
        for path, ref in self._files.items():
            if not await client.has(ref.sha256):
                await client.upload(path, ref.name)


async def stored_inputs(client: Client, flow: Flow, given: dict[str, Any]) -> dict[str, Value]:
    """The inputs of a case, with all that is a file uploaded. Raises InvalidRequest."""
    with tempfile.TemporaryDirectory(prefix="mendflow-inputs-") as folder:
        files = UploadedFiles(Path(folder))
        values = {name: _plain(name, value, flow.inputs[name], files) for name, value in given.items()}
        await files.upload(client)
    return await upload_inputs(client, flow, with_default_files(flow, values))


def _plain(name: str, value: Any, declared: Input, files: UploadedFiles) -> Value:
    if declared.type in (FILE, FILES, TABLE) and isinstance(value, (str, Path)):
        return input_value(name, str(value), declared)
    if declared.type == FILES and isinstance(value, (list, tuple)):
        return [path for each in value for path in input_value(name, str(each), declared)]
    if declared.type == TABLE:
        value = [dict(row) for row in value]
        value = [{key: str(cell) if isinstance(cell, Path) else cell for key, cell in row.items()} for row in value]
    try:
        return PythonEncoder(files).encode(value)
    except BadPythonValue as error:
        raise InvalidRequest(f"input {name}: {error}") from None
