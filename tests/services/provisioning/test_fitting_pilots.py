"""What a site's pilots could take, which of them are too many, and what is told of that."""

import pytest

from mendflow.core.model.ids import PilotId
from mendflow.core.model.jobs import Resources
from mendflow.core.model.problems import Conflict
from mendflow.core.model.sites import HOUR_MS, BatchSettings, Found, PilotSettings, Site
from mendflow.core.scheduling import submissions
from mendflow.services.base.cluster import ServerDocument
from mendflow.services.scheduling.sites.pilot_monitor import About
from tests.services.provisioning.kit import Batch, Server

SITE = Site(name="t0", max_pilots=5, submissions_per_hour=20, failures_max=3)


@pytest.mark.parametrize("told", [True, False], ids=["written as it is said", "seen by the next look"])
async def test_a_job_that_is_too_large_for_the_pilots_that_came_brings_no_more(
    server: Server, batch: Batch, told: bool
) -> None:  # PJ-8
    await server.book.put(SITE, who="ann")
    await server.wait_for(2, memory_bytes=900)
    await server.look()
    assert len(batch.has) == 2, "nobody knows yet what its pilots have"
    names = list(batch.has)
    for name in names:
        server.heard(name, memory=25)
        if not told:
            server.monitor._said.clear()  # as if the store had been away
    await server.told()
    await server.look()
    for name in names:
        server.heard(name, leaving=True)
        del batch.has[name]
    await server.told()
    for _ in range(100):
        await server.look()
    document = await server.document()
    assert len(document.spent) == 2 and not batch.has
    assert document.reasons[-1].startswith("2 jobs wait that no pilot of it could take: it asks for 900 B of memory")
    [why] = server.monitor.about(Resources(memory_bytes=900)).cannot
    assert why.startswith("site t0 has no pilots that could take it: it asks for 900 B of memory")
    await server.wait_for(1)
    await server.look()
    assert len(batch.has) == 1, "those that it has pilots for are served"


@pytest.mark.parametrize("how", ["a day later", "resumed", "other settings"])
async def test_what_pilots_had_is_forgotten_some_day_or_when_somebody_looks_after_the_site(
    server: Server, batch: Batch, how: str
) -> None:
    await server.book.put(SITE, who="ann")
    await server.wait_for(1, memory_bytes=900)
    await server.look()
    [name] = batch.has
    server.heard(name, memory=25)
    server.heard(name, leaving=True)
    await server.told()
    batch.has.clear()
    await server.look(after_ms=HOUR_MS)
    assert not batch.has
    if how == "a day later":
        server.clock.at += 24 * HOUR_MS
    elif how == "resumed":
        await server.book.resume("t0")
    else:
        await server.book.put(SITE, who="ann")
    await server.look()
    await server.look()
    assert len(batch.has) == 1


async def test_a_job_that_waits_can_be_told_what_sites_do_about_it(server: Server) -> None:
    assert server.monitor.about(Resources()) == About([], [])
    await server.book.put(SITE, who="ann")
    await server.wait_for(1)
    await server.look()
    await server.look()
    [told] = server.monitor.about(Resources()).helps
    assert told.startswith("site t0: 1 pilot is coming, 0 are idle and 0 busy; ")
    lacks = "site t0 has no pilots that could take it: it asks for 8 gpus, and its pilots get 0 gpus"
    assert server.monitor.about(Resources(gpus=8)) == About([], [lacks])
    assert server.monitor.about(Resources(site="t1")) == About([], []), "another site's job is none of its business"
    await server.book.pause("t0", who="ann", why="the roof leaks")
    await server.look()
    await server.look()
    assert "the site is paused: the roof leaks" in server.monitor.about(Resources()).helps[0]
    assert "1 job waits that no pilot is coming for" in (await server.document()).reasons


async def test_nobody_speaks_for_the_server_of_another_machine(server: Server, batch: Batch) -> None:
    await server.book.put(Site(name="t0", min_pilots=1, batch=BatchSettings(host="far")), who="ann")
    server.membership.others = [ServerDocument(id="zoe", url="", host="near")]
    await server.look()
    assert not batch.submitted_at
    assert "no server is on far" in server.monitor.nobody_acts(await server.document())
    server.membership.others = [ServerDocument(id="zoe", url="", host="far")]
    assert not server.monitor.nobody_acts(await server.document())


async def test_the_alert_of_a_paused_site_goes_with_the_site(server: Server, batch: Batch) -> None:
    await server.book.put(SITE, who="ann")
    await server.wait_for(1)
    for _ in range(50):
        await server.look(after_ms=60_000)
        for name in list(batch.has):
            server.heard(name, unfit="there is no program singularity", leaving=True)
            del batch.has[name]
            await server.told()
    assert server.alerts.open
    await server.book.put(Site(name="t0", min_pilots=1), who="ann")
    await server.book.change("t0", lambda it: submissions.reserve(submissions.resume(it), ["jobs"], now=1, by="x")[0])
    await server.book.pause("t0", who="", why="again")
    await server.look()
    assert server.alerts.open
    await server.book.remove("t0", force=True)
    for _ in range(20):
        await server.look()
    assert not server.alerts.open and await server.book.find("t0") is None


async def test_pilots_beyond_what_a_site_should_have_are_taken_back_or_leave_when_they_are_idle(
    server: Server, batch: Batch
) -> None:  # PJ-8
    await server.book.put(Site(name="t0", min_pilots=4, max_pilots=4), who="ann")
    await server.look()
    first, second, *queued = batch.has
    for name in (first, second):
        batch.has[name] = Found("running", "1")
        server.heard(name)
    await server.told()
    await server.look()
    assert not server.monitor.idle_exit_ms(first), "it is to be ready"
    changed = Site(name="t0", min_pilots=1, max_pilots=2, pilots=PilotSettings(idle_exit_ms=20_000))
    await server.book.put(changed, who="ann")
    await server.look()
    await server.look()
    assert sorted(batch.cancelled) == sorted(queued)
    stay = [server.monitor.idle_exit_ms(name) for name in (first, second)]
    assert stay == [0, 20_000], "one is to be ready, the other is there for jobs"
    await server.book.remove("t0", force=False)
    await server.look()
    assert server.monitor.idle_exit_ms(first) == server.monitor.idle_exit_ms(second) == 1_000


async def test_a_ready_pilot_that_works_is_no_surplus(server: Server, batch: Batch) -> None:
    await server.book.put(Site(name="t0", max_pilots=4, min_idle=1), who="ann")
    await server.look()
    [first] = batch.has
    server.heard(first)
    await server.told()
    server.meta.pilots[PilotId(f"p-{first}")].attempts = 1
    await server.look()
    [second] = batch.has.keys() - {first}
    server.heard(second)
    await server.told()
    await server.look()
    await server.look()
    assert not any(server.monitor.idle_exit_ms(name) for name in (first, second))
    server.meta.pilots[PilotId(f"p-{first}")].attempts = 0
    await server.look()
    await server.look()
    assert sum(bool(server.monitor.idle_exit_ms(name)) for name in (first, second)) == 1


async def test_a_pilot_that_waits_in_the_batch_system_is_on_its_way_to_a_job(server: Server, batch: Batch) -> None:
    await server.book.put(SITE, who="ann")
    await server.wait_for(1)
    assert not server.monitor.on_the_way(Resources())
    await server.look()
    await server.look()
    assert server.monitor.on_the_way(Resources()) and not server.monitor.on_the_way(Resources(gpus=1))
    await server.book.pause("t0", who="ann", why="the roof leaks")
    await server.look()
    await server.look()
    assert not server.monitor.on_the_way(Resources()), "it was taken back"


async def test_a_site_that_is_being_removed_cannot_be_resumed_only_added_again(server: Server, batch: Batch) -> None:
    await server.book.put(SITE, who="ann")
    await server.wait_for(1)
    await server.look()
    await server.book.remove("t0", force=False)
    with pytest.raises(Conflict, match="being removed"):
        await server.book.resume("t0")
    await server.book.put(SITE, who="ann")
    assert not (await server.book.resume("t0")).removed
