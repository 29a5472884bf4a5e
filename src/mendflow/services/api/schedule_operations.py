"""The part of the domain that is about schedules."""

from typing import TYPE_CHECKING

from mendflow.core.data.input_types import planned_value_flaw
from mendflow.core.engine.activities.job_parts import amounts_at_start
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.ids import Instant
from mendflow.core.model.principals import DEFAULT_PROJECT, EVERYTHING, Sight, person_text
from mendflow.core.model.schedules import BackfillView, DueTimesView, ScheduleSpec, ScheduleView
from mendflow.core.model.views import CaseView
from mendflow.services.api.view_operations import ViewOperations
from mendflow.services.base.projects import kept_project
from mendflow.services.cases.case_starter import demand_key

if TYPE_CHECKING:
    from mendflow.services.schedules.service import Schedules


class ScheduleOperations(ViewOperations):
    @property
    def _schedules(self) -> "Schedules":
        return self._server.runtime.schedules.service

    async def schedules(self, *, sight: Sight = EVERYTHING) -> list[ScheduleView]:
        found = await self._schedules.all()
        if sight.projects is None:
            return found
        return [each for each in found if sight.sees(await self.project_lookup.find("schedule", each.spec.name) or "")]

    async def schedule(self, name: str) -> ScheduleView:
        return await self._schedules.view(name)

    async def put_schedule(self, spec: ScheduleSpec, *, who: str) -> ScheduleView:
        """The flow must be there, with these inputs: a schedule that can start nothing is a mistake."""
        runtime = self._server.runtime
        await runtime.flows.refresh(spec.flow)
        document = runtime.flows.newest(spec.flow)
        declared = document.flow.inputs
        missing = [name for name, each in declared.items() if each.required and name not in spec.inputs]
        unknown = [name for name in spec.inputs if name not in declared]
        if missing or unknown:
            flaw = f"needs {', '.join(missing)}" if missing else f"has no input {', '.join(unknown)}"
            there = ", ".join(declared) or "none"
            raise InvalidRequest(f"schedule {spec.name:.100}: flow {spec.flow} {flaw}; its inputs are: {there}")
        wrong = [
            f"input {name}: {flaw}"
            for name, value in spec.inputs.items()
            if (flaw := planned_value_flaw(declared[name], value))
        ]
        wrong = wrong or amounts_at_start(document.flow, spec.inputs, planned=True)
        if wrong:
            raise InvalidRequest(f"schedule {spec.name:.100}: {'; '.join(wrong)}", field="inputs", problems=wrong)
        await runtime.staging.demand_tables(document.flow, spec.inputs)
        stored = await self.project_lookup.find("schedule", spec.name)
        project = kept_project(f"schedule {spec.name}", stored, document.project)
        await runtime.flows.adopt(spec.flow, who=who)
        return await self._schedules.put(spec, who=who, project=project)

    async def due_times(
        self, cron: str = "", every_ms: int = 0, timezone: str = "UTC", *, starts_at: Instant = 0, ends_at: Instant = 0
    ) -> DueTimesView:
        when = ScheduleSpec(
            name="", flow="", cron=cron, every_ms=every_ms, timezone=timezone, starts_at=starts_at, ends_at=ends_at
        )
        return self._schedules.due_times(when)

    async def remove_schedule(self, name: str, *, who: str) -> ScheduleView:
        project = await self.project_lookup.find("schedule", name) or DEFAULT_PROJECT
        removed = await self._schedules.remove(name, project=project)
        self._server.runtime.notices.post(f"schedule {name} was removed by {person_text(who)}", project=project)
        await self._settled()
        return removed

    async def pause_schedule(self, name: str, *, who: str) -> ScheduleView:
        return await self._schedules.pause(name, who=who)

    async def resume_schedule(self, name: str, *, who: str) -> ScheduleView:
        return await self._schedules.resume(name)

    async def trigger_schedule(self, name: str, *, who: str, key: str = "") -> CaseView:
        demand_key(key, "key")
        return await self.case(await self._schedules.trigger(name, who=who, key=key or self._server.chance(8)))

    async def backfill_schedule(
        self, name: str, begin: str, end: str, *, who: str, dry_run: bool = False
    ) -> BackfillView:
        return await self._schedules.backfill(name, begin, end, who=who, dry_run=dry_run)
