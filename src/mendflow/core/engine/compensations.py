"""What a case has completed and can be undone, in the order of completion: the stack that an exlet unwinds.

There are two sorts. A scope with a compensation handler was registered by the flow itself: what undoes it comes as a
flow of its own, which knows the data as it was when the scope completed. Any other item is in the list if its task is
to be remembered: whoever asked for that knows how to undo it.

Taking a number off the list is one event in the journal, and the flow's own handlers look at the same list: so nothing
is undone twice, whoever begins."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from mendflow.core.engine import data
from mendflow.core.engine.activities.compensation import discard
from mendflow.core.engine.name_lookup import NameLookup
from mendflow.core.engine.run import Run, item_id
from mendflow.core.engine.state import Case, CompensationRecord, ScopeInstance
from mendflow.core.engine.xml.declarations import visible_declarations
from mendflow.core.expressions import ExpressionError, references
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Activity, Compensate, Empty, Flow, Input, Scope
from mendflow.core.model.ids import FlowName, ItemId
from mendflow.core.model.values import Value


class CompensationStep(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a case has completed and that can be undone. `flow` undoes it, started with `inputs`; it is None
    where the flow says nothing about it, and then `data` is what the item was given and `outputs` what it left."""

    number: int
    name: str
    item: ItemId
    kind: str
    serial: int = 0
    flow: Flow | None = None
    inputs: dict[str, Value] = {}
    data: dict[str, Value] = {}
    outputs: Value = None


def compensations(case: Case) -> list[CompensationStep]:
    """All that can be undone, in the order of completion. It is to be undone from the end."""
    found = [_compensation_of(case, record) for record in _records(case)]
    for number, done in case.completed_items.items():
        node = case.plan.nodes[done.node]
        found.append(
            CompensationStep(
                number=number,
                name=node.shown,
                item=done.item,
                kind=node.kind,
                serial=done.serial,
                data=done.data,
                outputs=done.outputs,
            )
        )
    return sorted(found, key=lambda each: each.number)


def undoable(case: Case) -> int:
    """How much there is to undo."""
    return len(case.completed_items) + sum(1 for _ in _records(case))


class CompensationHandler(msgspec.Struct, frozen=True):
    """What undoes a scope, as a body of its own, and the names that it asks for. `passes_on`: it leaves the scopes
    inside to `compensate`, so that they are in the list by themselves."""

    body: Activity
    referenced_names: tuple[str, ...]
    passes_on: bool


def _records(case: Case) -> Iterator[CompensationRecord]:
    """Records of scopes with handlers. A handler answers for the scopes inside its own, unless it passes them on."""
    pending = [record for each in case.instances.values() if isinstance(each, ScopeInstance) for record in each.records]
    while pending:
        record = pending.pop()
        handler = _handler(case, record)
        if handler is not None:
            yield record
        if handler is None or handler.passes_on:
            pending.extend(record.inner)


def _handler(case: Case, record: CompensationRecord) -> CompensationHandler | None:
    """Worked out once for each scope of the flow."""
    node = case.plan.nodes[record.node]
    if node.compensation < 0:
        return None
    if node.job_template is None:
        body = node.activity.compensation
        alone = _standalone_body(body)
        node.job_template = CompensationHandler(alone, tuple(sorted(_referenced_names(alone))), alone is not body)
    assert isinstance(node.job_template, CompensationHandler)
    return node.job_template


def _compensation_of(case: Case, record: CompensationRecord) -> CompensationStep:
    node, handler = case.plan.nodes[record.node], _handler(case, record)
    assert handler is not None and case.flow is not None
    variables, results = _known_values(case, record, handler.referenced_names)
    body = handler.body
    if case.flow.xml is not None:
        declared, variables = visible_declarations(case, record.env)
        body = Scope(name=f"{case.flow.name}.undo", body=body, declared=declared)
    flow = Flow(
        name=FlowName(f"{case.flow.name}.undo.{node.shown}"),
        body=body,
        inputs={name: Input() for name in case.inputs},
        calls=case.flow.calls,
        folder=case.flow.folder,
        variables=variables,
        results=results,
        xml=case.flow.xml,
    )
    item = item_id(node.shown, record.path)
    return CompensationStep(
        number=record.number, name=node.shown, item=item, kind=node.kind, flow=flow, inputs=dict(case.inputs)
    )


def _known_values(
    case: Case, record: CompensationRecord, asked: Iterable[str]
) -> tuple[dict[str, Value], dict[str, dict[str, Value]]]:
    """What the handler asks for, as it was when the scope completed."""
    variables: dict[str, Value] = {}
    results: dict[str, dict[str, Value]] = {}
    names = NameLookup(case, record.env)
    for name in asked:
        try:
            value = names(name)
        except KeyError:
            continue
        if name.startswith("jobs."):
            results[name.removeprefix("jobs.")] = value
        elif name != "inputs":
            variables[name] = value
    return variables, results


def _referenced_names(activity: Activity) -> set[str]:
    """The names that its expressions ask for."""
    found: set[str] = set()
    pending: list[Any] = [activity]
    while pending:
        each = pending.pop()
        try:
            if isinstance(each, Expr) or (isinstance(each, str) and "${{" in each):
                found |= references(each)
        except ExpressionError:
            continue
        if isinstance(each, dict):
            pending.extend((*each, *each.values()))
        elif isinstance(each, (list, tuple)):
            pending.extend(each)
        elif isinstance(each, msgspec.Struct) and not isinstance(each, Expr):
            pending.extend(getattr(each, field) for field in each.__struct_fields__)
    return found


def _standalone_body(activity: Any) -> Any:
    """The handler as the body of a flow: what it leaves to `compensate` is in the list by itself. Handlers of scopes
    inside it compensate those scopes, and stay as they are."""
    if isinstance(activity, Compensate):
        return Empty(name=activity.name)
    if isinstance(activity, tuple):
        parts = tuple(_standalone_body(each) for each in activity)
        return parts if any(new is not old for new, old in zip(parts, activity, strict=True)) else activity
    if not isinstance(activity, msgspec.Struct):
        return activity
    changed = {}
    for field in activity.__struct_fields__:
        if isinstance(activity, Scope) and field in ("catches", "compensation", "termination"):
            continue
        before = getattr(activity, field)
        if (after := _standalone_body(before)) is not before:
            changed[field] = after
    return replace(activity, **changed) if changed else activity


def forget_compensations(run: Run, numbers: Iterable[int]) -> None:
    """Take these off the list."""
    case, wanted = run.case, frozenset(numbers)
    for number in wanted:
        case.completed_items.pop(number, None)
    for instance in list(case.instances.values()):
        if isinstance(instance, ScopeInstance):
            instance.records = list(_remaining(run, instance.records, wanted))


def _remaining(run: Run, records: list[CompensationRecord], wanted: frozenset[int]) -> Iterator[CompensationRecord]:
    """The records that stay. Of one that goes, those inside it go too, unless they are in the list by themselves."""
    for record in records:
        if record.number not in wanted:
            record.inner = list(_remaining(run, record.inner, wanted))
            yield record
            continue
        handler = _handler(run.case, record)
        inner, record.inner = record.inner, []
        if handler is not None and handler.passes_on:
            yield from _remaining(run, inner, wanted)
        else:
            discard(run, inner)
        data.release(run.case, record.env)
