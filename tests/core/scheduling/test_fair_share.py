"""Fair share: what counts, for how long, and whose jobs a pilot gets."""

from collections import Counter

import pytest

from mendflow.core.model.ids import JobId, PilotId
from mendflow.core.model.jobs import Resources
from mendflow.core.model.projects import ProjectSettings
from mendflow.core.model.sync import Capacity
from mendflow.core.scheduling.fair_share import DecayingUsage, FairShares, ShareOrder, UsageTable, entitled
from mendflow.core.scheduling.offer import Offer
from mendflow.core.scheduling.queue import JobQueue

HOUR = 3_600_000


def order_of(shares: FairShares, accounts: list[str], now: int = 0) -> list[str]:
    order, found = ShareOrder(shares, accounts, now), list[str]()
    while (account := order.first()) is not None:
        found.append(account)
        order.drop()
    return found


def test_usage_halves_after_each_half_life() -> None:  # SE-6
    usage = DecayingUsage(1000.0, at=0)
    assert usage.value(HOUR, HOUR) == pytest.approx(500)
    assert usage.value(3 * HOUR, HOUR) == pytest.approx(125)


def test_what_is_in_use_grows_to_a_bound() -> None:  # SE-6
    """Used for ever, a CPU counts as if it had run for the half-life divided by the logarithm of 2."""
    usage = DecayingUsage()
    usage.change(2, 0, HOUR)
    assert usage.value(1000, HOUR) == pytest.approx(2000, rel=1e-3), "a second of two CPUs"
    assert usage.value(100 * HOUR, HOUR) == pytest.approx(2 * HOUR / 0.6931, rel=1e-3)


def test_counting_in_steps_is_counting_at_once() -> None:  # SE-6
    once, steps = DecayingUsage(), DecayingUsage()
    once.change(3, 0, HOUR)
    steps.change(3, 0, HOUR)
    for now in range(0, HOUR, 60_000):
        steps.change(0, now, HOUR)
    assert steps.value(HOUR, HOUR) == pytest.approx(once.value(HOUR, HOUR))


def test_who_has_used_less_for_its_weight_goes_first() -> None:  # SE-6
    shares = FairShares(HOUR)
    shares.use_settings({"a": ProjectSettings(weight=3), "idle": ProjectSettings(weight=0)}, HOUR)
    shares.use("a", "ann", 2, 0)
    shares.use("b", "bob", 1, 0)
    assert order_of(shares, ["idle", "b", "a", "new"], HOUR) == ["new", "a", "b", "idle"]


def test_users_of_a_project_share_only_where_that_is_set() -> None:  # SE-6
    shares = FairShares(HOUR)
    assert shares.account("a", "ann") == shares.account("a", "bob") == "a"
    settings = ProjectSettings(share_users=True, user_weights={"ann": 4})
    assert shares.use_settings({"a": settings}, HOUR) == {"a"}
    ann, bob, eve = (shares.account("a", who) for who in ("ann", "bob", "eve"))
    shares.use("a", "ann", 2, 0)
    shares.use("a", "bob", 1, 0)
    assert order_of(shares, [bob, ann, eve], HOUR) == [eve, ann, bob]
    assert shares.use_settings({}, HOUR) == {"a"}


def test_what_other_servers_say_counts_too() -> None:  # SE-6
    shares = FairShares(HOUR)
    shares.use("a", "ann", 1, 0)
    shares.others.add("b", "bob", DecayingUsage(0.0, 0, 2), HOUR, HOUR)
    assert order_of(shares, ["a", "b"], HOUR) == ["a", "b"]
    assert shares.project_usage("b", HOUR).cpus == 2
    assert shares.projects() == {"a", "b"} and shares.users("b") == ["bob"]


def test_whoever_is_idle_and_has_nothing_left_is_forgotten() -> None:  # SE-6
    table, later = UsageTable(), 40 * HOUR
    for project, user in (("a", "ann"), ("a", "bob"), ("b", "bob")):
        table.change(project, user, 0.1, 0, HOUR)
        table.change(project, user, 0.2, 0, HOUR)
    for project, user in (("a", "bob"), ("b", "bob")):
        table.change(project, user, -0.3, HOUR, HOUR)  # of which a little is left, as of all fractions
    table.forget(HOUR, HOUR)
    assert set(table.users["a"]) == {"ann", "bob"}, "what was used counts"
    table.forget(later, HOUR)
    assert {name: set(users) for name, users in table.users.items()} == {"a": {"ann"}}
    assert set(table.totals) == {"a"}
    assert table.totals["a"].value(later, HOUR) == pytest.approx(table.users["a"]["ann"].value(later, HOUR))


def test_weights_say_what_one_is_entitled_to() -> None:  # SE-6
    assert entitled({"a": 3.0, "b": 1.0}) == {"a": 0.75, "b": 0.25}
    assert entitled({"a": 0.0}) == {"a": 0.0}


# In the queue


def filled(queue: JobQueue, jobs: int, accounts: tuple[str, ...] = ("a", "b"), cpus: float = 1.0) -> None:
    for account in accounts:
        for number in range(jobs):
            queue.add(JobId(f"{account}-{number}"), Resources(cpus=cpus), 0, number, account=account)


def offer(cpus: float, free: float | None = None) -> Offer:
    whole = Capacity(slots=int(cpus), cpus=cpus, memory_bytes=1 << 30, disk_bytes=1 << 30)
    left = cpus if free is None else free
    return Offer(cpus=left, memory_bytes=1 << 30, disk_bytes=1 << 30, pilot=PilotId("p"), whole=whole)


def projects(taken: list[JobId]) -> Counter[str]:
    return Counter(id.partition("-")[0] for id in taken)


def test_free_slots_are_divided_by_the_weights_at_once() -> None:  # SE-6
    queue = JobQueue()
    queue.shares.use_settings({"a": ProjectSettings(weight=3)}, HOUR)
    filled(queue, 100)
    assert projects(queue.take(offer(16), 16, 0)) == {"a": 12, "b": 4}
    assert queue.take(offer(16), 1, 0) == [JobId("a-12")], "in the order of the queue among those of one project"


def test_a_priority_is_one_among_those_of_the_own_project() -> None:  # SE-6
    queue = JobQueue()
    queue.shares.use("a", "ann", 1, 0)
    queue.add(JobId("a-high"), Resources(), 1000, 0, account="a")
    queue.add(JobId("b-low"), Resources(), -1000, 0, account="b")
    assert queue.take(offer(1), 1, HOUR) == [JobId("b-low")]


def test_what_one_leaves_the_next_gets() -> None:  # SE-6
    queue = JobQueue()
    filled(queue, 2)
    queue.add(JobId("c-0"), Resources(cpus=99), 0, 0, account="c")
    assert projects(queue.take(offer(16), 16, 0)) == {"a": 2, "b": 2}
    assert JobId("c-0") in queue and len(queue) == 1


def test_a_large_job_of_a_project_whose_turn_it_is_gets_a_pilot_in_the_end() -> None:  # SE-6
    queue = JobQueue(patience_ms=1000)
    filled(queue, 50, ("b",))
    queue.shares.use("b", "bob", 1, 0)
    queue.add(JobId("a-large"), Resources(cpus=4), 0, 0, account="a")
    assert projects(queue.take(offer(4, free=1), 1, 500)) == {"b": 1}, "it is passed over for a while"
    assert queue.take(offer(4, free=1), 1, 2000) == [], "and then the pilot is reserved for it"
    assert queue.reserved_for(PilotId("p")) == "a-large"
    assert queue.take(offer(4, free=3), 1, 2001) == []
    assert queue.take(offer(4), 4, 2002)[0] == JobId("a-large")


def test_who_goes_first_is_known() -> None:  # SE-6
    queue = JobQueue()
    filled(queue, 3)
    queue.shares.use("a", "ann", 1, 0)
    assert queue.accounts_first(JobId("a-1"), HOUR) == {"b"} and queue.jobs_ahead(JobId("a-1"), HOUR) == 4
    assert queue.accounts_first(JobId("b-1"), HOUR) == set() and queue.jobs_ahead(JobId("b-1"), HOUR) == 1
