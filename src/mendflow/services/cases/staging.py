"""Stores local input files on the server before the job that needs them is submitted.

A logical file stays where it is: only its digest is looked up, so that a pilot that has it in its cache can be chosen.
Paths are relative to the flow's own folder. The server decides whether a path may lead out of it: a server that serves
others reads only below the folders that it was given."""

import asyncio
import glob
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Final, Protocol

import msgspec

from mendflow.core.data.input_types import is_table_path
from mendflow.core.data.table_files import FILE_COLUMN, paths_in, with_files
from mendflow.core.engine.files_at_start import files_at_start
from mendflow.core.engine.messages import STAGED_FILE_FAULT, URL_NOT_STAGED, StageFiles, staging_outcome
from mendflow.core.expressions import is_template
from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.errors import Forbidden, InvalidRequest, NotFound, RequestError, StoreUnavailable
from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.flow import FILE, FILES, LEFT_FOLDER, NO_FOLDER, TABLE, Flow, Input
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.values import FileRef, Value, file_of, spilled_file
from mendflow.services.base.background_tasks import BackgroundTasks
from mendflow.services.base.contracts import FileDemand, FileStore
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger

FLAWS_TOLD_MAX: Final = 5
Finished = Callable[[CaseId, int, Outcome], Awaitable[None]]


class Resolve(Protocol):
    """Finds a logical file by its name: one of a project, or of any if that is empty."""

    async def __call__(self, name: str, project: str = "") -> FileRef: ...


class TableReader(Protocol):
    """Reads the rows of the table that an input names. Raises InvalidRequest."""

    def __call__(self, input: str, path: Path, columns: Mapping[str, str], /) -> list[Value]: ...


def refuse_tables(input: str, path: Path, _columns: Mapping[str, str], /) -> list[Value]:
    raise InvalidRequest(f"input {input}: this server reads no tables; give the rows of {path.name} instead")


class FileStaging:
    """`roots` says which folders may be read by now; None allows every path, as for a user's own server. `resolve`
    finds logical files by their names, `read_table` reads tables that inputs name by their paths."""

    def __init__(
        self,
        file_store: FileStore,
        resolve: Resolve,
        finished: Finished,
        roots: Callable[[], tuple[Path, ...] | None],
        ledger: Ledger,
        read_table: TableReader,
        hub: Hub,
    ) -> None:
        self._file_store = file_store
        self._resolve = resolve
        self._finished = finished
        self._roots = roots
        self._read_table = read_table
        self._background = BackgroundTasks(ledger)
        self._files_of_case = hub.need(FileDemand, self)

    async def stop(self) -> None:
        await self._background.stop()

    async def fixed_inputs(self, flow: Flow, given: dict[str, Value], project: str = "") -> dict[str, Value]:
        """The inputs of a case, with inputs of the types `file` and `files`, and the files that tables name, as the
        files that are there now, stored: what the case works on does not change when files come or go."""
        fixed = dict(given)
        for name, declared in flow.inputs.items():
            value = given.get(name, declared.default)
            if declared.type == FILES and value is not None:
                fixed[name] = await self._files_of(name, value, flow.folder, project)
            elif declared.type == FILE and value is not None:
                fixed[name] = await self._file_given(name, value, flow.folder, project)
            elif declared.type == TABLE:
                if is_table_path(declared, value):
                    value = fixed[name] = await self._rows_of(name, declared, str(value), flow.folder)
                if paths := paths_in(value, declared.columns):
                    files = {
                        path: (await self._file_of(path, flow.folder, project)).as_value() for path in sorted(paths)
                    }
                    fixed[name] = with_files(value, declared.columns, files)
        return fixed

    async def demand_tables(self, flow: Flow, given: dict[str, Value]) -> None:
        """Refuse inputs for later cases that name tables which cannot be read here by now."""
        for name, value in given.items():
            declared = flow.inputs.get(name, Input())
            if is_table_path(declared, value) and not is_template(value):
                await self._rows_of(name, declared, str(value), flow.folder)

    async def _rows_of(self, name: str, declared: Input, source: str, folder: str) -> list[Value]:
        """The rows of a table that is given by its path, as they are now. Files that it names are beside it; whether
        they are there is seen only where they may be read."""
        path = await self._readable_path(source, folder)
        if path is None:
            raise Forbidden(f"input {name}: {_not_readable(source)}", path=source)
        kinds = {column: "string" if kind == FILE_COLUMN else kind for column, kind in declared.columns.items()}
        rows: Value = await asyncio.to_thread(self._read_table, name, path, kinds)
        beside = {
            cell: cell if cell.startswith(LOGICAL_PREFIX) else str(path.parent / cell)
            for cell in paths_in(rows, declared.columns)
        }
        return with_files(rows, declared.columns, {"": None, **beside})

    async def _file_given(self, name: str, value: Value, folder: str, project: str) -> Value:
        """A file that is given, or is the default, by its path. What a URL leads to is not stored."""
        if not isinstance(value, str) or "://" in value:
            return value
        try:
            return (await self._file_of(value, folder, project)).as_value()
        except NotFound as error:
            raise InvalidRequest(f"input {name}: {error.message}") from None

    async def demand_early_files(self, flow: Flow, inputs: dict[str, Value]) -> None:
        """Refuse a case whose first jobs are to read files that are not there: nothing in the flow can make them, and
        the path is wrong more often than it is early."""
        flaws: list[str] = []
        for each in files_at_start(flow, inputs):
            path = await self._readable_path(each.source, flow.folder)
            if path is not None and (flaw := await self._file_store.path_flaw(str(path))):
                flaws.append(f"job {each.item}, input {each.key}: {flaw}")
        if flaws:
            more = f"\nand {len(flaws) - FLAWS_TOLD_MAX} more" if len(flaws) > FLAWS_TOLD_MAX else ""
            raise InvalidRequest("\n".join(flaws[:FLAWS_TOLD_MAX]) + more)

    async def _readable_path(self, source: str, folder: str) -> Path | None:
        """The path, if the server may read it."""
        if "\0" in source or folder == NO_FOLDER or _was_left(source, folder):
            return None
        path = await asyncio.to_thread(Path(folder, source).resolve)
        roots = self._roots()
        allowed = roots is None or any(path.is_relative_to(root) for root in roots)
        return path if allowed else None

    async def _files_of(self, name: str, value: Value, folder: str, project: str) -> list[Value]:
        parts = value if isinstance(value, list) else [value]
        found: list[Value] = []
        for part in parts:
            if file_of(part) is not None:
                found.append(part)
            elif not isinstance(part, str):
                raise InvalidRequest(f"input {name} is a list of files; {part!r:.80} is none")
            elif part.startswith(LOGICAL_PREFIX):
                found.append((await self._resolve(part, project)).as_value())
            else:
                await self._demand_readable(name, part, folder)
                paths = await asyncio.to_thread(matching_paths, part, folder)
                if not paths:
                    raise InvalidRequest(
                        f"input {name}: no file matches {part} in {folder or 'the folder of the flow'}"
                    )
                found.extend([(await self._store_path(path, folder)).as_value() for path in paths])
        return found

    async def _demand_readable(self, name: str, pattern: str, folder: str) -> None:
        """Refuse a pattern that could match what may not be read, before it is looked for: what is there is nobody's
        business. After a wildcard no `..` may follow."""
        fixed, wild = fixed_beginning(pattern)
        if ".." in wild or await self._readable_path(fixed, folder) is None:
            raise Forbidden(f"input {name}: {_not_readable(pattern)}", path=pattern)

    def start(self, case: CaseId, order: StageFiles, folder: str, project: str = "") -> None:
        self._background.start(self._stage(case, order, folder, project))

    async def _stage(self, case: CaseId, order: StageFiles, folder: str, project: str) -> None:
        try:
            if order.order == "sequence":
                kept = [await self._fetch(name, source, folder, project) for name, source in order.files.items()]
            else:
                kept = await asyncio.gather(*(self._fetch(*each, folder, project) for each in order.files.items()))
            written = {path: await self._write(case, path, value) for path, value in order.data.items()}
            outcome = staging_outcome(dict(zip(order.files, kept, strict=True)) | written)
        except _StagingFailed as failed:
            outcome = Outcome(fault=failed.fault)
        await self._finished(case, order.serial, outcome)

    async def _file_of(self, source: str, folder: str, project: str) -> FileRef:
        if source.startswith(LOGICAL_PREFIX):
            return await self._resolve(source, project)
        return await self._store_path(source, folder)

    async def stored(self, source: str, folder: str) -> FileRef:
        """A file that a flow in this folder names, stored."""
        return await self._file_of(source, folder, "")

    async def give(self, case: CaseId, by: CaseId, source: str | FileRef, folder: str, project: str) -> FileRef:
        """Give a file to a case in the name of the exlet `by`: a path that this server may read, a logical file, or a
        stored one that has come to the exlet. Raises RequestError where it cannot be given."""
        if isinstance(source, str):
            found = await self._file_of(source, folder, project)
        else:
            found = source
            await self._files_of_case().demand_value(by, source.as_value())
            if flaw := await self._file_store.stored_flaw(source.sha256):
                raise NotFound(flaw)
        self._files_of_case().note_given(case, [found])
        return found

    async def _fetch(self, name: str, source: str, folder: str, project: str) -> FileRef:
        try:
            return await self._file_of(source, folder, project)
        except StoreUnavailable:
            raise
        except RequestError as error:
            raise _StagingFailed(name, source, error) from error

    async def _write(self, case: CaseId, path: str, value: Value) -> FileRef:
        """Store a value as JSON, the same whether it was small or had been stored as a file. What did not come to the
        case is not read for it."""
        try:
            await self._files_of_case().demand_value(case, value)
            whole = await self._with_spilled(value)
        except StoreUnavailable:
            raise
        except RequestError as error:
            raise _StagingFailed(path, "", error) from error
        return await self._file_store.keep(PurePosixPath(path).name, _in_one_piece(msgspec.json.encode(whole)))

    async def _with_spilled(self, value: Value) -> Value:
        """The value with the content of its parts that are stored as files because of their size."""
        if (spilled := spilled_file(value)) is not None:
            chunks = [chunk async for chunk in self._file_store.read(spilled.sha256)]
            return msgspec.json.decode(b"".join(chunks))
        if isinstance(value, dict):
            return {key: await self._with_spilled(part) for key, part in value.items()}
        if isinstance(value, list):
            return [await self._with_spilled(part) for part in value]
        return value

    async def _store_path(self, source: str, folder: str) -> FileRef:
        if "\0" in source:
            raise InvalidRequest(f"{source!r:.200} is not a path: it has a NUL character")
        if "://" in source:
            raise InvalidRequest(f"{source:.200}: {URL_NOT_STAGED}")
        if folder == NO_FOLDER:
            raise Forbidden(
                f"{source:.200} is a path, which means nothing in another domain: give the file itself as an input, or"
                " its logical name"
            )
        if _was_left(source, folder):
            raise Forbidden(
                f"{source:.200} is beside the flow's file, and was not sent: deploy the flow with `mendflow flows"
                " deploy FILE`, or give the file itself as an input",
                path=source,
            )
        path = await self._readable_path(source, folder)
        if path is None:
            raise Forbidden(_not_readable(source), path=source)
        kept = await self._file_store.keep_path(str(path))
        # A link has the name that people gave it; what it leads to may be named by a store.
        return msgspec.structs.replace(kept, name=PurePosixPath(source).name or kept.name)


async def _in_one_piece(content: bytes) -> AsyncIterator[bytes]:
    yield content


def _was_left(source: str, folder: str) -> bool:
    """Whether the path is relative to a folder that did not come with its flow."""
    return folder == LEFT_FOLDER and not PurePosixPath(source).is_absolute()


def _not_readable(source: str) -> str:
    return f"{source} may not be read by this server; upload it, or start the server with --files-root DIR"


def fixed_beginning(pattern: str) -> tuple[str, tuple[str, ...]]:
    """The part of a pattern before its first wildcard, as a path, and the parts from there on."""
    parts = PurePosixPath(pattern).parts
    at = next((number for number, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return str(PurePosixPath(*parts[:at])), parts[at:]


def matching_paths(pattern: str, folder: str) -> list[str]:
    """The files that a pattern with `*`, `?`, `[...]` or `**` matches, sorted by their paths."""
    found = glob.glob(pattern, root_dir=folder or None, recursive=True)
    return sorted(path for path in found if Path(folder, path).is_file())


PERMANENT_ERRORS: Final = (InvalidRequest, Forbidden)
"""Errors that a retry would not change: an invalid name, or a file that may not be read. A missing file may still
come."""


class _StagingFailed(Exception):
    def __init__(self, name: str, source: str, error: RequestError) -> None:
        super().__init__(error.message)
        self.fault = Fault(
            name=STAGED_FILE_FAULT,
            category=Category.INPUT if isinstance(error, PERMANENT_ERRORS) else Category.DATA,
            message=error.message,
            stage=AttemptStage.STAGE_IN,
            file=name,
            data={"source": source, "others": [], "reason": error.message},
        )
