"""Interfaces A and B of this server's engine: what exlets do to its cases becomes commands in their journals.

A case that has ended in the engine and whose end was not published yet can still be suspended, written to and removed:
these changes are stored in its document, because its journal accepts no more."""

from collections.abc import Iterator
from typing import Final

from mendflow.core.engine import Case, case_data, find_item, item_data, item_order, undoable
from mendflow.core.engine.caught_faults import faults_caught_around
from mendflow.core.engine.data_updates import write_outputs
from mendflow.core.engine.messages import (
    Cancel,
    Command,
    ForceComplete,
    ForceFail,
    OfferTask,
    RemoveItem,
    RestartItem,
    Resume,
    Suspend,
    WriteData,
)
from mendflow.core.model.errors import Conflict, NotFound
from mendflow.core.model.faults import Fault
from mendflow.core.model.ids import CaseId, ItemId, item_name
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.values import Value
from mendflow.core.model.views import CaseHold, CaseTask
from mendflow.services.base.cluster import CASE_KIND
from mendflow.services.base.engine_interfaces import CaseFacts, ItemFacts
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.flows import Flows
from mendflow.services.cases.intercepted_types import event_id
from mendflow.services.cases.interception_points import InterceptionPoints, is_suspended
from mendflow.services.cases.live_case import EndAmendments, LiveCase
from mendflow.services.cases.nested_tasks import NestedTasks
from mendflow.services.cases.suspensions import holds_of
from mendflow.services.cases.user_tasks import UserTasks

ITEMS_MAX: Final = 500
ENVIRONMENTS_MAX: Final = 200
"""A case may have any number of items; a context shows these many at most."""


class LocalEngine:
    def __init__(
        self,
        *,
        manager: FlowManager,
        flows: Flows,
        ledger: Ledger,
        interception_points: InterceptionPoints,
        tasks: UserTasks,
    ) -> None:
        self._tasks = tasks
        self._nested_tasks = NestedTasks(tasks, manager.live)
        self._manager = manager
        self._flows = flows
        self._ledger = ledger
        self._interception_points = interception_points

    # A

    async def flows(self) -> list[str]:
        return [view.name for view in self._flows.all()]

    # B

    def project_of(self, case: CaseId) -> str | None:
        live = self._manager.live.get(case)
        return live.document.project if live is not None else None

    def open_tasks(self, case: CaseId, item: ItemId | None) -> list[CaseTask]:
        return self._nested_tasks.inside(case, item)

    async def cases_of(self, flow: str, project: str) -> list[CaseId]:
        known = {id: live.document for id, live in self._manager.live.items()}
        return [id for id, each in known.items() if each.live and (each.flow, each.project) == (flow, project)]

    async def facts(self, case: CaseId, item: ItemId | None = None) -> CaseFacts | None:
        live = self._manager.live.get(case)
        return facts_of(live, item) if live is not None else None

    async def suspended(self, case: CaseId, item: ItemId | None) -> bool:
        live = self._manager.live.get(case)
        return live is not None and is_suspended(live, item)

    async def suspend(self, case: CaseId, item: ItemId | None, *, holder: str, by: str) -> bool:
        if (ending := self._ending(case, by)) is not None:
            ending.holders = [*ending.holders, holder]
            return True
        return await self._do(case, Suspend(item=item, holder=holder, by=by))

    async def resume(self, case: CaseId, item: ItemId | None, *, holder: str, by: str) -> bool:
        if (ending := self._ending(case, by)) is not None:
            ending.holders = [each for each in ending.holders if each != holder]
            await self._interception_points.recheck(self._manager.live[case])
            return True
        return await self._do(case, Resume(item=item, holder=holder, by=by))

    async def cancel(self, case: CaseId, *, reason: str, by: str) -> bool:
        if (ending := self._ending(case, by)) is not None:
            ending.removed = reason or "the case was removed"
            return True
        return await self._do(case, Cancel(reason=reason, by=by))

    async def restart(
        self, case: CaseId, item: ItemId, *, by: str, values: dict[str, Value] | None = None, level: int = 0
    ) -> bool:
        return await self._do(case, RestartItem(item=item, values=values or {}, level=level, by=by))

    async def complete(self, case: CaseId, item: ItemId, outputs: Value, *, by: str) -> bool:
        return await self._do(case, ForceComplete(item=item, outputs=outputs, by=by))

    async def fail(self, case: CaseId, item: ItemId, fault: Fault, *, proceed: bool, by: str) -> bool:
        return await self._do(case, ForceFail(item=item, fault=fault, proceed=proceed, by=by))

    async def remove(self, case: CaseId, item: ItemId, *, by: str) -> bool:
        return await self._do(case, RemoveItem(item=item, by=by))

    async def write(
        self, case: CaseId, item: ItemId | None, values: dict[str, Value], *, by: str, ended: int = 0
    ) -> bool:
        if (ending := self._ending(case, by)) is not None:
            ending.outputs = {**ending.outputs, **values}
            return True
        if item is not None and ended and self._serial(case, item) == ended:
            return await self._write_outputs(case, item, values, ended, by)
        held = self._is_held_back(case, item)
        done = await self._do(case, WriteData(values=values, item=item, held=held, by=by))
        if done and item is not None and not held:
            self._refresh_task(case, item)
        return done

    def _serial(self, case: CaseId, item: ItemId) -> int:
        live = self._manager.live.get(case)
        found = find_item(live.case, item) if live is not None else None
        return found.serial if found is not None else 0

    async def _write_outputs(self, case: CaseId, item: ItemId, values: dict[str, Value], serial: int, by: str) -> bool:
        """Write into what the item gave, before the flow sees it."""
        held = self._manager.live[case].held.get(event_id(case, serial, ExceptionType.ITEM_POST))
        if held is not None and held.outcome is not None:
            write_outputs(held.outcome.outputs, values, item)  # refused now, where whoever wrote it hears of it
        return await self._do(case, WriteData(values=values, item=item, serial=serial, by=by))

    def _refresh_task(self, case: CaseId, item: ItemId) -> None:
        """A user task that is offered shows what was written into its item."""
        live = self._manager.live.get(case)
        found = find_item(live.case, item) if live is not None else None
        order = item_order(live.case, found.serial) if live is not None and found is not None else None
        if isinstance(order, OfferTask):
            self._tasks.rewrite(case, order)

    def _is_held_back(self, case: CaseId, item: ItemId | None) -> bool:
        live = self._manager.live.get(case)
        return (
            live is not None
            and item is not None
            and any(held.patient and held.item == item for held in live.held.values())
        )

    async def release(self, event: str) -> None:
        await self._interception_points.release(event)

    async def _do(self, case: CaseId, command: Command) -> bool:
        try:
            await self._manager.command(case, command)
        except (Conflict, NotFound):
            return False  # it is over, or already in that state
        return True

    async def held_by(self, holder: str, case: CaseId) -> list[CaseHold]:
        live = self._manager.live.get(case)
        by = f"exlet {holder}"
        return [each for each in holds_of(live, self._manager.live) if each.by == by] if live is not None else []

    def ending_case(self, case: CaseId) -> LiveCase | None:
        """The case, if it has ended in the engine and its end is not published yet."""
        live = self._manager.live.get(case)
        return live if live is not None and live.case.over and live.document.live else None

    async def release_end(self, live: LiveCase) -> None:
        """Release the end of the case, which was held."""
        if live.document.ending is not None and live.document.ending.holders:
            live.document.ending.holders = []
            self._ledger.touch(CASE_KIND, live.id, live.document)
        await self._interception_points.recheck(live)

    def _ending(self, case: CaseId, by: str) -> EndAmendments | None:
        """The amendments of a case that is over in the engine and whose end is not published; None for all others, and
        for a step that was done before."""
        live = self.ending_case(case)
        if live is None:
            return None
        if live.document.ending is None:
            live.document.ending = EndAmendments()
        ending = live.document.ending
        self._ledger.touch(CASE_KIND, case, live.document)
        if by and by in ending.done:
            return EndAmendments()
        ending.done = [*ending.done, by] if by else ending.done
        return ending


def facts_of(live: LiveCase, item: ItemId | None = None) -> CaseFacts:
    """The case as its context shows it, the item asked about first."""
    case, document = live.case, live.document
    at_hand = case.instances.get(case.index.items.get(item, 0)) if item else None
    variables, results = _visible(case, at_hand.env) if at_hand is not None else _all_visible(case)
    variables.pop("inputs", None)
    held = document.status if case.over else case.status
    return CaseFacts(
        case=live.id,
        flow=document.flow,
        version=document.digest,
        status=held,
        started_at=document.started_at,
        data={**case_data(case), **variables, **(case.outputs if case.over else {})},
        parent=document.parent,
        mends=document.mends,
        items=list(_items(case, item)),
        statuses=live.tally.statuses(),
        jobs=case.final_results if case.over else results,
        undoable=undoable(case),
        is_started_here=live.is_started_here,
        catches=faults_caught_around(case, item) if item is not None else [],
    )


def _visible(case: Case, env: int) -> tuple[dict[str, Value], dict[str, Value]]:
    """Variables and results that are visible to an item, the inner ones first."""
    variables: dict[str, Value] = {}
    results: dict[str, Value] = {}
    while env:
        found = case.envs[env]
        variables = {**found.variables, **variables}
        results = {**found.results, **results}
        env = found.parent
    return variables, results


def _all_visible(case: Case) -> tuple[dict[str, Value], dict[str, Value]]:
    """Variables and results of a whole case, the outer ones first."""
    variables: dict[str, Value] = {}
    results: dict[str, Value] = {}
    for found, _ in zip(case.envs.values(), range(ENVIRONMENTS_MAX), strict=False):
        variables = {**found.variables, **variables}
        results = {**found.results, **results}
    return variables, results


def _items(case: Case, first: ItemId | None) -> Iterator[ItemFacts]:
    names = [first] if first in case.index.items else []
    for name in case.index.items:
        if len(names) >= ITEMS_MAX:
            break
        if name != first:
            names.append(ItemId(name))
    for each in names:
        assert each is not None
        if (known := item_facts(case, each)) is not None:
            yield known


def item_facts(case: Case, item: ItemId) -> ItemFacts | None:
    live = find_item(case, item)
    if live is None:
        return None
    return ItemFacts(
        item=item,
        task=item_name(item),
        kind=live.kind,
        status="suspended" if live.suspended else live.phase,
        serial=live.serial,
        data=item_data(case, item),
        restarts=case.restarts.get(case.index.items[item], 0),
        level=case.levels.get(case.index.items[item], 0),
    )
