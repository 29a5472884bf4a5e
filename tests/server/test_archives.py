"""Archives over HTTP: streamed out, streamed in, refused whole."""

from pathlib import Path

import pytest

from mendflow.client import Client
from mendflow.core.model.flow import Flow, Wait
from mendflow.core.model.ids import FlowName
from mendflow.core.model.problems import Mistake, NotFound
from mendflow.core.model.views import CaseQuery
from mendflow.server.access import Access
from mendflow.server.app import create_app
from mendflow.server.runner import serve
from mendflow.services.local_domain import LocalDomain
from mendflow.stores.memory import MemoryStore
from tests.services.conftest import house_on

LONG = Flow(name=FlowName("f"), body=Wait(name="w", duration=3_600_000))


async def test_a_case_goes_out_and_comes_in_by_the_client(tmp_path: Path) -> None:
    house = house_on(MemoryStore(), tmp_path)
    await house.open()
    served = await serve(create_app(LocalDomain(house), access=Access()))
    try:
        async with Client(served.url) as client:
            await client.deploy(LONG)
            case = (await client.start("f")).id
            file = await client.export(tmp_path / "f.archive", [case])
            report = await client.import_archive(file, as_new=True)
            assert report.imported == report.suspended
            found = await client.find_cases(CaseQuery(where="status == 'suspended'"))
            assert [view.id for view in found.rows] == report.imported
            with pytest.raises(NotFound):
                await client.export(tmp_path / "none.archive", ["f-none"])
            assert not (tmp_path / "none.archive").exists()
            file.write_bytes(file.read_bytes()[:-5])
            with pytest.raises(Mistake, match="ends too early"):
                await client.import_archive(file)
    finally:
        await served.stop()
        await house.close()
