"""Adds files to data sets.

The catalogue reports each file that was added to it, and waits until the file is in the set's journal. If its server
dies in between, the catalogue still has the file, and the set's controller searches it from time to time. A file that
is reported in both ways counts once."""

from collections.abc import AsyncIterator, Sequence
from typing import Final, Protocol

from mendflow.core.data.data_set import DataSet, add_files
from mendflow.core.data.set_specs import check_name
from mendflow.core.model.data import LogicalFile
from mendflow.core.model.data_sets import LateFilesAdded, SetFact
from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound
from mendflow.core.model.ids import Instant
from mendflow.core.model.values import FileRef
from mendflow.services.base.contracts import Clock, FileStore
from mendflow.services.base.notices import Notices
from mendflow.services.data.sets.store import DataSetStore

OVERLAP_MS: Final = 600_000
"""How far back a search of the catalogue begins: clocks of servers differ, and the index lags."""

SWEEP_MS: Final = 60_000
CHUNK: Final = 1000


class FileResolver(Protocol):
    """What data sets need of the catalogue."""

    async def resolve(self, name: str) -> FileRef:
        """The file by this logical name. Raises NotFound."""
        ...

    def of_set(self, data_set: str, since: Instant) -> AsyncIterator[LogicalFile]:
        """The files that were added to a data set since then. The search index may lag."""
        ...


class Arrivals:
    def __init__(
        self, *, set_store: DataSetStore, catalogue: FileResolver, file_store: FileStore, clock: Clock, notices: Notices
    ) -> None:
        self._set_store = set_store
        self._catalogue = catalogue
        self._file_store = file_store
        self._clock = clock
        self._notices = notices
        self._swept_at: dict[str, Instant] = {}

    async def add(self, name: str, files: Sequence[FileRef], project: str = "") -> DataSet:
        """Add files to a set, which is created if it does not exist. Files that arrive after it was closed are counted,
        and nothing follows from them."""
        check_name(name, "data set")
        await self._set_store.make(name, project)
        late: list[FileRef] = []

        def decide(state: DataSet) -> list[SetFact]:
            facts = add_files(state, files)
            late[:] = [file for fact in facts if isinstance(fact, LateFilesAdded) for file in fact.files]
            return facts

        state = await self._set_store.change(name, decide)
        if late:
            first = late[0].logical or late[0].name
            told = f"data set {name} is closed, and {len(late)} more files came: {first}; nothing follows"
            self._notices.post(told, project=await self._set_store.project_of(name) or "")
        return state

    async def add_reported_files(self, name: str, files: Sequence[str | FileRef], project: str = "") -> DataSet:
        """The same, but refused if the set is closed, because the caller can be told."""
        check_name(name, "data set")
        refs = [await self._resolve(each) for each in files]
        known = await self._set_store.find(name)
        if known is not None and known.closed and add_files(known, refs):
            raise Conflict(f"data set {name} is closed: nothing can be added to it; take another")
        return await self.add(name, refs, project)

    async def _resolve(self, file: str | FileRef) -> FileRef:
        if isinstance(file, str):
            return await self._catalogue.resolve(file)
        if file.logical:
            return await self._catalogue.resolve(file.logical)
        if await self._file_store.size(file.sha256) != file.bytes:
            raise NotFound(f"no file {file.name} with the digest {file.sha256} is stored here; upload it first")
        return file

    async def sweep(self, name: str, *, whole: bool = False) -> None:
        """Add the files of a set that are in the catalogue and were not reported."""
        now, last = self._clock.now(), self._swept_at.get(name)
        if last is not None and now - last < SWEEP_MS and not whole:
            return
        since = 0 if last is None or whole else max(0, last - OVERLAP_MS)
        files: list[FileRef] = []
        project = await self._set_store.project_of(name)
        async for found in self._catalogue.of_set(name, since):
            if found.project != project:
                continue
            files.append(found.ref())
            if len(files) >= CHUNK:
                await self.add(name, files)
                files = []
        if files:
            await self.add(name, files)
        self._swept_at[name] = now

    async def added(self, file: LogicalFile) -> str:
        """A file was added to the catalogue; returns the set that it was added to, if any."""
        if not file.data_set:
            return ""
        try:
            check_name(file.data_set, "data set")
        except InvalidRequest as invalid:
            self._notices.post(f"file {file.name}: {invalid.message}; it is in no set", project=file.project)
            return ""
        if await self._set_store.project_of(file.data_set) not in (None, file.project):
            told = f"file {file.name}: its data set is of another project; it is in no set"
            self._notices.post(told, project=file.project)
            return ""
        await self.add(file.data_set, [file.ref()], file.project)
        return file.data_set
