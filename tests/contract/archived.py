"""A domain with cases worth keeping, and what is in an archive."""

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from mendflow.core.model.flow import Call, Flow, ForEach, Input, JobActivity, Scope, Sequence
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.services.api.archive.records import AnyRecord, DocumentRecord, HeadRecord, JournalRecord, Unpacker
from mendflow.services.api.domain import Domain
from mendflow.services.runtime.server import Server
from mendflow.stores.contract import Store
from mendflow.stores.memory import MemoryStore
from tests.services.conftest import HandPilot, server_on
from tests.services.test_repairs import failed, rules_for

CALLED = Flow(name=FlowName("f.inner"), body=JobActivity(name="inner", command="true"))


class World(NamedTuple):
    server: Server
    domain: Domain
    pilot: HandPilot


@asynccontextmanager
async def world_on(store: Store, folder: Path) -> AsyncIterator[World]:
    server = server_on(store, folder)
    await server.open()
    domain = Domain(server)
    try:
        yield World(server, domain, HandPilot(domain))
    finally:
        await server.close()


def flow(turns: int = 3) -> Flow:
    loop = ForEach(name="loop", items=list(range(turns)), body=JobActivity(name="a", command="true"), on_fault="finish")
    call = Call(name="called", flow=FlowName("f.inner"))
    inputs = {"data": Input(type="any", required=False)}
    body = Scope(name="whole", body=Sequence(name="s", body=(loop, call)))
    return Flow(name=FlowName("f"), inputs=inputs, body=body, calls=(CALLED,))


def play(spec: JobSpec) -> Outcome:
    """The first turn fails until it is mended."""
    return failed(7) if spec.item == "a[0]" and spec.env.get("MENDED") != "yes" else Outcome(outputs=str(spec.item))


async def kept(domain: Domain, content: bytes) -> dict[str, Any]:
    async def chunks() -> AsyncIterator[bytes]:
        yield content

    return (await domain.store_file("data.txt", chunks())).as_value()


async def begun(world: World) -> str:
    """A case with a kept file as its input, and rules that mend its first turn."""
    await world.domain.put_rules(rules_for("f", again="fault.exit_code == 7"), who="ann")
    await world.domain.deploy(flow())
    file = await kept(world.domain, b"what it works on" * 40_000)
    return (await world.domain.start("f", {"data": file}, who="ann")).id


async def over(world: World) -> str:
    case = await begun(world)
    await world.pilot.run_all(play)
    assert (await world.domain.case(case)).status == "completed"
    return case


async def packed(domain: Domain, *cases: str, **more: Any) -> bytes:
    return b"".join([chunk async for chunk in await domain.export(list(cases), who="ann", **more)])


async def unpacked(domain: Domain, archive: bytes, **more: bool) -> Any:
    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(archive), 1000):
            yield archive[start : start + 1000]

    return await domain.import_archive(chunks(), who="ann", **more)


def records(archive: bytes) -> list[AnyRecord]:
    return list(Unpacker(io.BytesIO(archive)).records())


def content(archive: bytes) -> list[Any]:
    """All that an archive says, but when and by whom it was made; bodies as the data that they are."""
    return [_plain(record) for record in records(archive) if not isinstance(record, HeadRecord)]


def _plain(record: AnyRecord) -> Any:
    if isinstance(record, DocumentRecord):
        return ("document", record.kind, record.id, msgspec.json.decode(record.body))
    if isinstance(record, JournalRecord):
        return ("journal", record.case, record.position, [msgspec.json.decode(each) for each in record.entries])
    return record


async def archive_of_one(folder: Path) -> tuple[str, bytes]:
    """An archive of a case that is over."""
    async with world_on(MemoryStore(), folder) as world:
        case = await over(world)
        return case, await packed(world.domain, case)
