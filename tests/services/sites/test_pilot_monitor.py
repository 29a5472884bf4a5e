"""The pilot monitor: as many pilots as a site should have, and never a flood."""

import asyncio
import random

import pytest

from mendflow.core.model.errors import InvalidRequest, NotFound
from mendflow.core.model.jobs import Resources
from mendflow.core.model.sites import (
    HOUR_MS,
    BatchJobStatus,
    BatchSettings,
    PilotSettings,
    Site,
    SubmissionState,
    SubmitAccepted,
    SubmitRejected,
    SubmitResult,
    SubmitUncertain,
)
from mendflow.core.scheduling.provision import SETTLE_MS, JobGroup
from mendflow.services.base.cluster import ServerDocument
from mendflow.stores.memory import MemoryStore
from tests.services.sites.kit import LEASE_MS, T0, Batch, HandClock, SiteServer

SITE = Site(name="t0", max_pilots=5, submissions_per_hour=20, failures_max=3)


async def test_pilots_are_submitted_for_jobs_that_wait_and_no_more_than_may_be(
    site_server: SiteServer, batch: Batch
) -> None:
    # PJ-8
    await site_server.site_store.put(SITE, who="ann")
    await site_server.look()
    assert not batch.has, "nothing waits"
    await site_server.wait_for(3)
    await site_server.look()
    assert len(batch.has) == 3
    await site_server.wait_for(30)
    for _ in range(5):
        await site_server.look()
    document = await site_server.document()
    assert len(batch.has) == 5 and set(document.open) == set(batch.has)
    assert all([await site_server.monitor.has_submitted(name, batch.secrets[name]) for name in batch.has])
    assert {each.state for each in document.open.values()} == {SubmissionState.QUEUED}
    assert "at most 5" in document.reasons[-1]


async def test_some_are_kept_idle_and_some_are_there_whatever_waits(
    site_server: SiteServer, batch: Batch
) -> None:  # PJ-8
    await site_server.site_store.put(Site(name="t0", max_pilots=9, min_pilots=2, min_idle=1), who="ann")
    await site_server.look()
    assert len(batch.has) == 2
    for name in batch.has:
        site_server.heard(name)
    await site_server.told()
    await site_server.look()
    assert len(batch.has) == 2, "both are idle"
    purposes = {each.purpose for each in (await site_server.document()).open.values()}
    assert purposes == {"ready"}, "these must not leave because no job comes"


async def test_no_pilot_is_submitted_for_jobs_that_it_could_not_take(site_server: SiteServer, batch: Batch) -> None:
    await site_server.site_store.put(SITE, who="ann")
    await site_server.wait_for(2, site="t1")
    await site_server.wait_for(2, cpus=64.0)
    await site_server.look()
    assert not batch.has


async def test_what_waits_at_other_servers_counts(site_server: SiteServer, batch: Batch) -> None:
    await site_server.site_store.put(SITE, who="ann")
    other = ServerDocument(id="two", url="", demand=[JobGroup(Resources(), 2, SETTLE_MS)])
    site_server.membership.others = [other]
    await site_server.look()
    assert len(batch.has) == 2


async def test_a_pilot_that_comes_works_and_leaves_is_followed_by_its_name(
    site_server: SiteServer, batch: Batch
) -> None:
    await site_server.site_store.put(SITE, who="ann")
    await site_server.wait_for(1)
    await site_server.look()
    [name] = batch.has
    batch.has[name] = BatchJobStatus("running", "1")
    site_server.heard(name)
    await site_server.told()
    [working] = (await site_server.document()).open.values()
    assert working.state is SubmissionState.WORKING and working.pilot == f"p-{name}"
    site_server.heard(name, leaving=True)
    await site_server.told()
    await site_server.look()
    document = await site_server.document()
    assert [each.how for each in document.endings] == ["left"] and document.failures == 0


async def test_a_pilot_that_is_silent_for_a_lease_is_replaced_if_it_is_needed(
    site_server: SiteServer, batch: Batch
) -> None:
    await site_server.site_store.put(Site(name="t0", max_pilots=1, min_pilots=1), who="ann")
    await site_server.look()
    [name] = batch.has
    site_server.heard(name)
    await site_server.told()
    del batch.has[name]  # somebody took it away there
    for _ in range(LEASE_MS // 5_000):
        await site_server.look()
    assert not batch.has, "it may still be heard"
    for _ in range(LEASE_MS // 5_000 + 2):
        await site_server.look()
    assert len(batch.has) == 1 and name not in batch.has
    assert [each.how for each in (await site_server.document()).endings] == ["gone"]


async def test_pilots_that_cannot_work_pause_the_site_with_an_alert_that_says_why(
    site_server: SiteServer, batch: Batch
) -> None:  # PJ-2
    await site_server.site_store.put(SITE, who="ann")
    await site_server.wait_for(5)
    for _ in range(200):
        await site_server.look(after_ms=60_000)
        for name in list(batch.has):
            site_server.heard(name, unfit="there is no program singularity", leaving=True)
            del batch.has[name]
            await site_server.told()
    document = await site_server.document()
    assert document.paused is not None and "singularity" in document.paused.why
    assert len(batch.submitted_at) <= 5 + SITE.failures_max, "after the first failure one at a time is tried"
    [alert] = await site_server.alerts.list(every=False, limit=10)
    assert alert.kind == "site-paused" and "singularity" in alert.sentence and "resume t0" in alert.sentence
    await site_server.alerts.read()
    await site_server.monitor._alerts.look(await site_server.site_store.resume("t0"), site_server.clock.now())
    assert await site_server.alerts.list(every=False, limit=10) == []


async def test_a_site_that_a_person_paused_gets_no_pilots_and_no_alert(site_server: SiteServer, batch: Batch) -> None:
    await site_server.site_store.put(SITE, who="ann")
    await site_server.wait_for(2)
    await site_server.look()
    working, waiting = batch.has
    site_server.heard(working)
    await site_server.told()
    await site_server.site_store.pause("t0", who="ann", why="the roof leaks")
    await site_server.wait_for(9)
    for _ in range(3):
        await site_server.look(after_ms=SETTLE_MS)
        site_server.heard(working)
    assert batch.cancelled == [waiting] and list(batch.has) == [working]
    assert await site_server.alerts.list(every=True, limit=10) == []
    assert "the roof leaks" in (await site_server.document()).reasons[-1]


async def test_a_batch_system_that_is_away_gets_nothing_and_after_a_while_there_is_an_alert(
    site_server: SiteServer, batch: Batch
) -> None:  # PJ-8
    await site_server.site_store.put(SITE, who="ann")
    await site_server.wait_for(3)
    batch.away = "slurm_load_jobs error: Unable to contact slurm controller"
    for _ in range(150):
        await site_server.look()
    assert not batch.submitted_at
    [alert] = await site_server.alerts.list(every=False, limit=10)
    assert alert.kind == "site-away" and "Unable to contact" in alert.sentence
    batch.away = ""
    await site_server.look()
    assert len(batch.has) == 3 and await site_server.alerts.list(every=False, limit=10) == []


async def test_a_batch_system_that_forgets_what_it_took_costs_the_budget_and_no_more(
    site_server: SiteServer, batch: Batch
) -> None:  # PJ-8
    await site_server.site_store.put(SITE, who="ann")
    await site_server.wait_for(1_000)
    batch.answer = lambda name: SubmitAccepted("17")  # of which it knows nothing a moment later
    for _ in range(24):
        await site_server.look()
        await site_server.site_store.resume("t0")  # somebody who does not look why
        for _ in range(60):
            await site_server.look(after_ms=60_000)
    hours = (site_server.clock.now() - T0) / HOUR_MS
    assert len(batch.submitted_at) <= SITE.submissions_per_hour * (hours + 1)
    assert most_in_an_hour(batch) <= SITE.submissions_per_hour


async def test_a_batch_system_that_shows_no_jobs_for_a_while_is_not_flooded(
    site_server: SiteServer, batch: Batch
) -> None:
    await site_server.site_store.put(Site(name="t0", max_pilots=10, submissions_per_hour=15), who="ann")
    await site_server.wait_for(1_000)
    await site_server.look()
    took = batch.has
    batch.has = {}
    for _ in range(60):
        await site_server.look(after_ms=30_000)
    assert most_in_an_hour(batch) <= 15
    batch.has = {**took, **batch.has}
    await site_server.look()
    assert set(took) <= set((await site_server.document()).open), "they are there after all, and count"


@pytest.mark.parametrize("seed", range(15))
async def test_two_servers_and_a_batch_system_that_does_what_it_likes(  # PJ-8
    store: MemoryStore, clock: HandClock, batch: Batch, seed: int
) -> None:
    dice = random.Random(seed)
    servers = [SiteServer(store, clock, batch, id) for id in ("one", "two")]  # neither knows of the other
    for site_server in servers:
        site_server.ledger.start()
        await site_server.wait_for(500)
    await servers[0].site_store.put(SITE, who="ann")

    def some_answer(name: str) -> SubmitResult:
        if dice.random() < 0.5:
            batch.take(name)
        answers: list[SubmitResult] = [
            SubmitAccepted("1"),
            SubmitAccepted("1"),
            SubmitRejected("no"),
            SubmitUncertain("timed out"),
        ]
        return dice.choice(answers)

    batch.answer = some_answer
    for _ in range(120):
        clock.at += dice.choice([1_000, 5_000, 60_000, 300_000])
        batch.away = "away" if dice.random() < 0.2 else ""
        for name in list(batch.has):
            moved = dice.choice(["queued", "running", "ended", "forgotten", "heard"])
            if moved == "forgotten":
                del batch.has[name]
            elif moved == "heard":
                dice.choice(servers).heard(name)
            elif moved != "queued":
                batch.has[name] = BatchJobStatus("running" if moved == "running" else "ended", "1")
        if dice.random() < 0.1:
            await servers[0].site_store.resume("t0")
        await asyncio.gather(*(site_server.look(after_ms=0) for site_server in servers))
        await asyncio.gather(*(site_server.told() for site_server in servers))
    assert most_in_an_hour(batch) <= SITE.submissions_per_hour
    for site_server in servers:
        await site_server.monitor.stop()
        await site_server.ledger.stop()


async def test_of_two_servers_that_look_at_the_same_time_one_submits(
    store: MemoryStore, clock: HandClock, batch: Batch
) -> None:  # PJ-8
    servers = [SiteServer(store, clock, batch, id) for id in ("one", "two")]
    await servers[0].site_store.put(SITE, who="ann")
    for site_server in servers:
        site_server.ledger.start()
        await site_server.wait_for(5)
    for _ in range(4):
        await asyncio.gather(*(site_server.look() for site_server in servers))
        assert len(batch.submitted_at) == 5
    for site_server in servers:
        await site_server.ledger.stop()


async def test_of_servers_that_know_each_other_the_first_by_name_looks(site_server: SiteServer, batch: Batch) -> None:
    await site_server.site_store.put(SITE, who="ann")
    await site_server.wait_for(1)
    site_server.membership.others = [ServerDocument(id="a-server-before", url="")]
    await site_server.look()
    assert not batch.submitted_at
    await site_server.site_store.put(Site(name="t0", batch=BatchSettings(host="here")), who="ann")
    site_server.membership.others = [ServerDocument(id="a-server-before", url="", host="near")]
    await site_server.look()
    assert len(batch.submitted_at) == 1, "only this server could be there"


async def test_what_a_server_wrote_down_and_never_submitted_is_found_out(
    site_server: SiteServer, store: MemoryStore, clock: HandClock, batch: Batch
) -> None:  # PJ-8
    await site_server.site_store.put(SITE, who="ann")
    await site_server.wait_for(1)

    async def killed(*_: object) -> dict[str, object]:
        raise asyncio.CancelledError

    batch.submit = killed  # type: ignore[method-assign, assignment]  # as if the server ended just there
    await asyncio.gather(site_server.look(), return_exceptions=True)
    [planned] = (await site_server.document()).open.values()
    assert planned.state is SubmissionState.PLANNED
    del batch.submit  # the one of its class again
    next_one = SiteServer(store, clock, batch, "two")
    next_one.ledger.start()
    await next_one.wait_for(1)
    await next_one.look()
    assert not batch.has, "it may be on its way"
    for _ in range(40):
        await next_one.look()
    assert [each.how for each in (await next_one.document()).endings] == ["lost"]
    assert len(batch.has) == 1 and planned.name not in batch.has
    await next_one.ledger.stop()


async def test_a_batch_system_that_hangs_holds_up_no_other_site(
    site_server: SiteServer, store: MemoryStore, batch: Batch
) -> None:
    await site_server.site_store.put(Site(name="a", max_pilots=2), who="ann")
    await site_server.site_store.put(Site(name="b", max_pilots=2), who="ann")
    await site_server.wait_for(1, site="a")
    await site_server.wait_for(1, site="b")
    batch.hangs = asyncio.Event()
    await site_server.monitor.look()
    hanging = dict(site_server.monitor._looking)
    await asyncio.sleep(0)
    await site_server.monitor.look()
    assert site_server.monitor._looking["a"] is hanging["a"], "it is not asked again while it does not answer"
    batch.hangs.set()
    await site_server.monitor.wait_for_looks()
    assert len(batch.has) == 2


async def test_a_removed_site_goes_with_its_last_pilot(site_server: SiteServer, batch: Batch) -> None:
    await site_server.site_store.put(SITE, who="ann")
    await site_server.wait_for(2)
    await site_server.look()
    working, waiting = list(batch.has)
    site_server.heard(working)
    await site_server.told()
    await site_server.site_store.remove("t0", force=False)
    for _ in range(2):
        await site_server.look()
        site_server.heard(working)
        await site_server.told()
    assert batch.cancelled == [waiting] and (await site_server.document()).removed
    site_server.heard(working, leaving=True)
    await site_server.told()
    await site_server.look(after_ms=SITE.lost_ms)
    await site_server.look(after_ms=SITE.lost_ms)
    with pytest.raises(NotFound, match="mendflow admin sites"):
        await site_server.document()


async def test_a_removed_site_can_have_its_pilots_ended(site_server: SiteServer, batch: Batch) -> None:
    await site_server.site_store.put(SITE, who="ann")
    await site_server.wait_for(1)
    await site_server.look()
    [name] = batch.has
    site_server.heard(name)
    await site_server.told()
    await site_server.site_store.remove("t0", force=True)
    await site_server.look()
    assert batch.cancelled == [name]


async def test_a_site_whose_batch_system_never_answers_again_can_be_removed(
    site_server: SiteServer, batch: Batch
) -> None:
    await site_server.site_store.put(SITE, who="ann")
    await site_server.wait_for(1)
    await site_server.look()
    batch.away = "it was sold"
    await site_server.look()
    await site_server.site_store.remove("t0", force=False)
    await site_server.look()
    assert (await site_server.document()).open, "nobody knows what became of it"
    await site_server.site_store.remove("t0", force=True)
    await site_server.look()
    with pytest.raises(NotFound):
        await site_server.document()


async def test_settings_can_change_while_pilots_work(site_server: SiteServer, batch: Batch) -> None:
    await site_server.site_store.put(SITE, who="ann")
    await site_server.wait_for(1)
    await site_server.look()
    await site_server.site_store.put(Site(name="t0", max_pilots=1), who="bob")
    document = await site_server.document()
    assert len(document.open) == 1 and document.site.max_pilots == 1 and document.made_by == "ann"


@pytest.mark.parametrize(
    ("site", "match"),
    [
        (Site(name="no/slash"), "not a valid name for a site"),
        (Site(name="t0", max_pilots=2, min_pilots=3), "between 0 and max_pilots"),
        (Site(name="t0", submissions_per_hour=0), "at least 1"),
        (Site(name="t0", max_pilots=100_000), "at most 10000"),
        (Site(name="t0", batch=BatchSettings(kind="lsf")), "set `wall`"),
        (Site(name="t0", batch=BatchSettings(folder="pilots")), "absolute"),
        (Site(name="t0", batch=BatchSettings(options={"qos": "a\n#SBATCH -p b"})), "one line"),
        (Site(name="t0", pilots=PilotSettings(idle_exit_ms=-1)), "may be negative"),
    ],
)
async def test_settings_that_nobody_can_mean_are_refused(site_server: SiteServer, site: Site, match: str) -> None:
    with pytest.raises(InvalidRequest, match=match):
        await site_server.site_store.put(site, who="ann")


def most_in_an_hour(batch: Batch) -> int:
    at = batch.submitted_at
    return max((sum(one <= other < one + HOUR_MS for other in at) for one in at), default=0)


async def test_many_pilots_that_come_at_once_cost_few_writes(site_server: SiteServer, batch: Batch) -> None:
    await site_server.site_store.put(Site(name="t0", max_pilots=40, submissions_per_hour=100), who="ann")
    await site_server.wait_for(40)
    await site_server.look()
    before = (await site_server.site_store.get("t0")).version
    for name in batch.has:
        site_server.heard(name)
    await site_server.told()
    known = await site_server.site_store.get("t0")
    assert known.version - before <= 2
    assert {each.state for each in known.document.open.values()} == {SubmissionState.WORKING}
