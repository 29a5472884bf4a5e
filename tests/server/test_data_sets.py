"""Data sets and watches over HTTP, as the client asks for them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.client import Client
from mendflow.core.model.data import StorageElement
from mendflow.core.model.data_sets import BatchView, DataSetSpec, FolderWatch, Gathering
from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound
from mendflow.server.access import AccessControl
from mendflow.server.app import create_app
from mendflow.server.runner import serve
from tests.patience import until
from tests.server.conftest import opened
from tests.services.data_sets.kit import EACH, wish

FOR_EACH = Gathering(name="each", flow="each", count=1)


@pytest.fixture
async def asking(tmp_path: Path) -> AsyncIterator[Client]:
    """A client of a real domain."""
    async with opened(tmp_path) as domain:
        served = await serve(create_app(domain, access=AccessControl(), let_go=domain.let_go))
        try:
            async with Client(served.url, user="ann") as client:
                yield client
        finally:
            await served.stop()


async def test_a_file_is_uploaded_told_of_and_starts_a_case(asking: Client, tmp_path: Path) -> None:  # PJ-9
    await asking.deploy(EACH)
    made = await asking.put_data_set(wish(FOR_EACH))
    assert (made.name, made.state, made.gatherings[0].rule) == ("raw", "open", "for each file")
    (tmp_path / "a.txt").write_text("hello")
    kept = await asking.upload(tmp_path / "a.txt")
    assert (await asking.add_to_set("raw", [kept])).files == 1
    assert (await asking.add_to_set("raw", [kept])).files == 1, "told twice, it counts once"
    assert await asking.set_files("raw") == [kept]
    batch = await _running(asking)
    case = await asking.case(batch.case)
    assert (case.flow, case.owner, case.inputs["file"]["$file"]) == ("each", "ann", kept.sha256)
    assert (await asking.close_set("raw")).state == "closed"
    assert [each.name for each in await asking.data_sets()] == ["raw"]


async def _running(asking: Client) -> BatchView:
    [batch, *_] = await until(lambda: asking.set_batches("raw", status="running"), "a batch that became a case")
    assert isinstance(batch, BatchView)
    return batch


async def test_mistakes_are_told(asking: Client) -> None:
    with pytest.raises(NotFound, match="no data set"):
        await asking.data_set("raw")
    with pytest.raises(NotFound):
        await asking.put_data_set(wish(FOR_EACH))
    with pytest.raises(InvalidRequest, match="not a valid name for a data set"):
        await asking.put_data_set(DataSetSpec(name="a b"))
    await asking.put_data_set(DataSetSpec(name="raw"))
    with pytest.raises(NotFound, match="has no batch each/1"):
        await asking.retry_batch("raw", "each", 1)
    await asking.close_set("raw")
    with pytest.raises(Conflict, match="is closed"):
        await asking.put_data_set(DataSetSpec(name="raw", after=("other",)))
    assert await asking.data_sets() == []
    assert [each.state for each in await asking.data_sets(every=True)] == ["over"]


async def test_watches_are_added_listed_and_removed(asking: Client, tmp_path: Path) -> None:  # PJ-9
    with pytest.raises(NotFound, match="no storage element"):
        await asking.put_watch(FolderWatch(name="w", element="disk", data_set="raw"))
    with pytest.raises(NotFound, match="no watch"):
        await asking.remove_watch("w")
    await asking.put_element(StorageElement(name="disk", url=f"file://{tmp_path}"))
    watch = FolderWatch(name="w", element="disk", data_set="raw", prefix="in", every_ms=60_000)
    assert (await asking.put_watch(watch)).watch.owner == "ann"
    [view] = await asking.watches()
    assert (view.watch.prefix, view.watch.every_ms) == ("in", 60_000)
    await asking.remove_watch("w")
    assert await asking.watches() == []
