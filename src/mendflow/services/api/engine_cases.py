"""Other engines, what they tell and ask, and their cases as people see and steer them: named ENGINE:CASE, else like
our own.

What is shown is what the engine last told. An order to it is given and not waited for: the engine fetches its orders
when it likes."""

from collections.abc import Mapping
from typing import Final, cast

from mendflow.core.model.engine_views import EngineOrder, EngineView, EventAnswer
from mendflow.core.model.errors import Conflict, NotFound
from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.principals import EVERYTHING, NO_PROJECT, Sight
from mendflow.core.model.repair import ExceptionEvent
from mendflow.core.model.repair_views import HistoryEntry
from mendflow.core.model.values import Value
from mendflow.core.model.views import (
    CASE_END_STATES,
    ITEM_END_STATES,
    CaseView,
    ItemState,
    ItemView,
    NameCount,
    Reason,
)
from mendflow.services.api.domain_reader import DomainReader
from mendflow.services.base.engine_interfaces import ItemFacts
from mendflow.services.cases import suspensions
from mendflow.services.cases.live_case import LiveCase
from mendflow.services.observe import history
from mendflow.services.observe.history_order import merge_entries
from mendflow.services.recovery.decisions import EngineCaseId, name_of
from mendflow.services.recovery.engines.registry import ForeignEngines
from mendflow.services.recovery.engines.remote import PERSON, EngineCase

_ITEM_STATES: Final = {
    "staging",
    "waiting",
    "running",
    "suspended",
    *ITEM_END_STATES,
}
_COUNTED: Final = {"completed": "done", "suspended": "waiting", "staging": "waiting"}


class EngineCaseOperations(DomainReader):
    @property
    def _engines(self) -> ForeignEngines:
        return self._server.runtime.engines

    async def engines(self, *, sight: Sight = EVERYTHING) -> list[EngineView]:
        return [each for each in self._engines.all() if sight.sees(each.project)]

    async def register_engine(self, name: str, *, who: str, project: str = "") -> EngineView:
        view = await self._engines.register(name, who=who, project=project)
        await self._settled()
        return view

    async def engine_event(self, engine: str, event: ExceptionEvent, *, who: str) -> EventAnswer:
        held = await self._engines.tell(engine, event, who=who)
        await self._settled()
        return EventAnswer(event=event.id, held=held)

    async def engine_case(
        self, engine: str, case: str, flow: str, facts: dict[str, Value] | None = None, *, who: str
    ) -> CaseView:
        found = await self._engines.report(engine, case, flow, facts or {}, who=who)
        await self._settled()
        return view_of_case(found, self._server.runtime.manager.live)

    async def engine_orders(self, engine: str, *, who: str, wait_ms: int = 0) -> list[EngineOrder]:
        """The orders for the engine; the answer is held back until there is one, or the time is over."""
        return await self._engines.orders(engine, who=who, wait_ms=wait_ms)

    async def engine_done(self, engine: str, order: str, answer: Value = True, *, who: str) -> list[EngineOrder]:
        """Said twice it counts once. Returns the orders that are still open."""
        self._engines.done(engine, order, answer, who=who)
        await self._settled()
        return await self.engine_orders(engine, who=who)

    def _foreign(self, case: str) -> EngineCaseId | None:
        """The case of another engine that is meant; None if it is one of ours."""
        return self._engines.named(case) if ":" in case else None

    async def _foreign_subject(self, subject: str) -> tuple[EngineCaseId, str] | None:
        """A case of another engine, and its item, by ENGINE:CASE or ENGINE:CASE:ITEM. Ids of its cases may have
        colons too."""
        whole = self._foreign(subject)
        if whole is None:
            return None
        case, colon, item = whole.case.rpartition(":")
        try:
            await self._engines.case(whole)
        except NotFound:
            if not colon:
                raise
            return EngineCaseId(whole.engine, CaseId(case)), item
        return whole, ""

    async def foreign_view(self, case: EngineCaseId) -> CaseView:
        return view_of_case(await self._engines.case(case), self._server.runtime.manager.live)

    async def engine_cases(self, engine: str) -> list[CaseView]:
        """The cases of an engine that are not over, as it last told of them."""
        live = self._server.runtime.manager.live
        return [view_of_case(each, live) for each in self._engines.cases(engine)]

    async def _flow_and_project(self, case: EngineCaseId) -> tuple[str, str]:
        """Of a case, ours or another engine's."""
        if case.engine:
            return (await self._engines.case(case)).facts.flow, self._engines.project_of(case.engine) or NO_PROJECT
        document = await self._document(case.case)
        return document.flow, document.project

    async def foreign_items(self, case: EngineCaseId) -> list[ItemView]:
        """Its live items as they were last told, and the names of the others with their states."""
        found = await self._engines.case(case)
        told = {each.task for each in found.facts.items}
        others = [
            ItemFacts(item=ItemId(name), task=name, kind="", status=status)
            for name, status in found.facts.statuses.items()
            if name not in told
        ]
        return [_item_view(found, each, place) for place, each in enumerate([*found.facts.items, *others], 1)]

    async def foreign_item(self, case: EngineCaseId, item: str) -> ItemView:
        for each in await self.foreign_items(case):
            if each.item == item:
                return each
        raise NotFound(
            f"engine {case.engine} has told of no item {item!r:.80} of case {case.case}; `mendflow items"
            f" {name_of(case)}` lists them"
        )

    async def foreign_reason(self, case: EngineCaseId, item: str) -> Reason:
        """Why a case of another engine, or an item, is in its state: who holds it, and what its engine has still to
        do."""
        view, found = await self.foreign_view(case), await self._engines.case(case)
        holds = [hold for hold in view.holds if not item or hold.item in (None, item)]
        facts = [suspensions.sentence(CaseId(name_of(case)), [hold]) for hold in holds]
        if view.status not in CASE_END_STATES:
            facts += self._pending_orders(case)
        engine = f"as engine {case.engine} last told"
        if item:
            told = await self.foreign_item(case, item)
            sentence = f"{item} of case {view.id} is {told.state}, {engine}."
            return Reason(subject=f"{view.id}:{item}", state=told.state, sentence=sentence, facts=facts)
        live = [f"{each.item} is {each.status}" for each in found.facts.items[:3]]
        return Reason(
            subject=view.id,
            state=view.status,
            sentence=f"case {view.id} is {view.status}, {engine}.",
            facts=[*facts, *live],
        )

    def _pending_orders(self, case: EngineCaseId) -> list[str]:
        calls = self._engines.open_orders(case)
        return [f"engine {case.engine} has still to do: {', '.join(calls)}"] if calls else []

    async def foreign_history(self, case: EngineCaseId) -> list[HistoryEntry]:
        await self._engines.case(case)
        store, steps = await self._read(), list[HistoryEntry]()
        decisions = await self._server.runtime.exceptions.decisions.of_case(case.case, case.engine)
        for decision in decisions:
            if decision.exlet_case is not None:
                steps += history.primitives(await history.journal(store, decision.exlet_case), decision)
        return merge_entries(await self._engines.history(case), history.decision_entries(decisions), steps)

    # Orders of people

    async def steer_foreign(self, call: str, case: EngineCaseId, item: str, who: str, reason: str = "") -> CaseView:
        """Order `suspend`, `continue` or `cancel` of a case of another engine, or of an item."""
        found = await self._engines.case(case)
        if found.ended_at:
            raise Conflict(f"case {name_of(case)} is over: {found.facts.status}")
        engine, about = self._engines.engine_of(case), ItemId(item) if item else None
        by = f"{PERSON} {who} {self._server.clock.now()}"
        if call == "suspend":
            engine.hold_for_person(case.case, about, by)
        elif call == "continue" and not engine.free_for_person(case.case, about, by):
            what = f"item {item} of case {name_of(case)}" if item else f"case {name_of(case)}"
            raise Conflict(f"{what} is not suspended")
        elif call == "cancel":
            engine.order("remove" if item else "cancel", case.case, about, by, {"reason": reason})
        await self._settled()
        return await self.foreign_view(case)


def view_of_case(found: EngineCase, live: Mapping[CaseId, LiveCase]) -> CaseView:
    facts = found.facts
    return CaseView(
        id=CaseId(found.name),
        flow=facts.flow,
        digest=facts.version,
        status=found.status,
        started_at=found.started_at,
        ended_at=found.ended_at,
        inputs=facts.data,
        owner=found.owner,
        engine=found.engine,
        counts=_counts(found),
        holds=[
            suspensions.hold_of(ItemId(item) if item else None, suspensions.PERSON if each == PERSON else each, live)
            for item, holders in found.holders.items()
            for each in holders
        ],
    )


def _counts(found: EngineCase) -> list[NameCount]:
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for each in found.facts.items:
        state = _state(each.status)
        of_name = counts.setdefault((each.task, each.kind), {})
        word = _COUNTED.get(state, state)
        of_name[word] = of_name.get(word, 0) + 1
    return [NameCount(name=name, kind=kind, **numbers) for (name, kind), numbers in counts.items()]


def _item_view(found: EngineCase, item: ItemFacts, place: int) -> ItemView:
    held = found.is_suspended or bool(found.holders.get(item.item))
    state = _state(item.status)
    return ItemView(
        case=CaseId(found.name),
        item=item.item,
        name=item.task,
        kind=item.kind or "item",
        serial=item.serial or place,
        state=cast(ItemState, "suspended" if held and state not in ITEM_END_STATES else state),
        created_at=item.started_at,
        place=str(place),
    )


def _state(status: str) -> str:
    """Our word for a state that another engine tells in its own words."""
    return status if status in _ITEM_STATES else "running"
