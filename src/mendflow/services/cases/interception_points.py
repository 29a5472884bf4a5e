"""Interception points: points in the life of cases and items at which the exception service may hold what is about to
happen.

Where a flow has no rules for a point, passing it costs one look-up. Where it has some, the action is held, the service
is asked a moment later, and unless it says to hold, the action continues. Nothing of this is stored here: an order that
was not carried out, or an outcome that the case has not recorded, is repeated after a crash, comes to the same point
under the same id, and the service knows what it decided."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final, NamedTuple

from mendflow.core.engine import find_item
from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.repair import ExceptionEvent, ExceptionType
from mendflow.core.model.values import Value
from mendflow.services.base.background_tasks import BackgroundTasks
from mendflow.services.base.engine_interfaces import InterfaceX
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.live_case import Interception, LiveCase, name_of


class InterceptedTypes:
    """The types of exception that a flow has rules for. Those that every job passes are attributes, so that the check
    is one look-up."""

    __slots__ = ("item_post", "item_pre", "types")

    def __init__(self, types: frozenset[ExceptionType] = frozenset()) -> None:
        self.types = types
        self.item_pre = ExceptionType.ITEM_PRE in types
        self.item_post = ExceptionType.ITEM_POST in types

    def __contains__(self, type: ExceptionType) -> bool:
        return type in self.types


InterceptedFlows = Mapping[str, InterceptedTypes]
NO_TYPES: Final = InterceptedTypes()


class NoInterception(dict[str, InterceptedTypes]):
    """No flow has rules."""

    def __missing__(self, flow: str) -> InterceptedTypes:
        return NO_TYPES


class RulesChanged(NamedTuple):
    """Rules were added or changed: from now on these flows are intercepted at these points."""

    watched: InterceptedFlows


def event_id(case: CaseId, serial: int, type: ExceptionType) -> str:
    return f"{case}/{serial}/{type.value}" if serial else f"{case}/{type.value}"


class InterceptionPoints:
    """`watched` are the types of exception that there are rules for, by flow."""

    def __init__(self, live: Mapping[CaseId, LiveCase], ledger: Ledger, hub: Hub) -> None:
        self._live = live
        self._ledger = ledger
        self._hub = hub
        self.watched: InterceptedFlows = NoInterception()
        hub.subscribe(RulesChanged, self._rules_changed)
        self._cases: dict[str, CaseId] = {}
        self._background = BackgroundTasks(ledger)

    @property
    def service(self) -> InterfaceX | None:
        """The service that decides at these points, if there is one."""
        return self._hub.provider(InterfaceX)

    def _rules_changed(self, change: "RulesChanged") -> None:
        self.watched = change.watched

    async def stop(self) -> None:
        await self._background.stop()

    def ask(
        self,
        live: LiveCase,
        type: ExceptionType,
        go: Callable[[], Awaitable[None]],
        *,
        serial: int = 0,
        item: ItemId | None = None,
        patient: bool = False,
        facts: Callable[[], dict[str, Value]] | None = None,
        **more: Any,
    ) -> None:
        """Hold an action until the service has decided about it."""
        event = ExceptionEvent(
            id=event_id(live.id, serial, type),
            type=type,
            case=live.id,
            flow=live.document.flow,
            item=item,
            task=name_of(item) if item else "",
            serial=serial,
            facts=facts() if facts is not None else {},
            **more,
        )
        live.held[event.id] = Interception(event.id, item, go, patient=patient)
        self._cases[event.id] = live.id
        self.later(self._ask(event))

    async def _ask(self, event: ExceptionEvent) -> None:
        service = self.service
        assert service is not None, "intercepted flows have a service to ask"
        with self._ledger.atomic():
            if not await service.tell(event):
                await self.release(event.id)

    async def release(self, event: str) -> None:
        """Continue an action that was held; if its item or case is suspended, as soon as that ends."""
        live = self._live.get(self._cases.get(event, CaseId("")))
        held = live.held.get(event) if live is not None else None
        if live is None or held is None:
            self._cases.pop(event, None)
            return
        held.released = True
        await self._go(live, held)

    def forget(self, live: LiveCase) -> None:
        """The case is over: drop the actions that it held."""
        for event in live.held:
            self._cases.pop(event, None)
        live.held.clear()

    async def recheck(self, live: LiveCase) -> None:
        """The case has changed: perhaps an action that was released can continue now."""
        for held in list(live.held.values()):
            if held.released:
                await self._go(live, held)

    async def _go(self, live: LiveCase, held: Interception) -> None:
        if held.patient and standing(live, held.item):
            return
        if live.held.pop(held.event, None) is not None:
            self._cases.pop(held.event, None)
            await held.go()

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        self._background.start(work)


def standing(live: LiveCase, item: ItemId | None) -> bool:
    """Whether the item, or the whole case, is suspended."""
    if live.case.over:
        return live.document.ending is not None and bool(live.document.ending.holders)
    if live.case.status == "suspended":
        return True
    found = find_item(live.case, item) if item else None
    return found is not None and found.suspended
