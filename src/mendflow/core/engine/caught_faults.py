"""Which faults of an item the flow itself would handle: recovery leaves those to the flow. And which the flow goes on
after: a handler may also throw again, and then the fault is as it was."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple

from mendflow.core.engine.plan import inner_parts
from mendflow.core.engine.state import Case, ForEachInstance, Instance, InstancePhase, ScopeInstance, ScopeStage
from mendflow.core.model.flow import Catch, Exit, Rethrow, Scope, Throw
from mendflow.core.model.ids import ItemId

ALL = "*"


def faults_caught_around(case: Case, item: ItemId) -> list[str]:
    """The names of the faults that some scope around the item handles; `*` stands for all of them."""
    return sorted({handler.fault or ALL for _, handlers in _scopes_around(case, item) for handler in handlers})


Course = Literal["goes-on", "tolerated", "passes", "unsure"]
"""What the flow does about a fault: it goes on after it; a loop lets it fail, unless too much of the loop fails;
whatever the flow is called by hears of it; or what a handler does says."""


class LetFail(NamedTuple):
    """A turn of a loop that the loop lets fail, both by their instances."""

    loop: int
    turn: int


class Prospect(NamedTuple):
    """What the flow does about a fault, and what a loop lets fail by that."""

    course: Course
    let_fail: LetFail | None = None


def still_to_hear(case: Case, let_fail: Iterable[LetFail]) -> set[LetFail]:
    """Those whose failure the loop has not counted yet."""
    return {each for each in let_fail if (turn := case.instances.get(each.turn)) is not None and _is_running(turn)}


def _is_running(instance: Instance) -> bool:
    return instance.phase < InstancePhase.STOPPING


def course_after(case: Case, item: ItemId, fault: str, let_fail: Collection[LetFail] = ()) -> Prospect:
    """What the flow does about a fault of this name of the item. `let_fail` are turns of which the case has still to
    hear that they fail: they count among what their loop lets fail, and no loop around it hears of them."""
    inside = case.instances.get(case.index.items.get(item, 0))
    for scope, handlers in _scopes_around(case, item):
        if (found := _letting_fail(case, inside, scope, let_fail)) is not None:
            return Prospect("tolerated", found)
        inside, activity = scope, case.plan.nodes[scope.node].activity
        by_name = {handler.fault: handler for handler in reversed(handlers)}
        handler = by_name.get(fault) or by_name.get(None)
        if isinstance(activity, Scope) and activity.exit_on_standard_fault:
            return Prospect("unsure")
        if handler is None:
            continue
        ends = {type(each) for each in _inside(handler) if isinstance(each, _NOT_GOING_ON)}
        if not ends:
            return Prospect("goes-on")
        if ends != {Rethrow}:
            return Prospect("unsure")
    found = _letting_fail(case, inside, None, let_fail)
    return Prospect("tolerated", found) if found is not None else Prospect("passes")


def _letting_fail(
    case: Case, inside: Instance | None, until: ScopeInstance | None, let_fail: Collection[LetFail]
) -> LetFail | None:
    """The innermost loop around an instance, and within a scope, that lets one turn more fail than have failed, and
    that turn. A loop that has let fail as many as it may fails itself, and the one around it hears of that."""
    while inside is not None and inside is not until:
        loop = case.instances.get(inside.parent)
        if isinstance(loop, ForEachInstance) and not loop.over and loop.tolerated > loop.failed:
            failing = {each.turn for each in still_to_hear(case, let_fail) if each.loop == loop.id} - {inside.id}
            if loop.failed + len(failing) < loop.tolerated:
                return LetFail(loop.id, inside.id)
        inside = loop
    return None


_NOT_GOING_ON: Final = (Throw, Rethrow, Exit)


def _inside(handler: Catch) -> Iterator[Any]:
    pending: list[Any] = [handler]
    while pending:
        activity = pending.pop()
        yield activity
        pending += inner_parts(activity)


def _scopes_around(case: Case, item: ItemId) -> Iterator[tuple[ScopeInstance, Sequence[Catch]]]:
    """The scopes around the item, from the inside outwards, and their handlers that take faults of the engine or of a
    job: one for XML data without a name does not."""
    instance = case.instances.get(case.index.items.get(item, 0))
    scope = case.instances.get(instance.scope) if instance is not None else None
    while isinstance(scope, ScopeInstance):
        if scope.stage in (ScopeStage.BODY, ScopeStage.CLOSING):
            node = case.plan.nodes[scope.node]
            handlers: list[Catch] = [case.plan.nodes[each].activity for each in node.catches]
            yield scope, [each for each in handlers if each.fault or each.holds is None]
        scope = case.instances.get(scope.scope) if scope.scope != scope.id else None
