"""Data sets in the store: a journal for each, and a document by which it is found.

To change a set, a server reads its whole journal and appends at the end of what it read. If several servers do so at
once, one is first; the others read its entry, and decide again. So every change is decided with knowledge of all
earlier ones, and a crash leaves a whole entry or none."""

import asyncio
from collections.abc import Callable

import msgspec

from mendflow.core.data.data_set import DataSet, batches_due, evolve
from mendflow.core.model.data_sets import SetEvent, SetFact
from mendflow.core.model.errors import NotFound
from mendflow.core.model.ids import Instant
from mendflow.core.model.principals import DEFAULT_PROJECT
from mendflow.services.base.contracts import Clock
from mendflow.services.base.projects import kept_project
from mendflow.services.base.readable_documents import readable_in
from mendflow.stores.contract import Append, FieldCondition, Put, Store, StoredDocument, WriteDone

SET_KIND = "data-set"
OPEN_MAX = 10_000
Decide = Callable[[DataSet], list[SetFact]]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(SetEvent).decode


class DataSetDocument(msgspec.Struct, frozen=True, kw_only=True):
    """`over`: it is closed, and all cases that it started have completed."""

    name: str
    made_at: Instant
    project: str = DEFAULT_PROJECT
    over: bool = False


_decode_document = msgspec.json.Decoder(DataSetDocument).decode


def journal_of(name: str) -> str:
    return f"data-set/{name}"


class _LoadedSet:
    """A set as far as its journal was read."""

    def __init__(self, name: str) -> None:
        self.state = DataSet(name=name)
        self.position = 0
        self.lock = asyncio.Lock()


class DataSetStore:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._read: dict[str, _LoadedSet] = {}

    async def all(self) -> list[DataSetDocument]:
        return [each for _, each in await readable_in(self._store.scan(SET_KIND), _decode_document)]

    async def unfinished(self) -> list[str]:
        """The sets that are not over. It uses the search index, so a new one may be missing."""
        found = await self._store.search(SET_KIND, [FieldCondition("over", False)], limit=OPEN_MAX)
        return [each.id for each in found]

    async def project_of(self, name: str) -> str | None:
        """The project of a set, if it exists."""
        found = await self._store.get(SET_KIND, name)
        return _decode_document(found.body).project if found is not None else None

    async def find(self, name: str) -> DataSet | None:
        """The current state of a set, if it exists."""
        if name not in self._read and await self._store.get(SET_KIND, name) is None:
            return None
        read = self._loaded(name)
        async with read.lock:
            await self._catch_up(read)
        if read.state.is_drained:
            self._read.pop(name, None)  # there may be many of these, and large ones
        return read.state

    async def get(self, name: str) -> DataSet:
        found = await self.find(name)
        if found is None:
            raise NotFound(f"there is no data set {name!r}; `mendflow data sets` lists them")
        return found

    def last_read(self, name: str) -> DataSet | None:
        """A set as it was last read here, if it was."""
        read = self._read.get(name)
        return read.state if read is not None else None

    async def make(self, name: str, project: str = "") -> None:
        """Create the set if it does not exist; then it belongs to this project. Refused if it belongs to another."""
        if name not in self._read:
            document = DataSetDocument(name=name, made_at=self._clock.now(), project=project or DEFAULT_PROJECT)
            await self._store.write([Put(SET_KIND, name, _encode(document), 0)])
            self._loaded(name)
        if project:
            kept_project(f"data set {name}", await self.project_of(name), project)

    async def change(self, name: str, decide: Decide) -> DataSet:
        """Append what `decide` returns, and make the batches that are due then."""
        read = self._loaded(name)
        async with read.lock:
            await self._append(read, decide)
            await self._append(read, self._due_batches)
        return read.state

    async def mark_finished(self, name: str) -> None:
        """Nothing follows from this set any more: mark it, so that it is not processed again."""
        while (found := await self._store.get(SET_KIND, name)) is not None and not _is_over(found):
            closed = msgspec.structs.replace(_decode_document(found.body), over=True)
            await self._store.write([Put(SET_KIND, name, _encode(closed), found.version)])
        self._read.pop(name, None)

    def _due_batches(self, state: DataSet) -> list[SetFact]:
        return batches_due(state, self._clock.now())

    async def _append(self, read: _LoadedSet, decide: Decide) -> None:
        while True:
            await self._catch_up(read)
            now = self._clock.now()
            events = [SetEvent(now, fact) for fact in decide(read.state)]
            if not events:
                return
            entries = [_encode(event) for event in events]
            [result] = await self._store.write([Append(journal_of(read.state.name), entries, read.position)])
            if isinstance(result, WriteDone):
                for event in events:
                    evolve(read.state, event)
                read.position += len(events)
                return

    async def _catch_up(self, read: _LoadedSet) -> None:
        while entries := await self._store.read(journal_of(read.state.name), read.position):
            for entry in entries:
                evolve(read.state, _decode(entry))
            read.position += len(entries)

    def _loaded(self, name: str) -> _LoadedSet:
        return self._read.setdefault(name, _LoadedSet(name))


def _is_over(found: StoredDocument) -> bool:
    return _decode_document(found.body).over
