"""Which faults of an item the flow itself would handle: recovery leaves those to the flow. And which the flow goes on
after: a handler may also throw again, and then the fault is as it was."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

from mendflow.core.engine.plan import inner_parts
from mendflow.core.engine.state import Case, ScopeInstance, ScopeStage
from mendflow.core.model.flow import Catch, Exit, Rethrow, Scope, Throw
from mendflow.core.model.ids import ItemId

ALL = "*"


def faults_caught_around(case: Case, item: ItemId) -> list[str]:
    """The names of the faults that some scope around the item handles; `*` stands for all of them."""
    return sorted({handler.fault or ALL for _, handlers in _handlers_around(case, item) for handler in handlers})


Course = Literal["goes-on", "passes", "unsure"]
"""What the flow does about a fault: it goes on after it; whatever the flow is called by hears of it; or what a handler
does says."""


def course_after(case: Case, item: ItemId, fault: str) -> Course:
    """What the flow does about a fault of this name of the item."""
    for activity, handlers in _handlers_around(case, item):
        by_name = {handler.fault: handler for handler in reversed(handlers)}
        handler = by_name.get(fault) or by_name.get(None)
        if isinstance(activity, Scope) and activity.exit_on_standard_fault:
            return "unsure"
        if handler is None:
            continue
        ends = {type(each) for each in _inside(handler) if isinstance(each, _NOT_GOING_ON)}
        if not ends:
            return "goes-on"
        if ends != {Rethrow}:
            return "unsure"
    return "passes"


_NOT_GOING_ON: Final = (Throw, Rethrow, Exit)


def _inside(handler: Catch) -> Iterator[Any]:
    pending: list[Any] = [handler]
    while pending:
        activity = pending.pop()
        yield activity
        pending += inner_parts(activity)


def _handlers_around(case: Case, item: ItemId) -> Iterator[tuple[Any, Sequence[Catch]]]:
    """The scopes around the item, from the inside outwards, and their handlers that take faults of the engine or of a
    job: one for XML data without a name does not."""
    instance = case.instances.get(case.index.items.get(item, 0))
    scope = case.instances.get(instance.scope) if instance is not None else None
    while isinstance(scope, ScopeInstance):
        if scope.stage in (ScopeStage.BODY, ScopeStage.CLOSING):
            node = case.plan.nodes[scope.node]
            handlers: list[Catch] = [case.plan.nodes[each].activity for each in node.catches]
            yield node.activity, [each for each in handlers if each.fault or each.holds is None]
        scope = case.instances.get(scope.scope) if scope.scope != scope.id else None
