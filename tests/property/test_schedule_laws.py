"""Due times and decisions about them, whatever the expression, the zone and the clock: none is skipped, none comes
twice."""

from datetime import datetime
from itertools import islice, pairwise, takewhile
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.model.flow_triggers import Overlap
from mendflow.core.model.ids import CaseId
from mendflow.core.model.schedules import ScheduleDocument, ScheduleSpec
from mendflow.core.schedules.cron import parse_cron
from mendflow.core.schedules.due_times import DueTimes
from mendflow.core.schedules.planning import StartResult, noted, plan

MINUTE = 60_000
YEAR_2026 = 1_767_225_600_000
zones = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Havana"])
instants = st.integers(YEAR_2026, YEAR_2026 + 2 * 365 * 86_400_000)
minutes = st.one_of(st.just("*"), st.integers(0, 59).map(str), st.integers(1, 30).map(lambda step: f"*/{step}"))
hours = st.one_of(st.just("*"), st.integers(0, 23).map(str), st.just("1-3"), st.just("*/6"))
days = st.sampled_from(["*", "1", "15,31", "*/3"])
months = st.sampled_from(["*", "3", "10-11", "mar,oct"])
weekdays = st.sampled_from(["*", "sun", "mon-fri", "6,0"])
overlaps: st.SearchStrategy[Overlap] = st.sampled_from(["allow", "wait"])
expressions = st.tuples(minutes, hours, days, months, weekdays).map(" ".join)


@given(expressions, zones, instants)
def test_times_come_in_order_and_each_is_the_next_of_the_one_before(expression: str, zone: str, after: int) -> None:
    cron, place = parse_cron(expression), ZoneInfo(zone)  # DU-6
    found = list(islice(cron.after(after, place), 20))
    assert found and found[0] > after
    for earlier, later in pairwise(found):
        assert later > earlier
        assert next(cron.after(earlier, place)) == later  # from wherever one asks
        assert next(cron.after(later - 1, place)) == later


@given(expressions, zones, st.integers(0, 700))
def test_no_minute_that_fits_is_skipped(expression: str, zone: str, day: int) -> None:
    """Against the plain way: every minute of two days is looked at on the wall clock. What fits the expression is due,
    but for the second time that the clock shows it."""
    cron, place = parse_cron(expression), ZoneInfo(zone)  # DU-6
    begin = YEAR_2026 + day * 86_400_000
    end = begin + 2 * 86_400_000
    due = set(takewhile(lambda at: at < end, cron.after(begin - 1, place)))
    for at in range(begin, end, 5 * MINUTE):
        wall = datetime.fromtimestamp(at / 1000, place)
        fits = wall.minute in cron.minutes and wall.hour in cron.hours and cron.fires_on(wall.date())
        if fits and (cron.every_hour or not wall.fold):
            assert at in due, wall
        if at in due and not fits:
            assert _after_gap(wall), wall


def _after_gap(wall: datetime) -> bool:
    """Whether the clock has just left out some time."""
    before = datetime.fromtimestamp(wall.timestamp() - 60, wall.tzinfo)
    return before.utcoffset() != wall.utcoffset()


@given(
    st.sampled_from(["0 * * * *", "*/20 * * * *", "30 2 * * *"]),
    st.lists(st.tuples(st.integers(-5_000_000, 9_000_000), st.integers(0, 3)), min_size=1, max_size=30),
    overlaps,
    zones,
)
def test_whatever_the_clock_does_every_time_is_started_once_and_in_order(
    expression: str, steps: list[tuple[int, int]], overlap: Overlap, zone: str
) -> None:
    """The clock jumps forward and back, servers die between the decision and the start, cases end when they like."""
    spec = ScheduleSpec(name="s", flow="f", cron=expression, timezone=zone, catch_up="all", overlap=overlap)
    document, now, latest = ScheduleDocument(spec=spec, cursor=YEAR_2026), YEAR_2026, YEAR_2026
    times, started = DueTimes(spec, ZoneInfo(zone)), list[int]()
    for jump, ends in steps:
        now += jump
        latest = max(latest, now)
        live = set(document.running[ends:])
        for _ in range(3):  # more than one look finds the same
            document = plan(document, times, now=now, live=live)
        if ends != 3:  # otherwise the server died before it started anything
            results = [StartResult(each, CaseId(each.key)) for each in document.starting]
            started += [each.due for each in document.starting]
            document = noted(document, results, now)
    for _ in range(1_000):
        document = plan(document, times, now=latest, live=set())
        if not document.starting:
            break
        started += [each.due for each in document.starting]
        document = noted(document, [StartResult(each, CaseId(each.key)) for each in document.starting], latest)
    assert started == times.between(YEAR_2026, latest, 10_000)  # DU-6
