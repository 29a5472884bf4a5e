"""The keys below `on` of a flow file."""

from typing import Final

from mendflow.core.model.flow_triggers import CATCH_UPS, OVERLAPS
from mendflow.formats.yaml.fields import Key, Table
from mendflow.formats.yaml.shapes import ChoiceShape, DeferredShape, ListOf, MeasureShape, NameShape, TextShape

ON_FILES: Final[Table] = {
    "in": Key(
        TextShape("a folder, or `STORE:PATH`,", template=False, filled=True),
        "Where files arrive: a folder of the server's machine, or `STORE:PATH` below a storage element.",
        required=True,
    ),
    "match": Key(TextShape("a pattern such as `*.csv`", template=False), "Which files; all unless given."),
    "stable": Key(
        MeasureShape("duration"), "A file that has not changed for this long is complete; 10 s unless given."
    ),
    "every": Key(MeasureShape("duration"), "How often to look for files; 10 s unless given."),
    "input": Key(
        NameShape("the name of an input"), "The input that gets the file; the only one of the type file unless given."
    ),
}
ON_END: Final[Table] = {
    "notify": Key(
        ListOf(
            TextShape("an address or the name of a webhook", template=False, filled=True),
            single=True,
            expected="an https address, the name of a webhook, or a list of these",
        ),
        "Who is told: an https address that gets a POST, the name of a webhook, or a list of these.",
        required=True,
    ),
}
ON_SCHEDULE: Final[Table] = {
    "cron": Key(
        TextShape('a cron expression such as "30 2 * * *"', template=False, filled=True),
        "When, as in a crontab: minute, hour, day of the month, month, day of the week.",
    ),
    "every": Key(MeasureShape("duration", positive=True), "Instead of `cron`: one case in each such span."),
    "timezone": Key(
        TextShape("a time zone such as Europe/Berlin", template=False, filled=True),
        "In which time zone `cron`, `from` and `until` are meant; UTC unless given.",
    ),
    "inputs": Key(
        DeferredShape('a map such as `{day: "${{ schedule.date }}"}`', "on-schedule-inputs"),
        "What each case is given; expressions see `schedule.time`, `schedule.date` and `schedule.previous`.",
    ),
    "catch-up": Key(
        ChoiceShape(*CATCH_UPS),
        "Which of the times are started that passed while no server ran; `latest` unless given.",
    ),
    "overlap": Key(
        ChoiceShape(*OVERLAPS), "What happens with a due time while an earlier case runs; `wait` unless given."
    ),
    "from": Key(TextShape("a date such as 2026-01-31", template=False), "Nothing is due before this date or time."),
    "until": Key(TextShape("a date such as 2026-01-31", template=False), "Nothing is due after this date or time."),
}
ON: Final[Table] = {
    "files": Key(
        DeferredShape('a map such as `{in: drop:incoming, match: "*.csv"}`', "on-files"),
        "Each file that arrives starts one case.",
    ),
    "schedule": Key(
        DeferredShape('a cron expression such as "30 2 * * *", or a map', "on-schedule"),
        "Each due time starts one case.",
    ),
    "failure": Key(DeferredShape("a map with `notify:`", "on-end"), "Who is told that a case has failed."),
    "success": Key(DeferredShape("a map with `notify:`", "on-end"), "Who is told that a case has completed."),
    "finished": Key(DeferredShape("a map with `notify:`", "on-end"), "Who is told that a case has ended, anyhow."),
}
