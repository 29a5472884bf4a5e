"""What is done about due times: caught up with, left out, waited for; and that nothing is decided twice."""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.schedules import BackfillRange, ScheduleDocument, ScheduleSpec
from mendflow.core.schedules.due_times import DueTimes
from mendflow.core.schedules.planning import StartResult, inputs_for, noted, plan, resumed
from mendflow.core.schedules.spec_checks import spec_flaws, when_text, zone_flaw

HOUR = 3_600_000
T0: Instant = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000)


def hourly(**given: Any) -> ScheduleDocument:
    spec = ScheduleSpec(**{"name": "s", "flow": "f", "cron": "0 * * * *", **given})
    return ScheduleDocument(spec=spec, owner="ann", cursor=T0)


def times(document: ScheduleDocument) -> DueTimes:
    return DueTimes(document.spec, UTC)


def after(document: ScheduleDocument, now: Instant, *live: str) -> ScheduleDocument:
    return plan(document, times(document), now=now, live={CaseId(each) for each in live})


def hours(document: ScheduleDocument) -> list[float]:
    return [(each.due - T0) / HOUR for each in document.starting]


def begun(document: ScheduleDocument) -> ScheduleDocument:
    """As if all that is to be started were."""
    results = [StartResult(each, CaseId(f"f-{(each.due - T0) // HOUR}")) for each in document.starting]
    return noted(document, results, T0)


def events(document: ScheduleDocument) -> list[tuple[str, int]]:
    return [(each.what, each.count) for each in document.history]


def test_nothing_happens_before_the_first_time_and_one_start_at_it() -> None:  # DU-6
    document = hourly()
    assert after(document, T0 + HOUR - 1) == document
    due = after(document, T0 + HOUR)
    assert hours(due) == [1]
    assert due.starting[0].key == "schedule/s/2026-01-01T01:00:00+00:00"
    assert after(due, T0 + HOUR + 1) == due
    assert hours(after(begun(due), T0 + HOUR + 1)) == []


def test_after_a_time_without_servers_the_latest_is_started_unless_told_otherwise() -> None:  # DU-6
    now = T0 + 5 * HOUR + HOUR // 2
    latest = after(hourly(), now)
    assert hours(latest) == [5] and events(latest) == [("missed", 4)]
    skipped = after(hourly(catch_up="skip"), now)
    assert hours(skipped) == [] and events(skipped) == [("missed", 5)]
    assert hours(after(hourly(catch_up="all", overlap="allow"), now)) == [1, 2, 3, 4, 5]


def test_a_start_that_is_only_late_is_none_that_was_missed() -> None:  # DU-6
    assert hours(after(hourly(catch_up="skip"), T0 + HOUR + 30_000)) == [1]
    assert hours(after(hourly(catch_up="skip"), T0 + HOUR + 31_000)) == []


def test_all_that_is_caught_up_with_runs_one_after_the_other() -> None:  # DU-6
    document, now, seen = hourly(catch_up="all"), T0 + 4 * HOUR, []
    for _ in range(6):
        document = after(document, now)
        seen += hours(document)
        document = begun(document)
    assert seen == [1, 2, 3, 4] and events(document) == [("started", 1)] * 4


def test_a_time_that_is_due_while_a_case_runs_waits_is_left_out_or_runs_beside_it() -> None:  # DU-6
    now, running = T0 + 2 * HOUR, "f-1"
    for overlap, starts in (("wait", []), ("replace", []), ("skip", []), ("allow", [2])):
        document = begun(after(hourly(overlap=overlap), T0 + HOUR))
        document = after(document, now, running)
        assert hours(document) == starts, overlap
        assert document.held is (overlap in ("wait", "replace"))
        assert events(document) == [("started", 1), *([("overlapped", 1)] if overlap == "skip" else [])]


def test_of_several_that_wait_the_newest_is_started_when_the_case_has_ended() -> None:  # DU-6
    document = after(begun(after(hourly(), T0 + HOUR)), T0 + 2 * HOUR, "f-1")
    document = after(document, T0 + 4 * HOUR + HOUR // 2, "f-1")
    assert hours(document) == []
    document = after(document, T0 + 4 * HOUR + HOUR // 2)
    assert hours(document) == [4] and events(document)[-1] == ("overlapped", 2)
    assert not document.held


def test_what_waited_is_started_even_if_missed_times_are_skipped() -> None:  # DU-6
    document = after(begun(after(hourly(catch_up="skip"), T0 + HOUR)), T0 + 2 * HOUR, "f-1")
    assert hours(after(document, T0 + 2 * HOUR + HOUR // 2)) == [2]


def test_a_clock_that_goes_back_starts_nothing_again() -> None:  # DU-6
    document = begun(after(hourly(), T0 + 5 * HOUR))
    for back in range(6):
        assert hours(after(document, T0 + back * HOUR)) == []
    assert hours(after(document, T0 + 6 * HOUR)) == [6]


def test_a_paused_schedule_starts_nothing_and_continues_from_when_it_is_resumed() -> None:  # DU-6
    document = hourly(paused=True)
    assert after(document, T0 + 3 * HOUR) == document
    document = resumed(document, times(document), T0 + 3 * HOUR + 1)
    assert events(document) == [("paused", 3)]
    assert hours(after(document, T0 + 3 * HOUR + 2)) == []
    assert hours(after(document, T0 + 4 * HOUR)) == [4]


def test_a_backfill_starts_the_oldest_first_and_makes_way_for_what_is_due() -> None:  # DU-6
    span = BackfillRange(done=T0 - 3 * HOUR - 1, until=T0, by="bob")
    document, seen = replace(hourly(), backfills=(span,)), []
    for now in (T0 + 1, T0 + 2, T0 + HOUR, T0 + HOUR + 1, T0 + HOUR + 2, T0 + HOUR + 3):
        document = after(document, now)
        seen += hours(document)
        assert all(each.owner == ("bob" if each.backfill else "ann") for each in document.starting)
        document = begun(document)
    assert seen == [-3, -2, 1, -1, 0] and document.backfills == ()


def test_what_became_of_a_start_counts_once() -> None:  # DU-6
    document = after(hourly(), T0 + HOUR)
    result = StartResult(document.starting[0], CaseId("f-1"))
    once = noted(document, [result], T0)
    assert noted(once, [result], T0) == once and once.running == ("f-1",)


def test_a_refused_start_is_told_since_when_until_one_succeeds() -> None:  # DU-6
    document = after(hourly(), T0 + HOUR)
    document = noted(document, [StartResult(document.starting[0], refused="no flow")], T0)
    assert document.refused_since == T0 + HOUR and document.history[-1].reason == "no flow"
    document = after(document, T0 + 2 * HOUR)
    assert begun(document).refused_since == 0


def test_inputs_may_use_the_due_time_and_bad_ones_are_refusals() -> None:  # DU-6
    given = {"day": "${{ schedule.date }}", "at": "${{ schedule.time }}", "before": "${{ schedule.previous }}"}
    document = hourly(inputs=given)
    assert inputs_for(document, times(document), T0 + HOUR) == {
        "day": "2026-01-01",
        "at": "2026-01-01T01:00:00+00:00",
        "before": "2026-01-01T00:00:00+00:00",
    }
    bad = after(hourly(inputs={"x": "${{ schedule.week }}"}), T0 + HOUR)
    assert bad.starting == () and bad.history[-1].what == "refused" and "week" in bad.history[-1].reason


def test_an_interval_begins_on_the_hour_and_a_week_on_a_monday() -> None:  # DU-6
    assert hours(after(hourly(cron="", every_ms=6 * HOUR), T0 + 6 * HOUR)) == [6]
    week = hourly(cron="", every_ms=7 * 24 * HOUR)
    first = times(week).next(T0)
    assert first is not None and times(week).text(first) == "2026-01-05T00:00:00+00:00"
    late = hourly(cron="", every_ms=HOUR, starts_at=T0 + 90_000, ends_at=T0 + 2 * HOUR)
    assert times(late).between(0, T0 + 9 * HOUR, 9) == [T0 + 90_000, T0 + HOUR + 90_000]


def test_a_schedule_that_contradicts_itself_is_refused_with_what_to_do() -> None:  # DU-6
    def told(**given: Any) -> list[str]:
        return [field for field, _ in spec_flaws(hourly(**given).spec)]

    assert told() == []
    assert told(every_ms=HOUR) == ["cron"] and told(cron="") == ["cron"] and told(cron="", every_ms=5) == ["every"]
    assert told(catch_up="all", overlap="skip") == ["overlap"]
    assert told(starts_at=T0, ends_at=T0 - 1) == ["until"]
    assert told(inputs={"x": "${{ jobs.a }}"}) == ["inputs"]
    assert told(name="a/b") == ["name"] and told(flow="") == ["flow"]


def test_schedules_and_zones_are_told_in_words() -> None:
    assert when_text(hourly(cron="", every_ms=90 * 60_000).spec) == "every 90 min"
    assert when_text(hourly(cron="", every_ms=48 * HOUR).spec) == "every 2 days"
    zones = ["Europe/Berlin", "America/New_York", "UTC"]
    assert "did you mean Europe/Berlin?" in zone_flaw("Europe/Berln", zones)
    assert "did you mean America/New_York?" in zone_flaw("new york", zones)
    assert "name a place" in zone_flaw("UTC+2", zones) and "name a place" in zone_flaw("CEST", zones)


def test_the_key_of_a_due_time_does_not_depend_on_the_zone() -> None:  # DU-6
    there = plan(hourly(), DueTimes(hourly().spec, ZoneInfo("Asia/Tokyo")), now=T0 + HOUR, live=())
    assert there.starting[0].key == after(hourly(), T0 + HOUR).starting[0].key


def test_starts_that_are_only_late_are_all_made_however_close_they_are() -> None:  # DU-6
    document = hourly(cron="", every_ms=1_000, overlap="allow", catch_up="skip")
    late = after(document, T0 + 30_000)
    assert [(each.due - T0) // 1000 for each in late.starting] == list(range(1, 31)) and late.history == ()
    missed = after(document, T0 + 60_000)
    assert len(missed.starting) == 31 and events(missed) == [("missed", 29)]
