"""Compensation: the handler of each completed scope undoes it, once, in reverse order of completion."""

from mendflow.core.engine import data
from mendflow.core.engine.activity_kind import ActivityKind
from mendflow.core.engine.plan import HANDLERS
from mendflow.core.engine.run import Run
from mendflow.core.engine.state import CompensateInstance, CompensationRecord, Instance, InstanceEnd, ScopeInstance


def begin_last(run: Run, parent: CompensateInstance | ScopeInstance) -> bool:
    """Compensate the last completed scope among the parent's targets, if any is left. The record is removed first, so
    it happens only once."""
    if not parent.targets:
        return False
    record = parent.targets.pop()
    node = run.nodes[record.node]
    handler = node.compensation if node.compensation >= 0 else run.plan.default
    scope = parent.id if isinstance(parent, ScopeInstance) else parent.scope
    instance = run.begin(handler, parent, 0, record.env, scope, record.path)
    assert isinstance(instance, ScopeInstance)
    instance.targets, instance.held = record.inner, record.env
    return True


def discard(run: Run, records: list[CompensationRecord]) -> None:
    """Drop records that can no longer be compensated."""
    pending = list(records)
    records.clear()
    while pending:
        record = pending.pop()
        data.release(run.case, record.env)
        pending.extend(record.inner)


class CompensateKind(ActivityKind[CompensateInstance]):
    """Compensates all inner scopes of the scope that this handler belongs to, or those of one name."""

    makes = CompensateInstance

    def start(self, run: Run, instance: CompensateInstance) -> None:
        handler = run.instances[instance.scope]
        while run.nodes[handler.node].kind not in HANDLERS:
            handler = run.instances[handler.scope]
        assert isinstance(handler, ScopeInstance)
        name = run.nodes[instance.node].activity.scope
        if name is None:
            instance.targets, handler.targets = handler.targets, []
        else:
            meant = [run.nodes[each.node].name == name for each in handler.targets]
            instance.targets = [each for each, is_meant in zip(handler.targets, meant, strict=True) if is_meant]
            handler.targets = [each for each, is_meant in zip(handler.targets, meant, strict=True) if not is_meant]
        self.next(run, instance)

    def next(self, run: Run, instance: CompensateInstance) -> None:
        if not begin_last(run, instance):
            run.end(instance, InstanceEnd.COMPLETED)

    def child_ended(self, run: Run, instance: CompensateInstance, _child: Instance, _place: int, /) -> None:
        self.next(run, instance)

    def close(self, run: Run, instance: CompensateInstance) -> None:
        discard(run, instance.targets)
