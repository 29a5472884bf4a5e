"""The pilot monitor's calculation: how many pilots a site should have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.model.jobs import Resources
from mendflow.core.model.sites import BatchSettings, PilotOffer, PilotSettings, Site
from mendflow.core.model.sync import Capacity
from mendflow.core.scheduling.provision import SETTLE_MS, JobGroup, SitePilots, plan
from mendflow.core.scheduling.site_fit import missing_for

ANY = Resources()
LONG = SETTLE_MS


def site(*, least: int = 0, most: int = 10, idle: int = 0, slots: int = 1, name: str = "t0") -> Site:
    return Site(name=name, min_pilots=least, max_pilots=most, min_idle=idle, pilots=PilotSettings(slots=slots))


def waiting(jobs: int, waited_ms: int = LONG) -> list[JobGroup]:
    return [JobGroup(ANY, jobs, waited_ms)]


@pytest.mark.parametrize(  # PJ-8: the steps of the paper's algorithm, one after the other
    ("thresholds", "standing", "jobs", "sent"),
    [
        (site(most=10), SitePilots(inactive=4, busy=6), 50, 0),  # 3, 4: no slots are available
        (site(most=10), SitePilots(inactive=4), 3, 0),  # 7, 8: inactive pilots are enough for the jobs
        (site(most=10), SitePilots(inactive=4), 4, 0),
        (site(most=10), SitePilots(), 3, 3),  # 9, 10: more pilots for them
        (site(most=10), SitePilots(inactive=2), 5, 3),
        (site(most=10), SitePilots(busy=8), 5, 2),  # ... as far as there is room
        (site(idle=2), SitePilots(busy=3), 0, 2),  # 11, 12: too few are idle
        (site(idle=2), SitePilots(idle=1, busy=3), 0, 1),
        (site(idle=2), SitePilots(idle=2), 0, 0),
        (site(least=5), SitePilots(busy=2), 0, 3),  # 13, 14: too few are there
        (site(least=5), SitePilots(inactive=5), 0, 0),
        (site(most=6, least=5, idle=4), SitePilots(busy=4), 9, 2),  # all of them, and never too many
    ],
)
def test_as_many_pilots_are_sent_as_the_algorithm_says(
    thresholds: Site, standing: SitePilots, jobs: int, sent: int
) -> None:
    assert plan(thresholds, standing, waiting(jobs) if jobs else []).pilots == sent


def test_an_inactive_pilot_covers_jobs_once() -> None:
    groups = [JobGroup(Resources(cpus=1), 3, LONG), JobGroup(Resources(cpus=0.5), 3, LONG)]
    assert plan(site(), SitePilots(inactive=4), groups).for_jobs == 2


def test_a_pilot_with_several_slots_covers_as_many_jobs() -> None:
    assert plan(site(slots=4), SitePilots(), waiting(9)).for_jobs == 3
    assert plan(site(slots=4), SitePilots(inactive=2), waiting(9)).for_jobs == 1


def test_the_slots_that_one_group_leaves_are_for_the_next() -> None:
    groups = [JobGroup(Resources(cpus=1), 1, LONG), JobGroup(Resources(cpus=0.5), 3, LONG)]
    assert plan(site(slots=4), SitePilots(), groups).for_jobs == 1


def test_a_pilot_that_is_coming_for_jobs_will_not_be_idle() -> None:
    assert plan(site(idle=1), SitePilots(inactive=2), waiting(2)).ready == 1
    assert plan(site(idle=1), SitePilots(inactive=3), waiting(2)).ready == 0


def test_a_free_slot_covers_a_job_that_has_just_come_and_none_that_it_has_passed_over() -> None:
    idle = SitePilots(idle=3, free_slots=3)
    assert plan(site(), idle, waiting(3, waited_ms=0)).pilots == 0
    assert plan(site(), idle, waiting(3)).pilots == 3


def test_a_job_that_any_site_may_run_is_covered_once() -> None:
    first = plan(site(name="a", most=2), SitePilots(), waiting(5))
    second = plan(site(name="b"), SitePilots(), first.uncovered)
    assert (first.pilots, second.pilots, second.uncovered) == (2, 3, ())


def test_a_site_that_may_get_no_pilots_leaves_the_jobs_to_others_but_for_those_that_pilots_are_coming_for() -> None:
    held = plan(site(), SitePilots(inactive=2), waiting(5), most=0)
    assert held.pilots == 0 and [group.jobs for group in held.uncovered] == [3]


@pytest.mark.parametrize(
    ("needs", "fits"),
    [
        (Resources(site="t0"), True),
        (Resources(site="t1"), False),
        (Resources(cpus=2), True),
        (Resources(cpus=4), False),
        (Resources(memory_bytes=2 << 30), True),
        (Resources(memory_bytes=3 << 30), False),
        (Resources(gpus=1), False),
        (Resources(wall_ms=3_540_000), True),
        (Resources(wall_ms=3_540_001), False),  # its pilots leave a minute before they would be killed
        (Resources(disk_bytes=1 << 50), True),  # of which the site says nothing
    ],
)
def test_no_pilot_is_sent_for_a_job_that_it_could_not_take(needs: Resources, fits: bool) -> None:
    small = Site(
        name="t0",
        batch=BatchSettings(wall_ms=3_600_000),
        pilots=PilotSettings(cpus=2, memory_bytes=2 << 30),
    )
    assert (not missing_for(small, needs)) is fits
    assert bool(plan(small, SitePilots(), [JobGroup(needs, 1, LONG)]).pilots) is fits


def test_the_plan_says_why() -> None:
    reasons = " ".join(plan(site(least=3, idle=1), SitePilots(busy=1), waiting(1)).reasons)
    assert "1 job waits" in reasons and "min_idle" in reasons
    assert "at most 2" in plan(site(most=2), SitePilots(busy=2), waiting(1)).reasons[-1]
    assert plan(site(), SitePilots(), []).reasons == ("its pilots are enough for all waiting jobs",)


def test_what_may_not_be_sent_now_is_told_as_waiting_all_the_same() -> None:
    assert plan(site(), SitePilots(), waiting(2), most=0).reasons == ("2 jobs wait without a submitted pilot",)
    assert "enough for all" in plan(site(), SitePilots(inactive=2), waiting(2), most=0).reasons[0]
    few = plan(site(least=3, idle=1), SitePilots(busy=1), [], most=0).reasons
    assert few == ("0 pilots are or will be idle; min_idle is 1", "1 pilots exist or are submitted; min_pilots is 3")


def offered(*, memory: int = 8 << 30, disk: int = 1 << 40, ttl_ms: int = 0, host: str = "node") -> PilotOffer:
    has = Capacity(slots=1, cpus=1.0, memory_bytes=memory, disk_bytes=disk)
    return PilotOffer(at=1, capacity=has, ttl_ms=ttl_ms, host=host)


@pytest.mark.parametrize(
    ("needs", "lacks"),
    [
        (Resources(memory_bytes=8 << 30), ""),
        (Resources(memory_bytes=900 << 30), "it asks for 900 GiB of memory, and the largest of the last 2 pilots had"),
        (Resources(disk_bytes=2 << 40), "it asks for 2 TiB of disk"),
        (Resources(wall_ms=50_001), "it asks for 50 s of time"),
        (Resources(wall_ms=50_000), ""),
        (Resources(memory_bytes=8 << 30, disk_bytes=1 << 40), "none of the last 2 pilots that came had all"),
        (Resources(avoid_hosts=("node",)), "it avoids node"),
        (Resources(avoid_hosts=("elsewhere",)), ""),
    ],
)
def test_jobs_that_no_pilot_could_take_that_came_bring_no_more(needs: Resources, lacks: str) -> None:
    came = [offered(disk=1 << 30, ttl_ms=50_000), offered(memory=1 << 30, ttl_ms=40_000)]
    assert lacks in missing_for(site(), needs, came) and bool(missing_for(site(), needs, came)) is bool(lacks)
    assert not missing_for(site(), needs), "before one has come nobody knows"
    decided = plan(site(), SitePilots(), [JobGroup(needs, 3, LONG)], offered=came)
    assert bool(decided.pilots) is not bool(lacks) and lacks in decided.reasons[0]
    assert len(decided.uncovered) == bool(lacks), "another site may have larger ones"


def test_a_batch_system_may_send_the_next_pilot_to_another_host() -> None:
    cluster = Site(name="t0", batch=BatchSettings(kind="slurm"))
    assert not missing_for(cluster, Resources(avoid_hosts=("node",)), [offered()])


counts = st.integers(0, 30)
groups = st.lists(st.builds(JobGroup, st.just(ANY), st.integers(1, 40), st.sampled_from([0, LONG])), max_size=5)


@given(least=counts, most=counts, idle=counts, slots=st.integers(1, 8), numbers=st.tuples(*[counts] * 4), jobs=groups)
def test_the_thresholds_hold_whatever_waits(
    least: int, most: int, idle: int, slots: int, numbers: tuple[int, ...], jobs: list[JobGroup]
) -> None:  # PJ-8
    inactive, idling, busy, free = numbers
    standing = SitePilots(inactive=inactive, idle=idling, busy=busy, free_slots=free)
    thresholds = site(least=least, most=most, idle=idle, slots=slots)
    made = plan(thresholds, standing, jobs)
    after = standing.submitted + made.pilots
    assert made.for_jobs >= 0 and made.ready >= 0
    assert after <= max(most, standing.submitted)
    assert after >= min(least, most) or standing.submitted > most
    if after < most:
        assert not made.uncovered, "there is room, and jobs that nobody comes for"
        assert idling + inactive + made.pilots >= idle
    if not jobs and standing.submitted >= least and idling >= idle:
        assert made.pilots == 0, "nobody needs these"
    covered = sum(group.jobs for group in jobs) - sum(group.jobs for group in made.uncovered)
    assert covered <= (inactive + made.for_jobs) * slots + free


@given(jobs=groups, numbers=st.tuples(*[counts] * 4), most=counts)
def test_what_was_sent_need_not_be_sent_again(jobs: list[JobGroup], numbers: tuple[int, ...], most: int) -> None:
    inactive, idle, busy, free = numbers
    before = SitePilots(inactive=inactive, idle=idle, busy=busy, free_slots=free)
    first = plan(site(most=most, idle=2, least=3), before, jobs)
    after = SitePilots(inactive=inactive + first.pilots, idle=idle, busy=busy, free_slots=free)
    assert plan(site(most=most, idle=2, least=3), after, jobs).pilots == 0
