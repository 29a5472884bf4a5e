"""Schedules in the store: one document each, changed only by who has read its newest version."""

from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from mendflow.core.model.errors import Conflict, NotFound
from mendflow.core.model.schedules import ScheduleDocument
from mendflow.services.base.contracts import TRIES
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.projects import kept_project
from mendflow.services.base.readable_documents import readable_in
from mendflow.stores.contract import Store

SCHEDULE_KIND: Final = "schedule"
SCHEDULE_NAME_KIND: Final = "schedule-name"


class ScheduleNameDocument(msgspec.Struct):
    """The project that a name of a schedule belongs to, also when the schedule is removed: its cases have keys with
    that name."""

    project: str


_decode = msgspec.json.Decoder(ScheduleDocument).decode
_decode_name = msgspec.json.Decoder(ScheduleNameDocument).decode


class StoredSchedule(NamedTuple):
    document: ScheduleDocument
    version: int


class ScheduleStore:
    def __init__(self, store: Store, ledger: Ledger) -> None:
        self._store = store
        self._ledger = ledger

    async def all(self) -> dict[str, StoredSchedule]:
        """By name."""
        found = await readable_in(self._store.scan(SCHEDULE_KIND), _decode)
        return {each.id: StoredSchedule(schedule, each.version) for each, schedule in found}

    async def find(self, name: str) -> StoredSchedule | None:
        found = await self._store.get(SCHEDULE_KIND, name)
        return StoredSchedule(_decode(found.body), found.version) if found is not None else None

    async def get(self, name: str) -> StoredSchedule:
        found = await self.find(name)
        if found is None:
            raise NotFound(f"there is no schedule {name!r:.100}; `mendflow schedules` lists them")
        return found

    async def project_of(self, name: str) -> str | None:
        """The project that the name belongs to, if somebody has claimed it."""
        found = await self._store.get(SCHEDULE_NAME_KIND, name)
        return _decode_name(found.body).project if found is not None else None

    async def claim(self, name: str, project: str) -> None:
        """From now on the name belongs to this project. Refused if it belongs to another."""
        if await self._ledger.put_now(SCHEDULE_NAME_KIND, name, ScheduleNameDocument(project), 0) is None:
            kept_project(f"schedule {name}", await self.project_of(name), project)

    async def put(self, name: str, document: ScheduleDocument | None, version: int) -> int | None:
        """Write a schedule, or delete it; None if it has changed since that version."""
        return await self._ledger.put_now(SCHEDULE_KIND, name, document, version)

    async def change(self, name: str, new: Callable[[ScheduleDocument], ScheduleDocument]) -> ScheduleDocument:
        """Change a schedule that is there, from whatever it is by now."""
        for _ in range(TRIES):
            found = await self.get(name)
            wanted = new(found.document)
            if wanted == found.document or await self.put(name, wanted, found.version) is not None:
                return wanted
        raise Conflict(f"schedule {name} is changed by several at once, again and again; try again")
