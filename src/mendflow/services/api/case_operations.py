"""The part of the domain that starts cases and steers them."""

from collections.abc import Callable, Collection
from typing import Final

from mendflow.core.engine.dependents import demand_names
from mendflow.core.engine.messages import Cancel, Deliver, RemoveItem, Resume, Suspend
from mendflow.core.model.errors import Conflict, InvalidRequest
from mendflow.core.model.faults import asked_for_by
from mendflow.core.model.flow import Flow, UnhandledPolicy
from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.values import Value
from mendflow.core.model.views import CachePolicy, CaseOrigin, CaseView
from mendflow.services.api.alert_operations import AlertOperations
from mendflow.services.cases.case_starter import CaseStarter, StartOptions, demand_key, demand_run_again, like_earlier
from mendflow.services.cases.flows import FlowDocument
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.recovery.decisions import EngineCaseId

NOT_WITH_RERUN: Final = {
    "cache_from": "a case that is run again by `rerun_of` gives its own results",
    "resume": "a case that is run again by `rerun_of` is over, and another begins in its place",
}


NOT_ACROSS_PROJECTS: Final = {
    "cache_from": "its results are not used there",
    "rerun_of": "it is not run again there",
}


class CaseOperations(AlertOperations):
    _chance: Callable[[int], str]

    async def start(
        self,
        name: str,
        inputs: dict[str, Value],
        *,
        who: str,
        cache: CachePolicy = "",
        cache_from: str = "",
        key: str = "",
        notify: str = "",
        origin: CaseOrigin | None = None,
        again: list[str] | None = None,
        on_unhandled: UnhandledPolicy = "",
        resume: bool = False,
        rerun_of: str = "",
        teller: str = "",
    ) -> CaseView:
        """Start a case of the newest version of a deployed flow. `cache` says which results of the store's cases are
        used for jobs made from the same: of jobs that declare enough, or all. `cache_from` names a case (or "last")
        whose results are used for unchanged jobs. `key` makes the call idempotent: the same key is the same case.
        `notify` is an address that is told when the case ends. `origin` says where flow and inputs came from.
        `again` names jobs that use no earlier results, nor does what depends on them. With `resume`, a stopped case of
        the same flow and inputs is continued instead. `rerun_of` names a case that this one runs again, and in whose
        place it stands. `teller` is who says where flow and inputs came from."""
        options = StartOptions(
            cache=cache,
            cache_from=cache_from,
            key=key,
            notify=notify,
            origin=origin,
            again=again,
            on_unhandled=on_unhandled,
            resume=resume,
            rerun_of=rerun_of,
            teller=teller,
        )
        return await self._start(name, inputs, None, who, options)

    async def start_with_flow(
        self,
        flow: Flow,
        inputs: dict[str, Value],
        *,
        who: str,
        cache: CachePolicy = "",
        cache_from: str = "",
        key: str = "",
        notify: str = "",
        origin: CaseOrigin | None = None,
        again: list[str] | None = None,
        on_unhandled: UnhandledPolicy = "",
        resume: bool = False,
        rerun_of: str = "",
        project: str = "",
        teller: str = "",
    ) -> CaseView:
        """Start a case of a flow that is sent along. What is deployed under its name stays as it is; where nobody has
        deployed anything, the flow is known by its name from then on, in this project."""
        options = StartOptions(
            cache=cache,
            cache_from=cache_from,
            key=key,
            notify=notify,
            origin=origin,
            again=again,
            on_unhandled=on_unhandled,
            resume=resume,
            rerun_of=rerun_of,
            teller=teller,
        )
        version = await self._server.runtime.flows.version_sent_with_start(flow, who=who, project=project)
        return await self._start(flow.name, inputs, version, who, options)

    async def _start(
        self, name: str, inputs: dict[str, Value], version: FlowDocument | None, who: str, options: StartOptions
    ) -> CaseView:
        if options.notify:
            self._check(options.notify)
        demand_key(options.key, "key")
        if options.rerun_of and (options.cache_from or options.resume):
            field = "cache_from" if options.cache_from else "resume"
            raise InvalidRequest(f"{field}: {NOT_WITH_RERUN[field]}; leave it away", field=field)
        starter, is_stopped = self._starter(), self._server.stopped.holds
        if options.resume and (like := await starter.find_like(name, inputs, is_stopped, options, version)):
            starter.update_run_options(like, options.told_origin, options.on_unhandled)
            return await self.resume(like, who=who)
        earlier = await self._earlier_case(name, version, options)
        return self._view(await starter.start(name, inputs, who, options, cache_from=earlier, version=version))

    async def _earlier_case(self, flow: str, version: FlowDocument | None, options: StartOptions) -> CaseId | None:
        """The case that is run again, or whose results are used. It is of the same project, whoever asks."""
        if options.rerun_of:
            document = await self._document(await self._id(options.rerun_of, flow=flow))
            await self._demand_project(document, flow, version, "rerun_of")
            demand_run_again(document, flow)
            _demand_over(document)
            return document.id
        if not options.cache_from:
            return None
        if options.cache == "none":
            text = (
                f"it is to use the results of case {options.cache_from!r:.80} and no earlier results at all:"
                " leave one away"
            )
            raise InvalidRequest(text, field="cache_from")
        document = await self._document(await self._id(options.cache_from, flow=flow))
        await self._demand_project(document, flow, version, "cache_from")
        return document.id

    async def _demand_project(self, earlier: CaseDocument, flow: str, version: FlowDocument | None, field: str) -> None:
        if version is None:
            await self._server.runtime.flows.refresh(flow)
        project = version.project if version is not None else await self._starter().project_of(flow)
        if earlier.project != project:
            raise InvalidRequest(
                f"{field}: case {earlier.id} is of project {earlier.project}, and flow {flow} of project {project}:"
                f" {NOT_ACROSS_PROJECTS[field]}",
                field=field,
            )

    async def rerun(
        self,
        case: str,
        *,
        who: str,
        from_failed: bool = False,
        cache: CachePolicy = "declared",
        inputs: dict[str, Value] | None = None,
        again: list[str] | None = None,
        teller: str = "",
    ) -> CaseView:
        """Start a new case of the same flow and inputs, but for those given in `inputs`. Results of unchanged jobs that
        completed are used again, and those of other cases as `cache` says; with "none" everything runs; `again` names
        jobs that run with all that depends on them. `from_failed` refuses if nothing failed; of a case that completed
        all the same, because its flow let items fail, it runs these and what needs them."""
        document = await self._document(await self._id(case))
        _demand_over(document)
        if from_failed and document.status == "completed" and not any(each.failed for each in document.counts):
            raise Conflict(f"nothing failed in case {document.id}; without `from_failed` it is run again")
        flow = await self.flow_of(document.id)
        demand_names(flow, again or [])
        return await self._begin(like_earlier(document, who, teller, cache, inputs or {}, again or []), flow)

    async def _begin(self, wanted: CaseDocument, flow: Flow) -> CaseView:
        return self._view(await self._starter().begin(wanted, flow))

    def _starter(self) -> CaseStarter:
        return CaseStarter(self._server.runtime, self._server.store, self._server.clock, self._chance)

    async def suspend(self, case: str, item: str = "", *, who: str) -> CaseView:
        if (foreign := self._foreign(case)) is not None:
            return await self.steer_foreign("suspend", foreign, item, who)
        return await self._order(case, Suspend(item=ItemId(item) if item else None, who=who))

    async def resume(
        self, case: str, item: str = "", *, who: str, task_roles: Collection[str] | None = None
    ) -> CaseView:
        if (foreign := self._foreign(case)) is not None:
            return await self._resume_foreign(foreign, item, who, task_roles)
        id = await self._id(case)
        if self._server.stopped.holds(id):
            self._server.runtime.release(id)
            view = await self.case(id)
            if view.status == "running" and not (item or view.held):
                return view
        if await self._server.runtime.administration.retry_case(id, item, who=who, task_roles=task_roles):
            live = self._server.runtime.manager.live.get(id)
            if live is None or live.case.status != "suspended":
                await self._settled()
                return await self.case(id)
        view = await self._order(id, Resume(item=ItemId(item) if item else None, who=who))
        if not item:
            self._server.runtime.administration.let_go_on(id, who=who)
            await self._settled()
        return view

    async def _resume_foreign(
        self, case: EngineCaseId, item: str, who: str, task_roles: Collection[str] | None
    ) -> CaseView:
        """Try again what waits for a person; else let go on what is suspended."""
        administration = self._server.runtime.administration
        if await administration.retry_case(case.case, item, who=who, engine=case.engine, task_roles=task_roles):
            await self._settled()
            return await self.foreign_view(case)
        view = await self.steer_foreign("continue", case, item, who)
        if not item:
            self._server.runtime.administration.let_go_on(case.case, who=who, engine=case.engine)
            await self._settled()
        return view

    async def cancel(self, case: str, item: str = "", *, who: str, reason: str = "") -> CaseView:
        reason = reason or asked_for_by(who)
        if (foreign := self._foreign(case)) is not None:
            return await self.steer_foreign("cancel", foreign, item, who, reason)
        if not item:
            return await self._order(case, Cancel(reason=reason, who=who))
        view = await self._order(case, RemoveItem(item=ItemId(item), reason=reason, who=who))
        await self._server.runtime.recovery.item_removed(view.id, ItemId(item), reason)
        await self._settled()
        return view

    async def send(
        self, case: str, channel: str, value: Value = None, *, correlation: Value = None, id: str = ""
    ) -> CaseView:
        demand_key(id, "id")
        message = Deliver(id=id or self._chance(8), channel=channel, value=value, correlation=correlation)
        return await self._order(case, message)

    async def _order(self, case: str, command: Suspend | Resume | Cancel | RemoveItem | Deliver) -> CaseView:
        id = await self._id(case)
        document = await self._document(id)
        if not document.live:
            raise Conflict(f"case {id} is over: {document.status}")
        if not await self._server.runtime.recovery.steer_end(id, command):
            await self._server.runtime.manager.command(id, command)
        await self._settled()
        return await self.case(id)


def _demand_over(document: CaseDocument) -> None:
    """Refuse to run a live case again: two would do the same work, and whether the first fails is not known yet."""
    if document.live:
        raise Conflict(
            f"case {document.id} has not ended, it is {document.status}: mendflow resume {document.id} continues it"
            f" if it was stopped, mendflow cancel {document.id} ends it"
        )
