"""Which domain does a piece of work best, and why. FM-4"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.domains.routing import STALE_MS, DomainOffer, RoutingDecision, WorkNeeds, route
from mendflow.core.model.domains import DomainReport
from mendflow.core.model.jobs import Resources
from mendflow.core.model.sync import Capacity

GB = 10**9
SMALL = Capacity(slots=1, cpus=4.0, memory_bytes=8 * GB, disk_bytes=100 * GB, system="linux", machine="x86_64")
LARGE = Capacity(slots=1, cpus=64.0, memory_bytes=256 * GB, disk_bytes=1000 * GB, system="linux", machine="x86_64")
GPU = Capacity(slots=1, cpus=8.0, memory_bytes=32 * GB, disk_bytes=100 * GB, gpus=2)


def report(free: int = 4, slots: int = 4, waiting: int = 0, **more: object) -> DomainReport:
    given = {"largest": SMALL, **more}
    return DomainReport(slots=slots, slots_free=free, waiting=waiting, **given)  # type: ignore[arg-type]  # own fields


def offer(name: str, told: DomainReport | None = None, **more: object) -> DomainOffer:
    return DomainOffer(name=name, report=told or report(), latency_ms=5, **more)  # type: ignore[arg-type]  # own fields


HERE, FULL_HERE = offer("home"), offer("home", report(free=0, waiting=40))


def reason_of(decision: RoutingDecision, domain: str) -> str:
    return next(row.reason for row in decision.rows if row.domain == domain)


def test_what_can_begin_here_at_once_stays_here() -> None:
    decision = route(WorkNeeds(), HERE, [offer("south"), offer("west")])
    assert decision.domain == ""
    assert decision.reason == "home: 4 of 4 slots are free"
    assert [row.domain for row in decision.rows] == ["home", "south", "west"]


def test_it_goes_where_a_slot_is_free() -> None:
    decision = route(WorkNeeds(), FULL_HERE, [offer("south")])
    assert decision.domain == "south"
    assert "40 jobs wait for 4 slots" in reason_of(decision, "home")


def test_it_goes_to_nobody_whose_pilots_are_too_small() -> None:
    large = WorkNeeds(resources=Resources(cpus=32))
    decision = route(large, FULL_HERE, [offer("south"), offer("west", report(largest=LARGE))])
    assert decision.domain == "west"
    assert reason_of(decision, "south") == "none of its pilots has 32 cpus"


def test_one_pilot_must_have_all_of_it() -> None:
    needs = WorkNeeds(resources=Resources(cpus=16, gpus=1))
    decision = route(needs, FULL_HERE, [offer("south", report(shapes=(LARGE, GPU)))])
    assert decision.domain == ""
    assert reason_of(decision, "south") == "none of its pilots has all of it"


@pytest.mark.parametrize(
    ("needs", "why"),
    [
        (Resources(system="windows"), "none of its pilots runs windows"),
        (Resources(machine="arm64"), "none of its pilots is a machine of the kind arm64"),
        (Resources(memory_bytes=9 * GB), "of memory"),
        (Resources(disk_bytes=101 * GB), "of disk"),
        (Resources(gpus=1), "1 gpus"),
        (Resources(site="hall-b"), "it is bound to hall-b, which is a place of this domain"),
        (Resources(hosts=("n1", "n2")), "it is bound to n1, n2"),
    ],
)
def test_each_reason_against_a_domain_is_said(needs: Resources, why: str) -> None:
    decision = route(WorkNeeds(resources=needs), HERE, [offer("south")])
    assert decision.domain == ""
    assert why in reason_of(decision, "south")


def test_a_domain_without_pilots_can_do_nothing() -> None:
    decision = route(WorkNeeds(), offer("home", DomainReport()), [offer("south", DomainReport())])
    assert decision.domain == ""
    assert decision.reason == "no domain can do it now, so it waits in home"
    assert {row.reason for row in decision.rows} == {"it has no pilots"}


def test_it_never_goes_back_on_its_way_nor_to_who_refused_it() -> None:
    needs = WorkNeeds(way=("south",), refused={"west": "no flows of others"})
    decision = route(needs, FULL_HERE, [offer("south"), offer("west")])
    assert decision.domain == ""
    assert reason_of(decision, "south") == "it came from there"
    assert reason_of(decision, "west") == "it was refused there: no flows of others"


def test_old_reports_rank_last() -> None:
    old = offer("south", report(free=100, slots=100), age_ms=STALE_MS + 1)
    busy = offer("west", report(free=0, waiting=4))
    decision = route(WorkNeeds(), FULL_HERE, [old, busy])
    assert decision.domain == "west"
    assert [row.domain for row in decision.rows] == ["west", "home", "south"]
    assert "old" in reason_of(decision, "south")


def test_who_has_lost_it_before_comes_after_the_others() -> None:
    decision = route(WorkNeeds(lost=frozenset({"south"})), FULL_HERE, [offer("south"), offer("west")])
    assert decision.domain == "west"
    assert "it was lost there before" in reason_of(decision, "south")


def test_it_goes_to_its_data() -> None:
    needs = WorkNeeds(logical={"/store/raw/a": 500 * GB})
    there = offer("west", report(logical_files=("/store/raw/a",)))
    decision = route(needs, FULL_HERE, [offer("south"), there])
    assert decision.domain == "west"
    assert "its data is there" in decision.reason
    assert "would go there" in reason_of(decision, "south")


def test_of_those_that_are_as_fast_the_cheapest_is_taken() -> None:
    decision = route(WorkNeeds(), FULL_HERE, [offer("south", report(charge=2.0)), offer("west", report(charge=1.0))])
    assert decision.domain == "west"
    faster = route(
        WorkNeeds(), FULL_HERE, [offer("south", report(charge=9.0)), offer("west", report(free=0, waiting=30))]
    )
    assert faster.domain == "south"


def test_a_flow_goes_to_who_offers_it() -> None:
    decision = route(WorkNeeds(flow="night"), HERE, [offer("south"), offer("west", report(flows=("night",)))])
    assert decision.domain == "west"
    assert reason_of(decision, "home") == "it offers no flow night"


@pytest.mark.parametrize("told", [report(draining=True), None])
def test_who_takes_nothing_now_gets_nothing(told: DomainReport | None) -> None:
    closed = DomainOffer(name="south", report=told) if told is None else offer("south", told)
    assert route(WorkNeeds(), FULL_HERE, [closed]).domain == ""
    refusing = offer("south", closed="it does not take our requests")
    assert reason_of(route(WorkNeeds(), FULL_HERE, [refusing]), "south") == "it does not take our requests"


REPORTS = st.builds(
    report,
    free=st.integers(0, 8),
    slots=st.just(8),
    waiting=st.integers(0, 50),
    charge=st.sampled_from([0.0, 1.0, 3.0]),
    wait_ms=st.integers(0, 100_000),
    largest=st.sampled_from([SMALL, LARGE, None]),
    draining=st.booleans(),
)
OFFERS = st.lists(
    st.builds(
        offer,
        st.sampled_from(["a", "b", "c", "d"]),
        REPORTS,
        age_ms=st.sampled_from([0, STALE_MS * 2]),
        closed=st.sampled_from(["", "closed"]),
    ),
    unique_by=lambda each: each.name,
)
NEEDS = st.builds(
    WorkNeeds,
    resources=st.sampled_from([Resources(), Resources(cpus=16)]),
    way=st.sampled_from([(), ("a",)]),
    refused=st.sampled_from([{}, {"b": "no"}]),
    lost=st.sampled_from([frozenset(), frozenset({"c"})]),
)


@given(NEEDS, st.builds(offer, st.just("home"), REPORTS), OFFERS)
def test_every_domain_has_its_row_and_the_order_of_offers_does_not_matter(
    needs: WorkNeeds, here: DomainOffer, others: list[DomainOffer]
) -> None:
    decision = route(needs, here, others)
    assert {row.domain for row in decision.rows} == {"home", *(each.name for each in others)}
    assert all(row.reason for row in decision.rows)
    assert decision == route(needs, here, list(reversed(others)))
    chosen = decision.domain or "home"
    assert chosen not in needs.way and chosen not in needs.refused
    by_name = {row.domain: row for row in decision.rows}
    if any(row.fits for row in decision.rows):
        assert by_name[chosen].fits
        if by_name[chosen].is_stale:
            assert not any(row.fits and not row.is_stale for row in decision.rows)
    else:
        assert decision.domain == ""
