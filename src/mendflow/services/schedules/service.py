"""What people ask of schedules: list, add, pause, trigger, backfill."""

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from msgspec.structs import replace

from mendflow.core.expressions import ExpressionError
from mendflow.core.model.errors import Conflict, InvalidRequest
from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.schedules import (
    BackfillRange,
    BackfillTime,
    BackfillView,
    DueTimesFlaw,
    DueTimesView,
    ScheduleDocument,
    ScheduleEvent,
    ScheduleSpec,
    ScheduleView,
    ScheduleWord,
)
from mendflow.core.schedules.due_times import DueTimes, instant_of
from mendflow.core.schedules.planning import due_key, inputs_for, known_values, resumed, trigger_key, with_event
from mendflow.core.schedules.spec_checks import spec_flaws, time_flaws
from mendflow.services.base.cluster import CASE_KIND
from mendflow.services.base.contracts import TRIES
from mendflow.services.cases.case_starter import CaseStarter, StartOptions
from mendflow.services.schedules.flow_schedules import changed_spec
from mendflow.services.schedules.starter import DueStarter, times_of
from mendflow.services.schedules.store import ScheduleStore
from mendflow.services.schedules.zones import zone_named
from mendflow.stores.contract import FieldCondition, Store

NEXT_SHOWN: Final = 5
BACKFILL_MAX: Final = 10_000
CHUNK: Final = 500
AHEAD_MS: Final = 5 * 60_000
"""A schedule whose times are decided so far ahead of the wall clock had a server whose clock was wrong."""
NO_STARTER: Final = (
    "no server runs here that starts cases at the due times of schedules; `mendflow serve` and `mendflow ui` do, for as"
    " long as they run"
)
BEGUN: Final = frozenset({"started", "known", "triggered"})


class _Case(msgspec.Struct):
    status: str
    key: str = ""


_decode_case = msgspec.json.Decoder(_Case).decode


class Schedules:
    def __init__(
        self,
        *,
        store: Store,
        schedules: ScheduleStore,
        starter: DueStarter,
        cases: CaseStarter,
        wall: Callable[[], Instant],
        is_served: Callable[[], Awaitable[bool]],
    ) -> None:
        self._store = store
        self._schedules = schedules
        self._starter = starter
        self._cases = cases
        self._wall = wall
        self._is_served = is_served

    async def all(self) -> list[ScheduleView]:
        found, is_served = await self._schedules.all(), await self._is_served()
        return [await self._view_of(each.document, is_served=is_served) for each in found.values()]

    async def view(self, name: str) -> ScheduleView:
        return await self._view((await self._schedules.get(name)).document)

    async def find(self, name: str) -> ScheduleView | None:
        found = await self._schedules.find(name)
        return await self._view(found.document) if found is not None else None

    def due_times(self, spec: ScheduleSpec) -> DueTimesView:
        """When a schedule would be due next, if it were made now."""
        flaws = [DueTimesFlaw(field=field, reason=reason) for field, reason in time_flaws(spec)]
        try:
            zone = zone_named(spec.timezone)
        except InvalidRequest as wrong:
            flaws.append(DueTimesFlaw(field="timezone", reason=wrong.message.removeprefix("timezone: ")))
            return DueTimesView(flaws=flaws)
        if flaws:
            return DueTimesView(flaws=flaws)
        times = DueTimes(spec, zone)
        coming = times.between(self._wall(), _FAR, NEXT_SHOWN)
        values = known_values(spec, times, coming[0]) if coming else {}
        return DueTimesView(times=coming, values={name: each for name, each in values.items() if name != "name"})

    async def project_of(self, name: str) -> str | None:
        """The project that the name belongs to, if somebody has claimed it."""
        return await self._schedules.project_of(name)

    async def put(self, spec: ScheduleSpec, *, who: str, project: str) -> ScheduleView:
        """Make a schedule, or say one anew. `who` owns the cases that it starts. The name belongs to the project from
        then on; refused if it belongs to another."""
        demand_spec(spec)
        await self._schedules.claim(spec.name, project)
        for _ in range(TRIES):
            found = await self._schedules.find(spec.name)
            before = found.document if found is not None else None
            if before is not None and before.of_flow:
                raise Conflict(_of_flow(before))
            document = changed_spec(before, spec, owner=who, of_flow=False, now=self._wall())
            if spec.paused and not (before is not None and before.spec.paused):
                document = replace(document, paused_at=self._wall(), paused_by=who)
            if await self._schedules.put(spec.name, document, found.version if found is not None else 0) is not None:
                self._starter.changed()
                return await self._view(document)
        raise Conflict(f"schedule {spec.name} is changed by several at once, again and again; try again")

    async def remove(self, name: str, *, project: str) -> ScheduleView:
        """No more cases are started by it; those that are there go on. The name stays in the project."""
        await self._schedules.get(name)
        await self._schedules.claim(name, project)
        for _ in range(TRIES):
            found = await self._schedules.get(name)
            if found.document.of_flow:
                raise Conflict(_of_flow(found.document))
            if await self._schedules.put(name, None, found.version) is not None:
                self._starter.changed()
                return await self._view(found.document)
        raise Conflict(f"schedule {name} is changed by several at once, again and again; try again")

    async def pause(self, name: str, *, who: str) -> ScheduleView:
        now = self._wall()

        def paused(document: ScheduleDocument) -> ScheduleDocument:
            if document.spec.paused:
                return document
            spec = replace(document.spec, paused=True)
            return replace(document, spec=spec, held=False, paused_at=now, paused_by=who)

        return await self._changed(name, paused)

    async def resume(self, name: str) -> ScheduleView:
        """From now on; the times that passed meanwhile are left out. Of one that is not paused the times that come are
        counted from now, which mends one whose server's clock was ahead."""
        return await self._changed(name, lambda document: resumed(document, times_of(document), self._wall()))

    async def trigger(self, name: str, *, who: str, key: str) -> CaseId:
        """Start a case now, whatever else runs. The same key is the same case."""
        document, now = (await self._schedules.get(name)).document, self._wall()
        try:
            inputs = inputs_for(document, times_of(document), now)
        except ExpressionError as error:
            raise InvalidRequest(f"the inputs of schedule {name}: {error.message}") from error
        case_key = trigger_key(name, key)
        earlier = await self._starter.case_of(document.spec.flow, case_key)
        case = earlier or (await self._cases.start(document.spec.flow, inputs, who, StartOptions(key=case_key))).id

        def begun(document: ScheduleDocument) -> ScheduleDocument:
            if case in document.running:
                return document
            event = ScheduleEvent(at=now, due=now, what="triggered", case=case)
            return with_event(replace(document, running=(*document.running, case)), event)

        await self._changed(name, begun)
        return case

    async def backfill(self, name: str, begin: str, end: str, *, who: str, dry_run: bool) -> BackfillView:
        """The due times of a range, which are started from now on unless it is only asked."""
        document = (await self._schedules.get(name)).document
        times, wanted = times_of(document), self._range(document, begin, end, who)
        due = times.between(wanted.done, wanted.until, BACKFILL_MAX + 1)
        if not due:
            raise InvalidRequest(f"schedule {name} has no due time from {begin} to {end}", field="from")
        if len(due) > BACKFILL_MAX:
            raise InvalidRequest(
                f"there are more than {BACKFILL_MAX:,} due times from {begin} to {end}; take a shorter range",
                field="to",
            )
        listed = await self._backfill_times(name, {each: times.text(each) for each in due})
        if not dry_run:
            await self._changed(name, lambda each: replace(each, backfills=(*each.backfills, wanted)))
        return BackfillView(schedule=name, planned=not dry_run, times=listed)

    def _range(self, document: ScheduleDocument, begin: str, end: str, who: str) -> BackfillRange:
        zone, now = zone_named(document.spec.timezone), self._wall()
        found = {"from": instant_of(begin, zone), "to": instant_of(end, zone, end=True)}
        for field, text in (("from", begin), ("to", end)):
            if found[field] is None:
                raise InvalidRequest(
                    f"{field}: {text!r:.60} is no date or time; write 2026-01-31 or 2026-01-31T02:00", field=field
                )
        start, until = found["from"] or 0, min(found["to"] or 0, now)
        if start > now:
            raise InvalidRequest(f"{begin} is still to come; its times are started when they are due", field="from")
        if start > until:
            raise InvalidRequest(f"the range ends, {end}, before it begins, {begin}", field="to")
        return BackfillRange(done=start - 1, until=until, by=who)

    async def _backfill_times(self, name: str, due: dict[Instant, str]) -> list[BackfillTime]:
        """The due times, and which of them have a case by what searches find."""
        keys = [due_key(name, at) for at in due]
        cases: dict[str, CaseId] = {}
        for start in range(0, len(keys), CHUNK):
            where = [FieldCondition("key", [*keys[start : start + CHUNK]], "in")]
            found = await self._store.search(CASE_KIND, where, limit=CHUNK)
            cases |= {_decode_case(each.body).key: CaseId(each.id) for each in found}
        return [
            BackfillTime(due=at, text=text, case=cases.get(due_key(name, at), CaseId(""))) for at, text in due.items()
        ]

    async def _changed(self, name: str, new: Callable[[ScheduleDocument], ScheduleDocument]) -> ScheduleView:
        document = await self._schedules.change(name, new)
        self._starter.changed()
        return await self._view(document)

    async def _view(self, document: ScheduleDocument) -> ScheduleView:
        return await self._view_of(document, is_served=await self._is_served())

    async def _view_of(self, document: ScheduleDocument, *, is_served: bool) -> ScheduleView:
        times, now = times_of(document), self._wall()
        coming = times.between(max(document.cursor, now), _FAR, NEXT_SHOWN)
        last = next((each for each in reversed(document.history) if each.what in BEGUN), None)
        status = await self._status(last.case) if last is not None else ""
        left = [times.between(each.done, each.until, BACKFILL_MAX) for each in document.backfills]
        return ScheduleView(
            spec=document.spec,
            state=_word(document, coming),
            owner=document.owner,
            of_flow=document.of_flow,
            made_at=document.made_at,
            next=[] if document.spec.paused else coming,
            last_due=last.due if last is not None else 0,
            last_case=last.case if last is not None else CaseId(""),
            last_status=status,
            running=list(document.running),
            backfilling=sum(map(len, left)),
            history=list(reversed(document.history)),
            problem=_problem(document, times, now),
            not_served="" if is_served else NO_STARTER,
        )

    async def _status(self, case: CaseId) -> str:
        found = await self._store.get(CASE_KIND, case)
        return _decode_case(found.body).status if found is not None else "removed"


_FAR: Final = 2**53


def demand_spec(spec: ScheduleSpec) -> None:
    """Raises InvalidRequest for a bad schedule, with everything that is wrong."""
    flaws = [f"{field}: {flaw}" for field, flaw in spec_flaws(spec)]
    zone_named(spec.timezone)
    if flaws:
        raise InvalidRequest(f"schedule {spec.name:.100}: {'; '.join(flaws)}")


def _of_flow(document: ScheduleDocument) -> str:
    flow = document.spec.flow
    return (
        f"schedule {document.spec.name} belongs to flow {flow}: change `schedule` under its `on:`, and deploy it again"
        " (pause, resume, trigger and backfill work here)"
    )


def _word(document: ScheduleDocument, coming: list[Instant]) -> ScheduleWord:
    if document.spec.paused:
        return "paused"
    if document.held:
        return "waiting"
    return "active" if coming or document.starting else "over"


def _problem(document: ScheduleDocument, times: DueTimes, now: Instant) -> str:
    if document.cursor > now + AHEAD_MS:
        return (
            f"a server's clock was ahead: all times up to {times.text(document.cursor)} are decided already, and none"
            f" is started before; mendflow schedules resume {document.spec.name} continues from now"
        )
    last = document.history[-1] if document.history else None
    if document.refused_since and last is not None and last.what == "refused":
        return f"the start for {times.text(last.due)} was refused: {last.reason}"
    return ""
