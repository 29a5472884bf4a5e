"""Starts cases at the due times of schedules.

Every server looks. The one that is chosen by the name of a schedule decides about it at once, any other if that one is
late. A decision is written into the schedule's document before it is carried out, at the version that was read: so one
server decides about a due time, and whoever reads the decision carries it out. The case has a key made of the schedule
and the due time, so it does not matter how many do, or how often.

Times are those of the wall clock, which may jump. Forward is like a time in which no server ran. Back, nothing is due
before the clock has come to where it was: all times up to the document's cursor are decided."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import msgspec

from mendflow.core.model.errors import (
    Conflict,
    NotFound,
    RequestError,
    StoreUnavailable,
    TemporarilyUnavailable,
)
from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.schedules import DueStart, ScheduleDocument
from mendflow.core.schedules.due_times import DueTimes
from mendflow.core.schedules.planning import StartResult, noted, plan, schedule_of_key
from mendflow.services.base.alerts import AlertFinding, AlertStore
from mendflow.services.base.background_tasks import cancel_tasks, sleep_unless
from mendflow.services.base.cluster import CASE_KIND, LIVE_STATUSES
from mendflow.services.base.contracts import Clock
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.membership import OwnMembership
from mendflow.services.base.notices import Notices
from mendflow.services.base.responsibility import Responsibility
from mendflow.services.cases.case_starter import CaseStarter, StartOptions
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.schedules.flow_schedules import FlowSchedules
from mendflow.services.schedules.store import ScheduleStore
from mendflow.services.schedules.zones import zone_named
from mendflow.stores.contract import Store

log = logging.getLogger("mendflow.schedules")

LOOK_MS: Final = 1_000
"""How long to sleep at most: so a wall clock that jumps is seen soon."""
LIST_MS: Final = 5_000
"""How often to look for schedules that other servers changed."""
GRACE_MS: Final = 3_000
"""How long a due time is left to the server that was chosen for it."""
NOT_STARTED: Final = "not-started"

CancelHere = Callable[[CaseId, str], Awaitable[bool]]
"""Cancel a case that is at home on this server, with the reason; whether it is."""


class _CaseStatus(msgspec.Struct):
    status: str


_decode_case = msgspec.json.Decoder(_CaseStatus).decode


class _Watched(NamedTuple):
    """A schedule as it was last read or written here, and the first time that is not decided."""

    document: ScheduleDocument
    next_at: Instant | None

    def is_due(self, now: Instant) -> bool:
        """Whether there is something to decide, or to start."""
        if self.document.starting or self.document.backfills:
            return True
        return not self.document.spec.paused and self.next_at is not None and self.next_at <= now


class DueStarter:
    """`wall` is the wall clock, in milliseconds."""

    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        wall: Callable[[], Instant],
        membership: OwnMembership,
        schedules: ScheduleStore,
        flow_schedules: FlowSchedules,
        starter: CaseStarter,
        cancel_here: CancelHere,
        alerts: AlertStore,
        notices: Notices,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._wall = wall
        self._membership = membership
        self._responsibility = Responsibility(membership, lambda server: server.schedules)
        self._schedules = schedules
        self._flow_schedules = flow_schedules
        self._starter = starter
        self._cancel_here = cancel_here
        self._alerts = alerts
        self._notices = notices
        self._known: dict[str, _Watched] = {}
        self._listed_at: Instant | None = None
        self._wake_event = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="schedules")

    async def stop(self) -> None:
        await cancel_tasks(self._task)

    def changed(self) -> None:
        """Schedules have changed here: look at once."""
        self._listed_at = None
        self._wake_event.set()

    def case_ended(self, document: CaseDocument) -> None:
        """Called before the end is on disk."""
        if document.key and schedule_of_key(document.key):
            self._wake_event.set()

    async def _run(self) -> None:
        while True:
            try:
                await self.look()
            except StoreUnavailable as error:
                log.warning("schedules could not be read: %s; trying again", error.message)
            except Exception:  # an error in one look must not stop those that follow
                log.exception("schedules could not be processed; trying again")
            await sleep_unless(self._wake_event, self._clock.sleep(self._sleep_ms()))

    def _sleep_ms(self) -> int:
        """Until the next due time, if that is soon."""
        now = self._wall()
        coming = (
            each.next_at - now for each in self._known.values() if each.next_at is not None and each.next_at > now
        )
        return max(1, min([LOOK_MS, *coming]))

    async def look(self) -> None:
        """Decide and start what is due; from time to time read what others have changed."""
        if not self._membership.may_promise():
            return  # others do it
        thorough = self._listed_at is None or self._clock.now() - self._listed_at >= LIST_MS
        if thorough:
            self._listed_at = self._clock.now()
            await self._read_all()
        for name, known in list(self._known.items()):
            try:
                if self._is_mine(name, known, thorough=thorough):
                    await self._advance(name)
            except StoreUnavailable:
                raise
            except Exception:  # an error in one schedule must not stop the others
                log.exception("schedule %s could not be processed; trying again", name)

    async def _read_all(self) -> None:
        found = {name: each.document for name, each in (await self._schedules.all()).items()}
        before, self._known = self._known, {}
        for name, document in found.items():
            same = before.get(name)
            self._known[name] = same if same is not None and same.document == document else _watched(document)
        await self._flow_schedules.reconcile(found)
        await self._close_alerts()

    def _is_mine(self, name: str, known: _Watched, *, thorough: bool) -> bool:
        """Whether there is something to do here: at once on the server that was chosen, elsewhere after a while. Only
        the server where a case is at home can cancel it."""
        now, document = self._wall(), known.document
        if document.held and document.spec.overlap == "replace":
            return True
        if self._responsibility.mine(f"schedule {name}"):
            return known.is_due(now)
        if document.held and not thorough:
            return False  # the one that is chosen sees sooner when the case has ended
        if document.starting:
            return min(each.planned_at for each in document.starting) <= now - GRACE_MS
        return known.is_due(now - GRACE_MS)

    async def _advance(self, name: str) -> None:
        found = await self._schedules.find(name)
        if found is None:
            self._known.pop(name, None)
            return
        document, times = found.document, times_of(found.document)
        planned = plan(document, times, now=self._wall(), live=await self._live(document))
        if planned != document and await self._schedules.put(name, planned, found.version) is None:
            self.changed()  # another server was first
            return
        if (known := self._known.get(name)) is None or known.document != planned:
            self._known[name] = _watched(planned)
        await self._tell_left_out(document, planned)
        await self._cancel_replaced(planned)
        if planned.starting:
            await self._carry_out(name, planned.starting)
        if (known := self._known.get(name)) is not None and known.document.refused_since:
            await self._raise(known.document)

    async def _live(self, document: ScheduleDocument) -> set[CaseId]:
        """Which of its cases are not over, by what is on disk."""
        if not document.running:
            return set()
        await self._ledger.settled()
        found = await self._store.get_many(CASE_KIND, list(document.running))
        return {CaseId(each.id) for each in found if _decode_case(each.body).status in LIVE_STATUSES}

    async def _cancel_replaced(self, document: ScheduleDocument) -> None:
        if document.held and document.spec.overlap == "replace":
            for case in document.running:
                await self._cancel_here(case, f"replaced by the next due time of schedule {document.spec.name}")

    async def _tell_left_out(self, before: ScheduleDocument, after: ScheduleDocument) -> None:
        if after.history and after.history[-1:] != before.history[-1:] and after.history[-1].what == "missed":
            event, name = after.history[-1], after.spec.name
            self._notices.post(
                f"schedule {name} missed {event.count} due time(s) while no server ran; the last one was"
                f" {times_of(after).text(event.due)}; `mendflow schedules backfill {name}` starts past times",
                project=await self._schedules.project_of(name) or "",
            )

    # Cases

    async def _carry_out(self, name: str, starts: tuple[DueStart, ...]) -> None:
        results = [result for start in starts if (result := await self._start(start)) is not None]
        if not results:
            return
        try:
            document = await self._schedules.change(name, lambda document: noted(document, results, self._wall()))
            self._known[name] = _watched(document)
            self._wake_event.set()  # there may be more
        except NotFound:
            self._known.pop(name, None)  # it was removed meanwhile; the cases go on

    async def _start(self, start: DueStart) -> StartResult | None:
        """The case of a start, new or known; None if it cannot be told yet."""
        try:
            if (earlier := await self.case_of(start.flow, start.key)) is not None:
                return StartResult(start, earlier, known=True)
            case = await self._starter.start(start.flow, start.inputs, start.owner, StartOptions(key=start.key))
        except (StoreUnavailable, TemporarilyUnavailable):
            return None  # at the next look
        except Conflict as error:
            earlier = await self.case_of(start.flow, start.key)
            return StartResult(start, earlier, known=True) if earlier else StartResult(start, refused=error.message)
        except RequestError as error:
            return StartResult(start, refused=error.message)
        return StartResult(start, case.id)

    async def case_of(self, flow: str, key: str) -> CaseId | None:
        """The case that was started under a key, of this flow or of another of its project that the schedule had."""
        project = await self._starter.project_of(flow)
        found = await self._starter.keyed(key, project)
        if found is None:
            named = await self._starter.find_keyed(flow, key, project=project)
            found = await self._starter.known(named.id) if named is not None and not named.void else None
        return found.id if found is not None else None

    # Alerts

    async def _raise(self, document: ScheduleDocument) -> None:
        reason = next((each.reason for each in reversed(document.history) if each.what == "refused"), "")
        due = times_of(document).text(document.refused_since)
        await self._alerts.raise_(
            AlertFinding(
                kind=NOT_STARTED,
                subject=document.spec.name,
                episode=str(document.refused_since),
                sentence=f"schedule {document.spec.name!r} cannot start cases of flow {document.spec.flow!r} since"
                f" {due}:"
                f" {reason}; mend that, and start what is missing by `mendflow schedules backfill"
                f" {document.spec.name}`",
            )
        )

    async def _close_alerts(self) -> None:
        """An alert is over when a due time could be started again, or the schedule is gone."""
        for alert in [each for each in self._alerts.open.values() if each.alert.kind == NOT_STARTED]:
            known = self._known.get(alert.alert.subject)
            if known is None or str(known.document.refused_since) != alert.alert.id.rpartition("/")[2]:
                await self._alerts.close(alert)


def _watched(document: ScheduleDocument) -> _Watched:
    return _Watched(document, times_of(document).next(document.cursor))


def times_of(document: ScheduleDocument) -> DueTimes:
    return DueTimes(document.spec, zone_named(document.spec.timezone))
