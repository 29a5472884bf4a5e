"""The schedules of flows that have one under `on`: each has the name of its flow.

The flow's triggers are written first, and its schedule follows from them. So after a crash in between, a server finds
that they differ, and puts it right. It asks the store for the triggers after it read the schedule: what it finds
there is at least as new, and a schedule that has changed since is left to the next look."""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from mendflow.core.model.errors import Conflict
from mendflow.core.model.flow_triggers import ScheduleTrigger
from mendflow.core.model.ids import Instant
from mendflow.core.model.schedules import ScheduleDocument, ScheduleSpec
from mendflow.core.schedules.trigger_spec import spec_of_trigger
from mendflow.services.base.contracts import TRIES
from mendflow.services.data.flow_triggers import FlowTriggerStore
from mendflow.services.schedules.store import ScheduleStore
from mendflow.services.schedules.zones import zone_named


def changed_spec(
    before: ScheduleDocument | None, spec: ScheduleSpec, *, owner: str, of_flow: bool, now: Instant
) -> ScheduleDocument:
    """A schedule as it is said anew. Times that have passed are not started by a change of when it is due; one that is
    paused stays so; and so does what it was about to start."""
    if before is None:
        return ScheduleDocument(spec=spec, owner=owner, of_flow=of_flow, made_at=now, cursor=now)
    spec = replace(spec, paused=spec.paused or before.spec.paused)
    same = _when(before.spec) == _when(spec)
    cursor = before.cursor if same else now
    held = before.held and same
    return replace(before, spec=spec, owner=owner, of_flow=of_flow, cursor=cursor, held=held)


def _when(spec: ScheduleSpec) -> tuple[object, ...]:
    return (spec.cron, spec.every_ms, spec.timezone, spec.starts_at)


class FlowSchedules:
    def __init__(self, schedules: ScheduleStore, triggers: FlowTriggerStore, wall: Callable[[], Instant]) -> None:
        self._schedules = schedules
        self._triggers = triggers
        self._wall = wall

    def demand_zone(self, trigger: ScheduleTrigger) -> None:
        """Raises InvalidRequest if there is no such time zone here."""
        zone_named(trigger.timezone)

    async def follow(self, flow: str) -> None:
        """Have the schedule of a flow as its triggers say, or none."""
        for _ in range(TRIES):
            found = await self._schedules.find(flow)
            if found is not None and not found.document.of_flow:
                return  # somebody's own
            active = await self._triggers.read(flow)
            trigger = active.triggers.schedule if active is not None else None
            before = found.document if found is not None else None
            wanted = (
                changed_spec(before, spec_of_trigger(flow, trigger), owner=active.by, of_flow=True, now=self._wall())
                if active is not None and trigger is not None
                else None
            )
            version = found.version if found is not None else 0
            if wanted == before or await self._schedules.put(flow, wanted, version) is not None:
                return
        raise Conflict(f"the schedule of flow {flow} is changed by several at once, again and again; deploy it again")

    async def reconcile(self, known: Mapping[str, ScheduleDocument]) -> None:
        """Put right what a crash between triggers and schedule has left."""
        wanted = self._triggers.schedules()
        of_flows = {name for name, each in known.items() if each.of_flow}
        for flow in sorted(of_flows | wanted.keys()):
            trigger, document = wanted.get(flow), known.get(flow)
            if document is not None and trigger is not None:
                spec = replace(spec_of_trigger(flow, trigger), paused=document.spec.paused)
                if spec == document.spec or not document.of_flow:
                    continue
            await self.follow(flow)
