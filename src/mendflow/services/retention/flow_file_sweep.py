"""Files of flows go when nothing names their version: no case, and no flow that is there in a version that somebody has
deployed, or that is its newest. Each start from an edited file leaves one."""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import msgspec

from mendflow.core.model.ids import Instant
from mendflow.services.cases.flow_file_store import FLOW_FILE_KIND, id_of
from mendflow.services.cases.flows import FLOW_KIND, VERSION_KIND
from mendflow.stores.contract import Delete, Store, WriteDone

TOGETHER: Final = 200


class _Kept(NamedTuple):
    id: str
    version: int
    bytes: int


class _KeptFile(msgspec.Struct):
    used_at: Instant = 0


class _Version(msgspec.Struct):
    name: str
    digest: str
    tentative: bool = False

    @property
    def file_id(self) -> str:
        return id_of(self.name, self.digest)


_decode_file = msgspec.json.Decoder(_KeptFile).decode
_decode_version = msgspec.json.Decoder(_Version).decode


async def sweep_flow_files(store: Store, named: Collection[str], since: Instant) -> tuple[int, int]:
    """Remove those that nothing names; how many, and how many bytes. `named` are the versions of cases. One that was
    sent after `since` stays: its case may begin just now."""
    kept = [
        _Kept(found.id, found.version, len(found.body))
        async for found in store.scan(FLOW_FILE_KIND)
        if found.id not in named and _decode_file(found.body).used_at < since
    ]
    deployed = await _deployed(store) if kept else set()
    unnamed = [each for each in kept if each.id not in deployed]
    gone = list[_Kept]()
    for start in range(0, len(unnamed), TOGETHER):
        gone += await _removed(store, unnamed[start : start + TOGETHER])
    return len(gone), sum(each.bytes for each in gone)


async def _deployed(store: Store) -> set[str]:
    newest = [_decode_version(found.body) async for found in store.scan(FLOW_KIND)]
    deployed = {each.file_id for each in newest}
    for flow in newest:
        async for found in store.scan(VERSION_KIND, id_of(flow.name, "")):
            version = _decode_version(found.body)
            if not version.tentative:
                deployed.add(version.file_id)
    return deployed


async def _removed(store: Store, some: Sequence[_Kept]) -> list[_Kept]:
    done = await store.write([Delete(FLOW_FILE_KIND, each.id, each.version) for each in some])
    return [each for each, result in zip(some, done, strict=True) if isinstance(result, WriteDone)]
