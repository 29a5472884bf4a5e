"""What a site's pilots could take, which of them are too many, and what is told of that."""

import pytest

from mendflow.core.model.errors import Conflict
from mendflow.core.model.ids import PilotId
from mendflow.core.model.jobs import Resources
from mendflow.core.model.sites import HOUR_MS, BatchJobStatus, BatchSettings, PilotSettings, Site
from mendflow.core.scheduling import submissions
from mendflow.services.base.cluster import ServerDocument
from mendflow.services.scheduling.sites.pilot_monitor import SiteHelp
from tests.services.sites.kit import Batch, SiteServer

SITE = Site(name="t0", max_pilots=5, submissions_per_hour=20, failures_max=3)


@pytest.mark.parametrize("told", [True, False], ids=["written as it is said", "seen by the next look"])
async def test_a_job_that_is_too_large_for_the_pilots_that_came_brings_no_more(
    site_server: SiteServer, batch: Batch, told: bool
) -> None:  # PJ-8
    await site_server.site_store.put(SITE, who="ann")
    await site_server.wait_for(2, memory_bytes=900)
    await site_server.look()
    assert len(batch.has) == 2, "nobody knows yet what its pilots have"
    names = list(batch.has)
    for name in names:
        site_server.heard(name, memory=25)
        if not told:
            site_server.monitor._reports.clear()  # as if the store had been away
    await site_server.told()
    await site_server.look()
    for name in names:
        site_server.heard(name, leaving=True)
        del batch.has[name]
    await site_server.told()
    for _ in range(100):
        await site_server.look()
    document = await site_server.document()
    assert len(document.spent) == 2 and not batch.has
    assert document.reasons[-1].startswith("2 jobs wait that none of its pilots could take: it asks for 900 B")
    [why] = site_server.monitor.help_for(Resources(memory_bytes=900)).cannot
    assert why.startswith("site t0 has no pilots that could take it: it asks for 900 B of memory")
    await site_server.wait_for(1)
    await site_server.look()
    assert len(batch.has) == 1, "those that it has pilots for are served"


@pytest.mark.parametrize("how", ["a day later", "resumed", "other settings"])
async def test_what_pilots_had_is_forgotten_some_day_or_when_somebody_looks_after_the_site(
    site_server: SiteServer, batch: Batch, how: str
) -> None:
    await site_server.site_store.put(SITE, who="ann")
    await site_server.wait_for(1, memory_bytes=900)
    await site_server.look()
    [name] = batch.has
    site_server.heard(name, memory=25)
    site_server.heard(name, leaving=True)
    await site_server.told()
    batch.has.clear()
    await site_server.look(after_ms=HOUR_MS)
    assert not batch.has
    if how == "a day later":
        site_server.clock.at += 24 * HOUR_MS
    elif how == "resumed":
        await site_server.site_store.resume("t0")
    else:
        await site_server.site_store.put(SITE, who="ann")
    await site_server.look()
    await site_server.look()
    assert len(batch.has) == 1


async def test_a_job_that_waits_can_be_told_what_sites_do_about_it(site_server: SiteServer) -> None:
    assert site_server.monitor.help_for(Resources()) == SiteHelp([], [])
    await site_server.site_store.put(SITE, who="ann")
    await site_server.wait_for(1)
    await site_server.look()
    await site_server.look()
    [told] = site_server.monitor.help_for(Resources()).helps
    assert told.startswith("site t0: 1 pilot is coming, 0 are idle and 0 busy; ")
    lacks = "site t0 has no pilots that could take it: it asks for 8 gpus, and its pilots get 0 gpus"
    assert site_server.monitor.help_for(Resources(gpus=8)) == SiteHelp([], [lacks])
    assert site_server.monitor.help_for(Resources(site="t1")) == SiteHelp([], []), (
        "another site's job is none of its business"
    )
    await site_server.site_store.pause("t0", who="ann", why="the roof leaks")
    await site_server.look()
    await site_server.look()
    assert "the site is paused: the roof leaks" in site_server.monitor.help_for(Resources()).helps[0]
    assert "1 job waits without a submitted pilot" in (await site_server.document()).reasons


async def test_nobody_speaks_for_the_server_of_another_machine(site_server: SiteServer, batch: Batch) -> None:
    await site_server.site_store.put(Site(name="t0", min_pilots=1, batch=BatchSettings(host="far")), who="ann")
    site_server.membership.others = [ServerDocument(id="zoe", url="", host="near")]
    await site_server.look()
    assert not batch.submitted_at
    assert "no server runs on far" in site_server.monitor.why_unmanaged(await site_server.document())
    site_server.membership.others = [ServerDocument(id="zoe", url="", host="far")]
    assert not site_server.monitor.why_unmanaged(await site_server.document())


async def test_the_alert_of_a_paused_site_goes_with_the_site(site_server: SiteServer, batch: Batch) -> None:
    await site_server.site_store.put(SITE, who="ann")
    await site_server.wait_for(1)
    for _ in range(50):
        await site_server.look(after_ms=60_000)
        for name in list(batch.has):
            site_server.heard(name, unfit="there is no program singularity", leaving=True)
            del batch.has[name]
            await site_server.told()
    assert site_server.alerts.open
    await site_server.site_store.put(Site(name="t0", min_pilots=1), who="ann")
    await site_server.site_store.change(
        "t0", lambda it: submissions.reserve(submissions.resume(it), ["jobs"], now=1, by="x")[0]
    )
    await site_server.site_store.pause("t0", who="", why="again")
    await site_server.look()
    assert site_server.alerts.open
    await site_server.site_store.remove("t0", force=True)
    for _ in range(20):
        await site_server.look()
    assert not site_server.alerts.open and await site_server.site_store.find("t0") is None


async def test_pilots_beyond_what_a_site_should_have_are_taken_back_or_leave_when_they_are_idle(
    site_server: SiteServer, batch: Batch
) -> None:  # PJ-8
    await site_server.site_store.put(Site(name="t0", min_pilots=4, max_pilots=4), who="ann")
    await site_server.look()
    first, second, *queued = batch.has
    for name in (first, second):
        batch.has[name] = BatchJobStatus("running", "1")
        site_server.heard(name)
    await site_server.told()
    await site_server.look()
    assert not site_server.monitor.idle_exit_ms(first), "it is to be ready"
    changed = Site(name="t0", min_pilots=1, max_pilots=2, pilots=PilotSettings(idle_exit_ms=20_000))
    await site_server.site_store.put(changed, who="ann")
    await site_server.look()
    await site_server.look()
    assert sorted(batch.cancelled) == sorted(queued)
    stay = [site_server.monitor.idle_exit_ms(name) for name in (first, second)]
    assert stay == [0, 20_000], "one is to be ready, the other is there for jobs"
    await site_server.site_store.remove("t0", force=False)
    await site_server.look()
    assert site_server.monitor.idle_exit_ms(first) == site_server.monitor.idle_exit_ms(second) == 1_000


async def test_a_ready_pilot_that_works_is_no_surplus(site_server: SiteServer, batch: Batch) -> None:
    await site_server.site_store.put(Site(name="t0", max_pilots=4, min_idle=1), who="ann")
    await site_server.look()
    [first] = batch.has
    site_server.heard(first)
    await site_server.told()
    site_server.meta.pilots[PilotId(f"p-{first}")].attempts = 1
    await site_server.look()
    [second] = batch.has.keys() - {first}
    site_server.heard(second)
    await site_server.told()
    await site_server.look()
    await site_server.look()
    assert not any(site_server.monitor.idle_exit_ms(name) for name in (first, second))
    site_server.meta.pilots[PilotId(f"p-{first}")].attempts = 0
    await site_server.look()
    await site_server.look()
    assert sum(bool(site_server.monitor.idle_exit_ms(name)) for name in (first, second)) == 1


async def test_a_pilot_that_waits_in_the_batch_system_is_on_its_way_to_a_job(
    site_server: SiteServer, batch: Batch
) -> None:
    await site_server.site_store.put(SITE, who="ann")
    await site_server.wait_for(1)
    assert not site_server.monitor.is_pilot_coming(Resources())
    await site_server.look()
    await site_server.look()
    assert site_server.monitor.is_pilot_coming(Resources()) and not site_server.monitor.is_pilot_coming(
        Resources(gpus=1)
    )
    await site_server.site_store.pause("t0", who="ann", why="the roof leaks")
    await site_server.look()
    await site_server.look()
    assert not site_server.monitor.is_pilot_coming(Resources()), "it was taken back"


async def test_a_site_that_is_being_removed_cannot_be_resumed_only_added_again(
    site_server: SiteServer, batch: Batch
) -> None:
    await site_server.site_store.put(SITE, who="ann")
    await site_server.wait_for(1)
    await site_server.look()
    await site_server.site_store.remove("t0", force=False)
    with pytest.raises(Conflict, match="being removed"):
        await site_server.site_store.resume("t0")
    await site_server.site_store.put(SITE, who="ann")
    assert not (await site_server.site_store.resume("t0")).removed
