"""The part of the domain that is about deployed flows and their triggers."""

from msgspec.structs import replace

from mendflow.core.data.flow_triggers import folder_element, trigger_flaws, trigger_name
from mendflow.core.engine.files_beside import stored_beside
from mendflow.core.model.data_sets import DataSetSpec, DataSetView, FolderWatch, WatchView
from mendflow.core.model.errors import BadFlow, Conflict, InvalidRequest, NotFound, RequestError
from mendflow.core.model.flow import Flow
from mendflow.core.model.flow_files import FlowFileView
from mendflow.core.model.flow_triggers import FileArrival, FlowTriggers, ScheduleTrigger
from mendflow.core.model.principals import EVERYTHING, Sight, person_text
from mendflow.core.model.views import FlowView
from mendflow.services.api.alert_operations import AlertOperations
from mendflow.services.api.data_operations import DataOperations
from mendflow.services.base.receivers import address_of, check_address, is_address
from mendflow.services.cases.flow_file_store import FlowFileNotKept
from mendflow.services.data.watches.storage import StorageUnavailable


class FlowOperations(AlertOperations, DataOperations):
    async def deploy(self, flow: Flow, *, who: str = "", project: str = "") -> FlowView:
        """Deploy a flow. Its triggers do not take effect by this; those that are in effect stay so."""
        view = await self._server.runtime.flows.deploy(flow, who=who, project=project)
        await self._settled()
        return self._with_triggers(view)

    async def deploy_with_triggers(self, flow: Flow, *, who: str, project: str = "") -> FlowView:
        """Deploy a flow, and from now on have its triggers in effect, in place of those that it had. Nothing is
        changed if one of them cannot be. They take effect also if the flow's file cannot be kept, which is then
        told."""
        runtime = self._server.runtime
        if flaws := list(trigger_flaws(flow)):
            raise BadFlow(problems=[f"{'.'.join(('on', *keys))}: {message}" for keys, message in flaws])
        await self._check_triggers(flow)
        files = flow.triggers.files if flow.triggers is not None else None
        if files is not None and files.folder:
            await runtime.catalogue.elements.put(folder_element(files.folder), replace=True)
        not_kept: FlowFileNotKept | None = None
        try:
            await runtime.flows.deploy(flow, who=who, project=project)
        except FlowFileNotKept as error:
            not_kept = error
        try:
            before = runtime.triggers.watch_of(flow.name)
            await runtime.triggers.put(flow, who=who)
            await self._watch_as_said(flow.name, had_watch=before is not None, who=who)
            await self._schedule_as_said(flow.name)
        except RequestError as error:
            raise Conflict(
                f"flow {flow.name} is deployed, and its `on` may not be in effect, or only in part: {error.message};"
                " deploy it again with its `on`"
            ) from error
        if not_kept is not None:
            raise not_kept
        return await self.flow(flow.name)

    async def remove_flow(self, name: str, *, who: str) -> FlowView:
        """Nobody can start cases of it from now on, and its triggers are gone. Cases that are there go on."""
        runtime = self._server.runtime
        await runtime.flows.refresh(name)
        runtime.flows.newest(name)
        had_watch = runtime.triggers.watch_of(name) is not None
        await runtime.triggers.remove(name)
        await self._watch_as_said(name, had_watch=had_watch, who=who)
        await self._schedule_as_said(name)
        removed = await runtime.flows.remove(name)
        runtime.notices.post(f"flow {name} was removed by {person_text(who)}", project=removed.project)
        await self._settled()
        return removed

    async def flows(self, *, sight: Sight = EVERYTHING) -> list[FlowView]:
        if self._server.membership.shared:
            await self._server.runtime.flows.start()
        return [self._with_triggers(each) for each in self._server.runtime.flows.all() if sight.sees(each.project)]

    async def flow(self, name: str) -> FlowView:
        await self._server.runtime.flows.refresh(name)
        return self._with_triggers(self._server.runtime.flows.newest(name).view(whole=True))

    async def flow_file(self, name: str) -> FlowFileView:
        """The file of its newest version."""
        flows = self._server.runtime.flows
        await flows.refresh(name)
        newest = flows.newest(name)
        return replace(await flows.files.find(name, newest.digest), beside=stored_beside(newest.flow))

    def _with_triggers(self, view: FlowView) -> FlowView:
        return replace(view, triggers=self._server.runtime.triggers.of(view.name))

    # Triggers

    async def _check_triggers(self, flow: Flow) -> None:
        """Refuse triggers that name what is not there, or may not be used."""
        triggers = flow.triggers or FlowTriggers()
        if triggers.files is not None:
            await self._check_place(flow.name, triggers.files)
            await self._check_names(flow.name)
        if triggers.schedule is not None:
            await self._check_schedule(flow, triggers.schedule)
        for receiver in [each for notice in triggers.notices for each in notice.notify]:
            await self._check_receiver(flow.name, receiver)

    async def _check_place(self, flow: str, files: FileArrival) -> None:
        if files.element:
            if await self._catalogue.elements.find(files.element) is None:
                known = ", ".join(each.name for each in await self._catalogue.elements.all()) or "none"
                raise NotFound(
                    f"flow {flow}, on.files.in: there is no storage element {files.element!r:.100} (known: {known});"
                    f" add it with mendflow data storage add --name {files.element:.100} --url URL"
                )
            return
        try:
            await self._server.elements.list(folder_element(files.folder), "")
        except StorageUnavailable as error:
            raise InvalidRequest(
                f"flow {flow}, on.files.in: {error}; a folder is one of the server's machine: make it there, or"
                " name a storage element as STORE:PATH"
            ) from None

    async def _check_names(self, flow: str) -> None:
        """The watch and the data set of a flow have names that nobody else may have used."""
        name = trigger_name(flow)
        if await self._server.runtime.watches.exists(name):
            raise Conflict(f"flow {flow}, on.files: its watch would be {name}, and there is one already; remove that")
        known = await self._sets.find(name)
        others = [pool.rule for pool in known.pools.values() if not pool.removed] if known is not None else []
        if any(rule.flow != flow for rule in others) or (known is not None and known.closed):
            raise Conflict(f"flow {flow}, on.files: its data set would be {name}, and somebody uses that otherwise")

    async def _check_schedule(self, deployed: Flow, trigger: ScheduleTrigger) -> None:
        """The schedule of a flow has its name, which nobody else may have used."""
        flow = deployed.name
        self._server.runtime.schedules.of_flows.demand_zone(trigger)
        try:
            await self._server.runtime.staging.demand_tables(deployed, trigger.inputs)
        except RequestError as error:
            raise InvalidRequest(f"flow {flow}, on.schedule.inputs: {error.message}") from None
        found = await self._server.runtime.schedules.service.find(flow)
        if found is not None and not found.of_flow:
            raise Conflict(
                f"flow {flow}, on.schedule: its schedule would be {flow}, and somebody made one of that name; remove it"
                f" by mendflow schedules remove {flow}"
            )

    async def _schedule_as_said(self, flow: str) -> None:
        schedules = self._server.runtime.schedules
        await schedules.of_flows.follow(flow)
        schedules.starter.changed()

    async def _check_receiver(self, flow: str, receiver: str) -> None:
        if is_address(receiver):
            check_address(address_of(receiver), self._server.poster)
            return
        try:
            await self._server.runtime.notifier.webhooks.get(receiver)
        except NotFound as error:
            raise NotFound(
                f"flow {flow}, on: {error.message}; add it with mendflow admin webhooks add URL --name {receiver:.100}"
            ) from None

    async def _watch_as_said(self, flow: str, *, had_watch: bool, who: str) -> None:
        """Have the data set of the flow's watch start cases, or none any more, and look at once."""
        runtime, watch = self._server.runtime, self._server.runtime.triggers.watch_of(flow)
        await self._settled()
        if watch is not None:
            project = await self._sets.project_of(watch.data_set.name) or runtime.flows.project_of(flow) or ""
            await self._sets.define(watch.data_set, who=who, project=project)
        elif had_watch:
            await self._sets.define(DataSetSpec(name=trigger_name(flow)), who=who)
        await runtime.watches.changed(gone="" if watch is not None or not had_watch else trigger_name(flow))

    # What belongs to the triggers of a flow is changed by deploying it

    async def put_data_set(self, wish: DataSetSpec, *, who: str, project: str = "") -> DataSetView:
        self._demand_no_trigger(wish.name, "data set")
        return await super().put_data_set(wish, who=who, project=project)

    async def close_set(self, name: str, *, who: str) -> DataSetView:
        self._demand_no_trigger(name, "data set")
        return await super().close_set(name, who=who)

    async def put_watch(self, watch: FolderWatch, *, who: str) -> WatchView:
        self._demand_no_trigger(watch.name, "watch")
        return await super().put_watch(watch, who=who)

    async def remove_watch(self, name: str, *, who: str) -> WatchView:
        self._demand_no_trigger(name, "watch")
        return await super().remove_watch(name, who=who)

    def _demand_no_trigger(self, name: str, what: str) -> None:
        if flow := self._server.runtime.triggers.flow_with(name):
            raise Conflict(f"{what} {name} belongs to flow {flow}: change its `on:`, and deploy it again")
