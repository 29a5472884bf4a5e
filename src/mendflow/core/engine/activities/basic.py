"""Activities that end as soon as they start."""

from contextlib import suppress

from mendflow.core.engine import data
from mendflow.core.engine.activity_kind import ActivityKind
from mendflow.core.engine.faults import FlowFault
from mendflow.core.engine.name_lookup import holder_of
from mendflow.core.engine.plan import CATCH
from mendflow.core.engine.run import Run
from mendflow.core.engine.state import Case, Instance, InstanceEnd, ScopeInstance
from mendflow.core.engine.xml.assignment import copy_all, demand_valid
from mendflow.core.engine.xml.declarations import variable_at
from mendflow.core.engine.xml.handlers import fault_data_value
from mendflow.core.engine.xml.parts import variable_value
from mendflow.core.engine.xml.sources import CopySources
from mendflow.core.engine.xml.targets import CopyTargets
from mendflow.core.expressions.xpath.evaluation import StyleSheetRunner
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Assign, Copy, Throw, Validate
from mendflow.core.model.values import Value


class EmptyKind(ActivityKind[Instance]):
    def start(self, run: Run, instance: Instance) -> None:
        run.end(instance, InstanceEnd.COMPLETED)


class ExitKind(ActivityKind[Instance]):
    """Ends the case at once. Its outputs are set if they can be evaluated by now."""

    def start(self, run: Run, _instance: Instance, /) -> None:
        root = run.instances[run.case.root]
        assert isinstance(root, ScopeInstance)
        run.case.exited = run.plan.flow.xml is not None
        run.finish("completed", outputs=outputs_so_far(run, root))


def outputs_so_far(run: Run, root: ScopeInstance) -> dict[str, Value]:
    """The flow's outputs, if they can be evaluated by now."""
    try:
        outputs: dict[str, Value] = data.value_of(run.case, root.inner, run.plan.flow.outputs)
    except FlowFault:
        return {}
    return outputs


class AssignKind(ActivityKind[Instance]):
    """All copies are made, or none: each sees the results of those before it, and a fault restores the variables."""

    def start(self, run: Run, instance: Instance) -> None:
        assign(run, instance)
        run.end(instance, InstanceEnd.COMPLETED)


def assign(run: Run, instance: Instance, transform: StyleSheetRunner | None = None) -> None:
    """Make the copies of an assign. On an exception, the variables are as before."""
    activity: Assign = run.nodes[instance.node].activity
    places = CopyTargets(run.case, instance.env)
    try:
        for copy in activity.copies:
            name = _copy(run, instance, copy, places)
            if activity.first:
                reapply_early_writes(run.case, instance.env, name)
        if activity.xml:
            copy_all(places, CopySources(run.case, instance.env, transform), activity.xml)
        if activity.validate:
            demand_valid(run.case, instance.env, [name for _, name in places.written()])
    except BaseException:
        places.undo()
        raise


def _copy(run: Run, instance: Instance, copy: Copy, places: CopyTargets) -> str:
    case = run.case
    value = data.value_of(case, instance.env, copy.value)
    name = data.steps_of(copy.to)[0]
    assert isinstance(name, str)
    places.remember(holder_of(case, instance.env, name), name)
    data.assign(case, instance.env, copy.to, value)
    return name


def reapply_early_writes(case: Case, env: int, name: str) -> None:
    """Apply writes that arrived before the variable had its first value. A write that does not fit that value changes
    nothing."""
    for path, value in case.early_writes.items():
        if data.steps_of(path)[0] == name:
            with suppress(FlowFault):
                data.assign(case, env, path, value)


class ValidateKind(ActivityKind[Instance]):
    def start(self, run: Run, instance: Instance) -> None:
        activity: Validate = run.nodes[instance.node].activity
        demand_valid(run.case, instance.env, activity.variables)
        run.end(instance, InstanceEnd.COMPLETED)


class ThrowKind(ActivityKind[Instance]):
    def start(self, run: Run, instance: Instance) -> None:
        activity: Throw = run.nodes[instance.node].activity
        case, env = run.case, instance.env
        if activity.variable:
            _, type = variable_at(case, env, activity.variable)
            value = fault_data_value(type, variable_value(case, env, activity.variable))
        else:
            value = data.value_of(case, env, activity.data)
        message = data.text_of(case, env, activity.message)
        raise FlowFault(Fault(name=activity.fault, category=Category.FLOW, message=message, data=value))


class RethrowKind(ActivityKind[Instance]):
    """Throws the fault that the nearest fault handler caught."""

    def start(self, run: Run, instance: Instance) -> None:
        handler = run.instances[instance.scope]
        while run.nodes[handler.node].kind != CATCH:
            handler = run.instances[handler.scope]
        scope = run.instances[handler.parent]
        assert isinstance(scope, ScopeInstance) and scope.fault is not None
        raise FlowFault(scope.fault)
