"""Activities that are over as soon as they begin."""

from contextlib import suppress

from mendflow.core.engine import data
from mendflow.core.engine.faults import Thrown
from mendflow.core.engine.plan import CATCH
from mendflow.core.engine.run import ActivityKind, Run
from mendflow.core.engine.state import End, Instance, ScopeInstance
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.values import Value


class EmptyKind(ActivityKind[Instance]):
    def start(self, run: Run, instance: Instance) -> None:
        run.end(instance, End.COMPLETED)


class ExitKind(ActivityKind[Instance]):
    """The case ends at once. Its outputs are given if they can be worked out by now."""

    def start(self, run: Run, _instance: Instance, /) -> None:
        root = run.instances[run.case.root]
        assert isinstance(root, ScopeInstance)
        run.finish("completed", outputs=outputs_so_far(run, root))


def outputs_so_far(run: Run, root: ScopeInstance) -> dict[str, Value]:
    """The flow's outputs if they can be worked out by now."""
    try:
        outputs: dict[str, Value] = data.value_of(run.case, root.inner, run.plan.flow.outputs)
    except Thrown:
        return {}
    return outputs


class AssignKind(ActivityKind[Instance]):
    """All copies happen, or none: each sees what the ones before it did, and a fault puts the variables back."""

    def start(self, run: Run, instance: Instance) -> None:
        case = run.case
        before: dict[tuple[int, str], tuple[bool, Value]] = {}
        try:
            activity = run.nodes[instance.node].activity
            for copy in activity.copies:
                value = data.value_of(case, instance.env, copy.value)
                name = data.steps_of(copy.to)[0]
                assert isinstance(name, str)
                holder = data.holder_of(case, instance.env, name)
                before.setdefault((holder.id, name), (name in holder.variables, holder.variables.get(name)))
                data.assign(case, instance.env, copy.to, value)
                if activity.first:
                    self.lay_over(run, instance, name)
        except Thrown:
            for (env, name), (was, value) in before.items():
                if was:
                    case.envs[env].variables[name] = value
                else:
                    case.envs[env].variables.pop(name, None)
            raise
        run.end(instance, End.COMPLETED)

    def lay_over(self, run: Run, instance: Instance, name: str) -> None:
        """Write into the variable again what was written before it had its first value. What does not fit that value
        changes nothing."""
        for path, value in run.case.early.items():
            if data.steps_of(path)[0] == name:
                with suppress(Thrown):
                    data.assign(run.case, instance.env, path, value)


class ThrowKind(ActivityKind[Instance]):
    def start(self, run: Run, instance: Instance) -> None:
        activity = run.nodes[instance.node].activity
        value = data.value_of(run.case, instance.env, activity.data)
        message = data.text_of(run.case, instance.env, activity.message)
        raise Thrown(Fault(name=activity.fault, category=Category.FLOW, message=message, data=value))


class RethrowKind(ActivityKind[Instance]):
    """Throw what the nearest fault handler caught, as it was."""

    def start(self, run: Run, instance: Instance) -> None:
        handler = run.instances[instance.scope]
        while run.nodes[handler.node].kind != CATCH:
            handler = run.instances[handler.scope]
        scope = run.instances[handler.parent]
        assert isinstance(scope, ScopeInstance) and scope.fault is not None
        raise Thrown(scope.fault)
