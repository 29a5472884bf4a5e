"""The counts as documents: one for each cause of failures, one for each flow and day, shared by all servers.

Each server adds what it has counted by compare-and-set; a server that comes second reads again and adds again. So no
server is special, and what one has counted is lost only if it dies before its next look."""

from collections.abc import Sequence
from typing import Final

import msgspec

from mendflow.core.learning.group_statistics import GroupStatistics, merge_groups
from mendflow.core.learning.usage import UsageStatistics, merge_usage
from mendflow.core.model.ids import Instant
from mendflow.services.base.contracts import TRIES
from mendflow.stores.contract import Put, Store, WriteDone

GROUP_KIND: Final = "learned-group"
USAGE_KIND: Final = "learned-usage"
STATE_KIND: Final = "learning"
STATE_ID: Final = "state"

_encode = msgspec.json.Encoder().encode
_decode_group = msgspec.json.Decoder(GroupStatistics).decode
_decode_usage = msgspec.json.Decoder(UsageStatistics).decode


class LearningState(msgspec.Struct, frozen=True):
    """What the store's past was counted up to. `counted_by` is the server that counts it; while it is not `done`,
    others keep what they have."""

    counted_at: Instant
    counted_by: str
    done: bool = False


_decode_state = msgspec.json.Decoder(LearningState).decode


def usage_id(usage: UsageStatistics) -> str:
    return f"{usage.flow}/{usage.day}"


class StatisticsStore:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def state(self) -> tuple[LearningState | None, int]:
        found = await self._store.get(STATE_KIND, STATE_ID)
        return (_decode_state(found.body), found.version) if found is not None else (None, 0)

    async def put_state(self, state: LearningState, version: int) -> bool:
        """Whether no other server was faster."""
        [result] = await self._store.write([Put(STATE_KIND, STATE_ID, _encode(state), version)])
        return isinstance(result, WriteDone)

    async def group(self, id: str) -> GroupStatistics | None:
        found, _ = await self._stored_group(id)
        return found

    async def groups(self) -> list[GroupStatistics]:
        return [_decode_group(found.body) async for found in self._store.scan(GROUP_KIND)]

    async def usage(self) -> list[UsageStatistics]:
        return [_decode_usage(found.body) async for found in self._store.scan(USAGE_KIND)]

    async def add_groups(self, counted: list[GroupStatistics]) -> None:
        """Add them to what is stored, and take each out of the list. What stays in the list, also where the store
        fails, is not added; what was just being written then may be, so it is rather missed than counted twice."""
        for each in tuple(counted):
            for _ in range(TRIES):
                stored, version = await self._stored_group(each.id)
                if stored is not None:
                    merge_groups(stored, each)
                counted.remove(each)
                if await self._is_written(GROUP_KIND, each.id, stored or each, version):
                    break
                counted.append(each)

    async def add_usage(self, counted: list[UsageStatistics]) -> None:
        """As `add_groups` does."""
        for each in tuple(counted):
            for _ in range(TRIES):
                stored, version = await self._stored_usage(usage_id(each))
                if stored is not None:
                    merge_usage(stored, each)
                counted.remove(each)
                if await self._is_written(USAGE_KIND, usage_id(each), stored or each, version):
                    break
                counted.append(each)

    async def keep_greater(self, groups: Sequence[GroupStatistics], usage: Sequence[UsageStatistics]) -> None:
        """Store what was counted anew wherever that is no less than what is stored. It is less where cases were removed
        since: what was learned from these stays."""
        for group in groups:
            for _ in range(TRIES):
                known, version = await self._stored_group(group.id)
                if known is not None and known.count > group.count:
                    break
                if await self._is_written(GROUP_KIND, group.id, group, version):
                    break
        for each in usage:
            for _ in range(TRIES):
                used, version = await self._stored_usage(usage_id(each))
                if used is not None and used.jobs > each.jobs:
                    break
                if await self._is_written(USAGE_KIND, usage_id(each), each, version):
                    break

    async def _stored_group(self, id: str) -> tuple[GroupStatistics | None, int]:
        found = await self._store.get(GROUP_KIND, id)
        return (_decode_group(found.body), found.version) if found is not None else (None, 0)

    async def _stored_usage(self, id: str) -> tuple[UsageStatistics | None, int]:
        found = await self._store.get(USAGE_KIND, id)
        return (_decode_usage(found.body), found.version) if found is not None else (None, 0)

    async def _is_written(self, kind: str, id: str, counts: GroupStatistics | UsageStatistics, version: int) -> bool:
        """Whether no other server was faster."""
        [result] = await self._store.write([Put(kind, id, _encode(counts), version)])
        return isinstance(result, WriteDone)
