"""Which faults of an item the flow itself would handle: recovery leaves those to the flow."""

from mendflow.core.engine.state import Case, ScopeInstance, ScopeStage
from mendflow.core.model.ids import ItemId

ALL = "*"


def faults_caught_around(case: Case, item: ItemId) -> list[str]:
    """The names of the faults that some scope around the item handles; `*` stands for all of them."""
    found: list[str] = []
    instance = case.instances.get(case.index.items.get(item, 0))
    scope = case.instances.get(instance.scope) if instance is not None else None
    while isinstance(scope, ScopeInstance):
        if scope.stage in (ScopeStage.BODY, ScopeStage.CLOSING):
            handlers = (case.plan.nodes[each].activity for each in case.plan.nodes[scope.node].catches)
            # A handler for XML data without a name takes no fault that the engine or a job makes.
            found += [handler.fault or ALL for handler in handlers if handler.fault or handler.holds is None]
        scope = case.instances.get(scope.scope) if scope.scope != scope.id else None
    return sorted(set(found))
