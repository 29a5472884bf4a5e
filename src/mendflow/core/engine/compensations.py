"""What a case has completed and can undo, in the order of completion: the stack that an exlet unwinds.

There are two sorts. The flow itself registers a scope with a compensation handler: what undoes it is a flow of its own,
with the data as of the scope's completion. Any other item is on the stack if its task was asked to be remembered:
whoever asked knows how to undo it.

Taking an entry off the stack is one event in the journal, and the flow's own handlers use the same stack: so nothing is
undone twice, whoever starts."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from mendflow.core.engine import data
from mendflow.core.engine.activities.compensation import discard
from mendflow.core.engine.item_ids import item_id
from mendflow.core.engine.name_lookup import NameLookup
from mendflow.core.engine.run import Run
from mendflow.core.engine.state import Case, CompensationRecord, ScopeInstance
from mendflow.core.engine.xml.declarations import visible_declarations
from mendflow.core.expressions import ExpressionError, references
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Activity, Compensate, Empty, Flow, Input, Scope
from mendflow.core.model.ids import FlowName, ItemId
from mendflow.core.model.values import Value


class CompensationStep(msgspec.Struct, frozen=True, kw_only=True):
    """Something completed that can be undone. `flow` undoes it, started with `inputs`; it is None if the flow has no
    handler, and then `data` is what the item was given and `outputs` its result."""

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
    """Everything that can be undone, in the order of completion. Undo it from the end."""
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
    """How many entries there are."""
    return len(case.completed_items) + sum(1 for _ in _records(case))


class CompensationHandler(msgspec.Struct, frozen=True):
    """What undoes a scope, as a separate body, and the names that it uses. `passes_on`: it leaves the inner scopes to
    `compensate`, so they are entries of their own."""

    body: Activity
    referenced_names: tuple[str, ...]
    passes_on: bool


def _records(case: Case) -> Iterator[CompensationRecord]:
    """Records of scopes with handlers. A handler covers its inner scopes, unless it passes them on."""
    pending = [record for each in case.instances.values() if isinstance(each, ScopeInstance) for record in each.records]
    while pending:
        record = pending.pop()
        handler = _handler(case, record)
        if handler is not None:
            yield record
        if handler is None or handler.passes_on:
            pending.extend(record.inner)


def _handler(case: Case, record: CompensationRecord) -> CompensationHandler | None:
    """Computed once for each scope of the flow."""
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
    """The values that the handler uses, as of the scope's completion."""
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
    """The names that its expressions use."""
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
    """The handler as the body of a flow: what it leaves to `compensate` has its own entries. Handlers of scopes inside
    it compensate those scopes, and stay."""
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
    """Take these off the stack."""
    case, wanted = run.case, frozenset(numbers)
    for number in wanted:
        case.completed_items.pop(number, None)
    for instance in list(case.instances.values()):
        if isinstance(instance, ScopeInstance):
            instance.records = list(_remaining(run, instance.records, wanted))


def _remaining(run: Run, records: list[CompensationRecord], wanted: frozenset[int]) -> Iterator[CompensationRecord]:
    """The remaining records. With a record, those inside it are removed too, unless they are entries of their own."""
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
