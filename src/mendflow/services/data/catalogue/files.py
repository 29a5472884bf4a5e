"""The documents of logical files. Any server may change any of them, by compare-and-set: the slower of two servers
repeats its change on what the faster one wrote."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

import msgspec

from mendflow.core.data.paths import logical_name
from mendflow.core.model.data import LogicalFile
from mendflow.core.model.errors import Conflict, NotFound
from mendflow.core.model.ids import Instant
from mendflow.core.model.principals import EVERYTHING, Sight
from mendflow.services.base.contracts import TRIES
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.visibility import in_sight
from mendflow.stores.contract import FieldCondition, Store, StoredDocument

FILE_KIND: Final = "file"
PAGE: Final = 1_000
LAST_CODE_POINT: Final = "\U0010ffff"

_decode = msgspec.json.Decoder(LogicalFile).decode
Change = Callable[[LogicalFile | None], LogicalFile | None]
"""The new document; None deletes it. It may be called several times, and raises what is wrong."""


class LogicalFileStore:
    def __init__(self, store: Store, ledger: Ledger) -> None:
        self._store = store
        self._ledger = ledger

    async def find(self, name: str) -> LogicalFile | None:
        found = await self._store.get(FILE_KIND, name)
        return _decode(found.body) if found is not None else None

    async def get(self, name: str, project: str = "") -> LogicalFile:
        """The file of this name. If a project is given, one of another is not there, in the same words."""
        found = await self.find(logical_name(name))
        if found is None or project not in ("", found.project):
            raise NotFound(f"the catalogue has no file {name:.200}; `mendflow data files list` shows what it has")
        return found

    async def many(self, names: Sequence[str]) -> dict[str, LogicalFile]:
        """Those that exist, by name."""
        return {each.id: _decode(each.body) for each in await self._store.get_many(FILE_KIND, names)}

    async def page(
        self,
        *,
        prefix: str = "",
        data_set: str = "",
        after: str = "",
        limit: int = 100,
        every: bool = False,
        sight: Sight = EVERYTHING,
    ) -> list[LogicalFile]:
        """By name, after a name. Names that are only reserved for a job that writes are left out, unless `every`."""
        await self._store.refresh()
        where = [
            FieldCondition("name", max(prefix, after), "ge"),
            FieldCondition("name", prefix + LAST_CODE_POINT, "lt"),
        ]
        where += [FieldCondition("name", after, "gt")] if after else []
        where += [FieldCondition("data_set", data_set)] if data_set else []
        where += in_sight(sight)
        found: list[LogicalFile] = []
        last: StoredDocument | None = None
        while len(found) < limit:
            page = await self._store.search(FILE_KIND, where, order_by="name", limit=PAGE, after=last)
            found += [file for each in page if (file := _decode(each.body)).replicas or every]
            if len(page) < PAGE:
                break
            last = page[-1]
        return found[:limit]

    async def newest(self, limit: int) -> list[LogicalFile]:
        """Those that were added last. The search index may lag."""
        found = await self._store.search(FILE_KIND, order_by="added_at", descending=True, limit=limit)
        return [file for each in found if (file := _decode(each.body)).replicas]

    async def of_set(self, data_set: str, since: Instant) -> AsyncIterator[LogicalFile]:
        """The files that were added to a data set since then. The search index may lag."""
        where = [FieldCondition("data_set", data_set), FieldCondition("added_at", since, "ge")]
        last: StoredDocument | None = None
        while page := await self._store.search(FILE_KIND, where, order_by="added_at", limit=PAGE, after=last):
            for each in page:
                if (file := _decode(each.body)).replicas:
                    yield file
            last = page[-1]

    async def all(self) -> AsyncIterator[LogicalFile]:
        async for each in self._store.scan(FILE_KIND, "/"):
            yield _decode(each.body)

    async def change(self, name: str, make: Change) -> LogicalFile | None:
        """Change a file; returns its new document."""
        for _ in range(TRIES):
            found = await self._store.get(FILE_KIND, name)
            before = _decode(found.body) if found is not None else None
            after = make(before)
            if after == before:
                return after
            version = found.version if found is not None else 0
            if await self._ledger.put_now(FILE_KIND, name, after, version) is not None:
                return after
        raise Conflict(f"file {name} is changed by several at once, again and again; try once more")
