"""Schedules: at which times cases are started by themselves."""

from typing import Annotated

from msgspec import Meta

from mendflow.core.model.ids import Instant
from mendflow.core.model.schedules import BackfillView, DueTimesView, ScheduleSpec, ScheduleView
from mendflow.core.model.views import CaseView
from mendflow.operations.arguments import Body, IdempotencyKey, Named
from mendflow.operations.operation import Calls, operation
from mendflow.operations.roles import AUTHORS, OPERATORS, VIEWERS
from mendflow.operations.subjects import INSTALLATION, LISTED, NEW_SCHEDULE, SCHEDULE

BackfillBegin = Annotated[
    str,
    Named("from"),
    Meta(description="The first date or time, in ISO 8601; in the schedule's zone if it names none."),
]
BackfillEnd = Annotated[str, Named("to"), Meta(description="The last date or time; a date is the whole day.")]


CronText = Annotated[str, Meta(max_length=1000, description="Five fields, as in a crontab, or such as `@daily`.")]
TimeZoneName = Annotated[str, Meta(max_length=100, description="Whose time `cron` means, such as Europe/Berlin.")]


LENGTH_MAX = 2**47
"""As a time the year 6429: past all that anybody plans, and within what calendars know."""
Milliseconds = Annotated[int, Meta(ge=0, le=LENGTH_MAX)]
Moment = Annotated[Instant, Meta(ge=0, le=LENGTH_MAX)]


class ScheduleCalls(Calls, tag="schedules"):
    @operation("GET", "/schedules", VIEWERS, LISTED)
    async def schedules(self) -> list[ScheduleView]:
        """Schedules, by name."""

    @operation("GET", "/schedules/{name}", VIEWERS, SCHEDULE)
    async def schedule(self, name: str) -> ScheduleView:
        """A schedule: its next times, and what became of the last ones."""

    @operation("PUT", "/schedules/{spec.name}", AUTHORS, NEW_SCHEDULE, repeatable=True)
    async def put_schedule(self, spec: Body[ScheduleSpec]) -> ScheduleView:
        """Make a schedule, or say one anew. The cases that it starts belong to the caller. One that is paused stays
        paused. Refused for the schedule that a flow has by its `on`."""

    @operation("GET", "/due-times", VIEWERS, INSTALLATION)
    async def due_times(
        self,
        cron: CronText = "",
        every_ms: Milliseconds = 0,
        timezone: TimeZoneName = "UTC",
        *,
        starts_at: Moment = 0,
        ends_at: Moment = 0,
    ) -> DueTimesView:
        """The next five times at which a schedule would be due, or what is wrong with when it is. Nothing is
        stored: somebody who writes a schedule sees what it means."""

    @operation("DELETE", "/schedules/{name}", AUTHORS, SCHEDULE)
    async def remove_schedule(self, name: str) -> ScheduleView:
        """Remove a schedule. Its cases stay. Refused for the schedule that a flow has by its `on`."""

    @operation("POST", "/schedules/{name}/pause", AUTHORS, SCHEDULE, repeatable=True)
    async def pause_schedule(self, name: str) -> ScheduleView:
        """Start nothing at due times until it is resumed. Cases that run go on."""

    @operation("POST", "/schedules/{name}/resume", AUTHORS, SCHEDULE, repeatable=True)
    async def resume_schedule(self, name: str) -> ScheduleView:
        """Continue from now. Times that passed while it was paused are left out; `backfill` starts them."""

    @operation("POST", "/schedules/{name}/trigger", OPERATORS, SCHEDULE, status=201, repeatable=True)
    async def trigger_schedule(self, name: str, *, key: IdempotencyKey = "") -> CaseView:
        """Start a case now, with the inputs of the schedule, whatever else runs. The same `key` is the same case. The
        case belongs to the caller."""

    @operation("POST", "/schedules/{name}/backfill", AUTHORS, SCHEDULE)
    async def backfill_schedule(
        self, name: str, begin: BackfillBegin, end: BackfillEnd, *, dry_run: bool = False
    ) -> BackfillView:
        """Start a case for each past due time of a range that has none yet. The oldest comes first. With `dry_run` only
        list them. Unless cases of the schedule may overlap, one is started after the
        other."""
