"""Schedules: at which times a flow is started by itself, and what became of those times.

A schedule is one document. Whoever moves it on writes first which due times it starts, and starts them then: so a
server that dies in between leaves a note for the next one, and no two servers decide differently about one time."""

from typing import Literal

import msgspec

from mendflow.core.model.flow_triggers import CatchUp, Overlap
from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.values import Value
from mendflow.core.model.views import View

ScheduleWord = Literal["active", "waiting", "paused", "over"]
DueWord = Literal["started", "known", "triggered", "missed", "overlapped", "refused", "paused"]


class ScheduleSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A case of `flow` is started at each due time: those of `cron`, five fields in the time zone `timezone`, or one
    `every_ms`, counted from `starts_at`, or else from a Monday at midnight in UTC. There are none before `starts_at`
    and none after `ends_at`. `inputs` are those of the flow; expressions in them see `schedule` with its `time`,
    `date`, `previous` and `name`. `catch_up` says which times are started that passed while no server ran, `overlap`
    what happens with a time while an earlier case runs."""

    name: str
    flow: str
    inputs: dict[str, Value] = {}
    cron: str = ""
    every_ms: int = 0
    timezone: str = "UTC"
    catch_up: CatchUp = "latest"
    overlap: Overlap = "wait"
    starts_at: Instant = 0
    ends_at: Instant = 0
    paused: bool = False


class DueStart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A case that is to be started for a due time, as it was decided at `planned_at`; the same key is the same case."""

    due: Instant
    key: str
    flow: str
    inputs: dict[str, Value] = {}
    owner: str = ""
    planned_at: Instant = 0
    backfill: bool = False


class BackfillRange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The due times after `done` and not after `until` are to be started, the oldest first."""

    done: Instant
    until: Instant
    by: str = ""


class ScheduleEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of a due time, or of `count` of them, of which `due` is the last. `known`: there was a case under its
    key already. `case` is the one that was started, or that was in the way."""

    at: Instant
    due: Instant
    what: DueWord
    case: CaseId = CaseId("")
    count: int = 1
    reason: str = ""


class ScheduleDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A schedule and where it is. All due times up to `cursor` are decided. `starting` are those that were decided to
    be started and may not have been yet; `running` are cases that are not known to be over. `held`: a due time waits
    for these. `of_flow`: it belongs to `on` of its flow. `refused_since` is the first due time of those that could not
    be started, since one could."""

    spec: ScheduleSpec
    owner: str = ""
    of_flow: bool = False
    made_at: Instant = 0
    cursor: Instant = 0
    starting: tuple[DueStart, ...] = ()
    running: tuple[CaseId, ...] = ()
    held: bool = False
    backfills: tuple[BackfillRange, ...] = ()
    history: tuple[ScheduleEvent, ...] = ()
    refused_since: Instant = 0
    paused_at: Instant = 0
    paused_by: str = ""


class ScheduleView(View, frozen=True):
    """A schedule, the times that come next, the newest case that it started and its status, and what became of the last
    due times, newest first. `backfilling` counts the past times that are still to be started. `not_served` says why its
    due times start nothing now, whatever its state is; empty while a server starts them."""

    spec: ScheduleSpec
    state: ScheduleWord
    owner: str = ""
    of_flow: bool = False
    made_at: Instant = 0
    next: list[Instant] = []
    last_due: Instant = 0
    last_case: CaseId = CaseId("")
    last_status: str = ""
    running: list[CaseId] = []
    backfilling: int = 0
    history: list[ScheduleEvent] = []
    problem: str = ""
    not_served: str = ""


class DueTimesFlaw(View, frozen=True):
    """What is wrong with when a schedule would be due: the field of it, and a sentence."""

    field: str
    reason: str


class DueTimesView(View, frozen=True):
    """When a schedule would be due next, the first time first; or what is wrong. `values` are what expressions in its
    inputs see at the first of these times: `schedule` has these names, and its own."""

    times: list[Instant] = []
    values: dict[str, Value] = {}
    flaws: list[DueTimesFlaw] = []


class BackfillTime(View, frozen=True):
    """A due time of a backfill; `case` is the one that it has already, which is not started again."""

    due: Instant
    text: str
    case: CaseId = CaseId("")


class BackfillView(View, frozen=True):
    """The due times of a backfill, the oldest first. `planned`: they are being started; otherwise it was only asked."""

    schedule: str
    planned: bool
    times: list[BackfillTime]
