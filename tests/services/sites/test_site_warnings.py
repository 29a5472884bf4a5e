"""What a site's settings name and what is not there: told when it is put, and as long as it is so."""

from collections.abc import AsyncIterator

import pytest

from mendflow.core.model.data import StorageElement
from mendflow.core.model.sites import PilotSettings, Site
from mendflow.services.scheduling.sites.service import SiteService
from mendflow.stores.memory import MemoryStore
from tests.services.sites.kit import Batch, HandClock, SiteServer

SITE = Site(name="t0", pilots=PilotSettings(storage="near"))


@pytest.fixture
def elements() -> dict[str, StorageElement]:
    return {}


@pytest.fixture
async def sites(
    site_server: SiteServer, store: MemoryStore, clock: HandClock, batch: Batch, elements: dict[str, StorageElement]
) -> AsyncIterator[SiteService]:
    async def element(name: str) -> StorageElement | None:
        return elements.get(name)

    yield SiteService(
        store=store,
        ledger=site_server.ledger,
        clock=clock,
        membership=site_server.membership,
        meta=site_server.meta,
        alerts=site_server.alerts,
        batch_systems=batch,
        elements=element,
        look_ms=5_000,
    )


async def test_a_storage_element_that_is_not_there_is_told_until_it_is(
    sites: SiteService, elements: dict[str, StorageElement]
) -> None:  # PJ-8
    (told,) = (await sites.put(SITE, who="ann")).warnings
    assert "there is no storage element near" in told and "mendflow data storage add" in told
    assert (await sites.get("t0")).warnings == [told]
    elements["near"] = StorageElement(name="near", url="file:///near")
    assert (await sites.get("t0")).warnings == [] == (await sites.put(SITE, who="ann")).warnings


async def test_what_the_machine_of_the_server_lacks_is_told_too(sites: SiteService, batch: Batch) -> None:
    batch.lacking = ["sbatch cannot be found"]
    view = await sites.put(Site(name="t0"), who="ann")
    assert view.warnings == ["sbatch cannot be found"] and view.state == "active"
