"""Stores local input files on the server before the job that needs them is submitted.

A logical file stays where it is: only its digest is looked up, so that a pilot that has it in its cache can be chosen.
Paths are relative to the flow's own folder. The server decides whether a path may lead out of it: a server that serves
others reads only below the folders that it was given."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from mendflow.core.engine.messages import STAGED_FILE_FAULT, URL_NOT_STAGED, StageFiles, staging_outcome
from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.errors import Forbidden, InvalidRequest, RequestError, StoreUnavailable
from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.values import FileRef
from mendflow.services.base.background_tasks import BackgroundTasks
from mendflow.services.base.contracts import FileStore
from mendflow.services.base.ledger import Ledger

Finished = Callable[[CaseId, int, Outcome], Awaitable[None]]
Resolve = Callable[[str], Awaitable[FileRef]]


class FileStaging:
    """`roots` are the folders that may be read; None allows every path, as for a user's own server. `resolve` finds
    logical files by their names."""

    def __init__(
        self,
        file_store: FileStore,
        resolve: Resolve,
        finished: Finished,
        roots: tuple[Path, ...] | None,
        ledger: Ledger,
    ) -> None:
        self._file_store = file_store
        self._resolve = resolve
        self._finished = finished
        self._roots = roots
        self._background = BackgroundTasks(ledger)

    async def stop(self) -> None:
        await self._background.stop()

    def start(self, case: CaseId, order: StageFiles, folder: str) -> None:
        self._background.start(self._stage(case, order, folder))

    async def _stage(self, case: CaseId, order: StageFiles, folder: str) -> None:
        try:
            if order.order == "sequence":
                kept = [await self._fetch(name, source, folder) for name, source in order.files.items()]
            else:
                kept = await asyncio.gather(*(self._fetch(*each, folder) for each in order.files.items()))
            outcome = staging_outcome(dict(zip(order.files, kept, strict=True)))
        except _StagingFailed as failed:
            outcome = Outcome(fault=failed.fault)
        await self._finished(case, order.serial, outcome)

    async def _fetch(self, name: str, source: str, folder: str) -> FileRef:
        try:
            return await (
                self._resolve(source) if source.startswith(LOGICAL_PREFIX) else self._store_path(source, folder)
            )
        except StoreUnavailable:
            raise
        except RequestError as error:
            raise _StagingFailed(name, source, error) from error

    async def _store_path(self, source: str, folder: str) -> FileRef:
        if "\0" in source:
            raise InvalidRequest(f"{source!r:.200} is not a path: it has a NUL character")
        if "://" in source:
            raise InvalidRequest(f"{source:.200}: {URL_NOT_STAGED}")
        path = await asyncio.to_thread(Path(folder, source).resolve)
        if self._roots is not None and not any(path.is_relative_to(root) for root in self._roots):
            raise Forbidden(
                f"{source} may not be read by this server; upload it, or start the server with --files-root DIR"
            )
        return await self._file_store.keep_path(str(path))


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
