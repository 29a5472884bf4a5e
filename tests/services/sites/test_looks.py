"""Every look at a site is counted once, by how it ended: none is dropped without a word."""

import asyncio

from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.sites import BatchJobStatus, Site
from mendflow.services.base.counters import ServerMetrics
from mendflow.services.scheduling.sites.pilot_monitor import TRIES_MAX
from tests.services.sites.kit import Batch, SiteServer

SITE = Site(name="t0", max_pilots=5)


def counted(site_server: SiteServer) -> dict[str, int]:
    assert all(site == "t0" for site, _ in site_server.looks.counts)
    return {result: count for (_, result), count in site_server.looks.items()}


async def test_a_look_is_counted_by_what_the_batch_system_said(site_server: SiteServer, batch: Batch) -> None:  # PJ-8
    await site_server.site_store.put(SITE, who="ann")
    await site_server.look()
    assert counted(site_server) == {"unasked": 1}, "nothing waits"
    await site_server.wait_for(1)
    await site_server.look()
    assert counted(site_server) == {"unasked": 1, "answered": 1}
    batch.away = "squeue does not answer"
    await site_server.look()
    assert counted(site_server) == {"unasked": 1, "answered": 1, "unanswered": 1}


async def test_a_look_that_ends_in_an_error_is_counted_and_the_next_one_takes_place(
    site_server: SiteServer, batch: Batch
) -> None:  # PJ-8
    await site_server.site_store.put(SITE, who="ann")
    await site_server.wait_for(1)
    finds, errors = batch.find, [RuntimeError("the handler is closed"), StoreUnavailable("away")]

    async def broken(site: Site) -> dict[str, BatchJobStatus]:
        if errors:
            raise errors.pop(0)
        return await finds(site)

    batch.find = broken  # type: ignore[method-assign]  # it stands for another
    for _ in range(3):
        await site_server.look()
    assert counted(site_server) == {"failed": 1, "store-away": 1, "answered": 1}


async def test_a_look_that_finds_the_last_one_under_way_and_one_that_is_broken_off_are_counted(
    site_server: SiteServer, batch: Batch
) -> None:  # PJ-8
    await site_server.site_store.put(SITE, who="ann")
    await site_server.wait_for(1)
    batch.hangs = asyncio.Event()
    await site_server.monitor.look()
    await asyncio.sleep(0)
    await site_server.monitor.look()
    assert counted(site_server) == {"skipped": 1}
    await site_server.monitor.stop()
    assert counted(site_server) == {"skipped": 1, "cancelled": 1}


async def test_a_look_that_others_overtake_each_time_is_counted(site_server: SiteServer, batch: Batch) -> None:  # PJ-8
    await site_server.site_store.put(SITE, who="ann")
    await site_server.wait_for(1)
    finds, times = site_server.site_store.find, 0

    async def overtaken(name: str):  # type: ignore[no-untyped-def]  # as the one that it stands for
        nonlocal times
        times += 1
        found = await finds(name)
        if times <= TRIES_MAX:
            site_server.site_store.find = finds  # type: ignore[method-assign]  # it stands for another
            await site_server.site_store.pause(name, who="bob", why=f"{times}")
            site_server.site_store.find = overtaken  # type: ignore[method-assign]  # it stands for another
        return found

    site_server.site_store.find = overtaken  # type: ignore[method-assign]  # it stands for another
    await site_server.look()
    assert counted(site_server) == {"overtaken": 1} and times == TRIES_MAX


def test_each_of_many_sites_has_counts_of_its_own() -> None:
    looks = ServerMetrics().site_looks
    for number in range(100):
        for result in ("answered", "unanswered", "unasked", "skipped", "overtaken", "store-away", "failed"):
            looks.add(f"site-{number}", result)
    assert len(looks.counts) == 700
