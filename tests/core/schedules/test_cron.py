"""Cron expressions: which times they mean, in time zones too, and what is said of those that mean none."""

from datetime import datetime
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from mendflow.core.model.ids import Instant
from mendflow.core.schedules.cron import parse_cron
from mendflow.core.schedules.cron_hints import CronError

BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"


def instant(text: str, zone: str) -> Instant:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def times(expression: str, after: str, count: int, zone: str = "UTC") -> list[str]:
    """The next times, without seconds, and with the offset where there is one."""
    found = islice(parse_cron(expression).after(instant(after, zone), ZoneInfo(zone)), count)
    shown = (datetime.fromtimestamp(at / 1000, ZoneInfo(zone)).isoformat(timespec="minutes") for at in found)
    return [each.removesuffix("+00:00") for each in shown]


@pytest.mark.parametrize(
    ("expression", "after", "told"),
    [
        ("* * * * *", "2026-01-31T23:58", "2026-01-31T23:59 2026-02-01T00:00 2026-02-01T00:01"),
        ("30 2 * * *", "2026-12-30T02:30", "2026-12-31T02:30 2027-01-01T02:30"),
        ("*/20 * * * *", "2026-01-01T00:01", "2026-01-01T00:20 2026-01-01T00:40 2026-01-01T01:00"),
        ("5-40/20 9 * * *", "2026-01-01", "2026-01-01T09:05 2026-01-01T09:25 2026-01-02T09:05"),
        ("50/5 9 * * *", "2026-01-01", "2026-01-01T09:50 2026-01-01T09:55 2026-01-02T09:50"),
        ("0 9,17 * * *", "2026-01-01", "2026-01-01T09:00 2026-01-01T17:00 2026-01-02T09:00"),
        ("0 0 31 * *", "2026-01-31", "2026-03-31T00:00 2026-05-31T00:00 2026-07-31T00:00"),
        ("0 0 30 * *", "2026-01-30", "2026-03-30T00:00 2026-04-30T00:00"),
        ("0 0 29 2 *", "2026-01-01", "2028-02-29T00:00 2032-02-29T00:00"),
        ("0 0 29 2 *", "2096-03-01", "2104-02-29T00:00"),  # 2100 is no leap year
        ("0 8 * * mon-fri", "2026-01-02T09:00", "2026-01-05T08:00 2026-01-06T08:00"),
        ("0 8 * * 5-7", "2026-01-01T09:00", "2026-01-02T08:00 2026-01-03T08:00 2026-01-04T08:00 2026-01-09T08:00"),
        ("0 8 * * fri-sun", "2026-01-01T09:00", "2026-01-02T08:00 2026-01-03T08:00 2026-01-04T08:00"),
        ("0 8 * * 0", "2026-01-01", "2026-01-04T08:00 2026-01-11T08:00"),
        ("0 8 * * 7", "2026-01-01", "2026-01-04T08:00 2026-01-11T08:00"),
        ("0 0 1 JAN,jul *", "2026-01-01", "2026-07-01T00:00 2027-01-01T00:00"),
        ("0 0 13 * fri", "2026-02-01", "2026-02-06T00:00 2026-02-13T00:00 2026-02-20T00:00"),  # either
        ("0 0 10 * fri", "2026-02-05", "2026-02-06T00:00 2026-02-10T00:00 2026-02-13T00:00"),
        ("0 0 */2 * mon", "2026-02-01", "2026-02-09T00:00 2026-02-23T00:00"),  # both: one begins with a star
        ("@daily", "2026-02-28T12:00", "2026-03-01T00:00 2026-03-02T00:00"),
        ("@weekly", "2026-01-01", "2026-01-04T00:00"),
        ("@Yearly", "2026-01-02", "2027-01-01T00:00"),
        ("  0   2 *  * * ", "2026-01-01", "2026-01-01T02:00"),
    ],
)
def test_an_expression_means_these_times(expression: str, after: str, told: str) -> None:  # DU-6
    expected = told.split()
    assert times(expression, after, len(expected)) == expected


@pytest.mark.parametrize(
    ("zone", "expression", "after", "told"),
    [
        # The hour from 2 to 3 is left out: a time in it fires once, when it is over.
        (BERLIN, "30 2 * * *", "2026-03-28", "2026-03-28T02:30+01:00 2026-03-29T03:00+02:00 2026-03-30T02:30+02:00"),
        (BERLIN, "*/15 2 * * *", "2026-03-29", "2026-03-29T03:00+02:00 2026-03-30T02:00+02:00"),
        (BERLIN, "0,30 2,3 * * *", "2026-03-29", "2026-03-29T03:00+02:00 2026-03-29T03:30+02:00"),
        (BERLIN, "0 */2 * * *", "2026-03-29", "2026-03-29T03:00+02:00 2026-03-29T04:00+02:00"),
        (BERLIN, "*/30 * * * *", "2026-03-29T01:00", "2026-03-29T01:30+01:00 2026-03-29T03:00+02:00"),
        (BERLIN, "30 * * * *", "2026-03-29T01:00", "2026-03-29T01:30+01:00 2026-03-29T03:30+02:00"),
        (NEW_YORK, "15 2 8 3 *", "2026-01-01", "2026-03-08T03:00-04:00"),
        (NEW_YORK, "0 3 * * *", "2026-03-08", "2026-03-08T03:00-04:00 2026-03-09T03:00-04:00"),
        # The hour from 2 to 3 comes twice: a fixed time fires the first time, what goes on evenly through both.
        (BERLIN, "30 2 * * *", "2026-10-25", "2026-10-25T02:30+02:00 2026-10-26T02:30+01:00"),
        (
            BERLIN,
            "*/30 * * * *",
            "2026-10-25T01:30",
            "2026-10-25T02:00+02:00 2026-10-25T02:30+02:00 2026-10-25T02:00+01:00 2026-10-25T02:30+01:00"
            " 2026-10-25T03:00+01:00",
        ),
        (BERLIN, "*/20 2 * * *", "2026-10-25", "2026-10-25T02:00+02:00 2026-10-25T02:20+02:00 2026-10-25T02:40+02:00"
         " 2026-10-26T02:00+01:00"),
        (NEW_YORK, "30 1 * * *", "2026-11-01", "2026-11-01T01:30-04:00 2026-11-02T01:30-05:00"),
        (NEW_YORK, "30 * * * *", "2026-11-01T00:30", "2026-11-01T01:30-04:00 2026-11-01T01:30-05:00"),
        # Clocks that change at midnight, by half an hour, and by a whole day.
        ("America/Havana", "30 0 * * *", "2026-03-07T12:00", "2026-03-08T01:00-04:00 2026-03-09T00:30-04:00"),
        ("Australia/Lord_Howe", "15 2 * * *", "2026-10-03T12:00", "2026-10-04T02:30+11:00 2026-10-05T02:15+11:00"),
        ("Pacific/Apia", "0 9 * * *", "2011-12-29T00:00", "2011-12-29T09:00-10:00 2011-12-31T00:00+14:00"
         " 2011-12-31T09:00+14:00"),
        (BERLIN, "0 0 * * *", "2026-10-24T12:00", "2026-10-25T00:00+02:00 2026-10-26T00:00+01:00"),
    ],
)  # fmt: skip
def test_daylight_saving_loses_no_day_and_repeats_none(zone: str, expression: str, after: str, told: str) -> None:
    expected = told.split()  # DU-6
    assert times(expression, after, len(expected), zone) == expected


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("", "the expression is empty"),
        ("* * *", "`* * *` has 3 of the five fields"),
        ("61 * * * *", "the minute, `61`: `61` stands where a number from 0 to 59 should"),
        ("* 24 * * *", "the hour, `24`: `24` stands where a number from 0 to 23 should"),
        ("0 0 0 * *", "the day of the month, `0`"),
        ("0 0 * 13 *", "the month, `13`: `13` stands where a number from 1 to 12 or jan to dec should"),
        ("0 0 * * 8", "the day of the week, `8`"),
        ("0 0 * * munday", "`munday` stands where a number from 0 to 7 or sun to sat should"),
        ("1,,2 * * * *", "the minute, `1,,2`: nothing stands where"),
        ("*/0 * * * *", "the step of `*/0` is a number from 1"),
        ("*/90 * * * *", "the step 90 is larger than the field"),
        ("* 22-2 * * *", "`22-2` runs backwards; write `22-23,0-2`"),
        ("0 0 31 2 *", "never fires: no month that it names has a day 31"),
        ("0 0 31 4,6 *", "never fires"),
        ("0 0 2 * * *", "6 fields are cron with seconds; there are five here, without these: `0 2 * * *`"),
        ("0 0 2 ? * MON-FRI", "`0 2 * * MON-FRI`"),
        ("0 0 2 ? * 2-6 2026", "7 fields are cron with seconds and a year; there are five here, without these:"),
        ("0 0 2 ? * 2-6", "`0 2 * * 1-5`"),
        ("0 2 * * ?", "write `*` for any day: `0 2 * * *`"),
        ("cron(0 2 ? * 2-6 *)", "write `0 2 * * 1-5`"),
        ("rate(5 minutes)", "write it as `every`, such as every 5 minutes"),
        ("every 5 min", "is an interval: write it as `every`, not as `cron`: every 5 min"),
        ("@every 1h", "every 1h"),
        ("10m", "every 10m"),
        ("every day", "is cron `0 0 * * *`"),
        ("@reboot", "there are @hourly, @daily, @weekly, @monthly and @yearly"),
        ("CRON_TZ=Europe/Berlin 0 2 * * *", "cron `0 2 * * *`, timezone Europe/Berlin"),
        ("0 2 L * *", "no `L` for the last day of a month"),
        ("0 2 * * 5#2", "no `5#2` for a certain week"),
        ("0 2 15W * *", "no `15W`"),
        ("H 2 * * *", "write the number, such as 17"),
    ],
)
def test_what_is_no_cron_is_answered_with_what_to_write(expression: str, told: str) -> None:  # DU-6
    with pytest.raises(CronError) as caught:
        parse_cron(expression)
    assert told in caught.value.message
