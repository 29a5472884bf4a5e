"""The result of a case as values of Python: what lies in files is fetched first."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from mendflow.client import Client
from mendflow.core.model.references import FILE_KEY, references_in
from mendflow.core.model.values import CONTENT_KIND, FileRef, Value, content_kind, file_of, spilled_file
from mendflow.core.model.views import CaseView
from mendflow.python_values.annotations import KnownClasses, annotations_of
from mendflow.python_values.decoding import PythonDecoder
from mendflow.python_values.errors import BadPythonValue
from mendflow.python_values.tags import PATH


class FetchedFiles:
    """Contents of a result. Those of arrays and bytes need to be there only while they are read: an array that is
    mapped into memory keeps its file. Files by their paths go to `outputs/CASE`."""

    def __init__(self, client: Client, case: str, folder: Path, outputs: Path) -> None:
        self._client = client
        self._case = case
        self._folder = folder
        self._outputs = outputs
        self._copies: dict[str, Path] = {}

    async def fetch(self, value: Value) -> None:
        for _, reference in references_in(value):
            ref = file_of(reference)
            if ref is None:
                continue
            if content_kind(reference) != PATH:
                await self._client.download(ref, self._folder / ref.sha256, of=self._case)
            elif _key(ref) not in self._copies:
                path = self._free_path(ref.name)
                self._copies[_key(ref)] = await self._client.download(ref, path, of=self._case)

    def local_path(self, ref: FileRef) -> str:
        return str(self._folder / ref.sha256)

    def own_copy(self, ref: FileRef) -> Path:
        return self._copies[_key(ref)]

    def _free_path(self, name: str) -> Path:
        own = Path(name).name or "file"
        taken = set(self._copies.values())
        path, number = self._outputs / own, 2
        while path in taken:
            path, number = self._outputs / f"{number}-{own}", number + 1
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


def _key(ref: FileRef) -> str:
    return f"{ref.sha256} {ref.name}"


async def whole_value(client: Client, case: str, value: Value, folder: Path) -> Value:
    """The value with the content of its parts that are stored because of their size; every file in it is one by its
    path, unless it says what else it is."""
    if (spilled := spilled_file(value)) is not None:
        path = await client.download(spilled, folder / f"{spilled.sha256}.json", of=case)
        return await whole_value(client, case, msgspec.json.decode(path.read_bytes()), folder)
    if isinstance(value, list):
        return [await whole_value(client, case, each, folder) for each in value]
    if not isinstance(value, dict):
        return value
    if FILE_KEY in value and file_of(value) is not None:
        return {CONTENT_KIND: PATH, **value}
    return {key: await whole_value(client, case, each, folder) for key, each in value.items()}


async def result_of(client: Client, case: CaseView, function: Callable[..., Any], *, gives_map: bool) -> Any:
    """What the function of the flow would have returned."""
    if not case.outputs and not gives_map:
        return None
    with tempfile.TemporaryDirectory(prefix="mendflow-result-") as folder:
        whole = await whole_value(client, case.id, dict(case.outputs), Path(folder))
        value = whole if gives_map else whole.get("result")
        files = FetchedFiles(client, case.id, Path(folder), Path(os.getcwd(), "outputs", str(case.id)))
        await files.fetch(value)
        decoder = PythonDecoder(files, KnownClasses(function))
        try:
            return decoder.decode(value, annotations_of(function).get("return", Any))
        except BadPythonValue:
            return decoder.decode(value)  # the flow returned something else than it says
