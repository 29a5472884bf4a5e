"""For-each: one iteration per element of a list or per number, in sequence or in parallel.

Iterations are counted, never searched: the end of an iteration costs the same with a hundred as with a hundred
thousand. Each has its own environment, which is dropped when it ends."""

from typing import Final

from mendflow.core.engine import data
from mendflow.core.engine.faults import (
    COMPLETION_CONDITION_FAILURE,
    INVALID_BRANCH_CONDITION,
    INVALID_EXPRESSION_VALUE,
    flow_fault,
)
from mendflow.core.engine.run import STEP, ActivityKind, Run, path_of
from mendflow.core.engine.state import ForEachInstance, Instance, InstanceEnd, ScopeInstance
from mendflow.core.engine.xml.xpath_lookup import COUNTER_MAX
from mendflow.core.expressions.text_values import too_large
from mendflow.core.model.expr import Expr
from mendflow.core.model.faults import Fault
from mendflow.core.model.flow import ForEach
from mendflow.core.model.values import is_spilled

ITERATIONS_MAX: Final = 100
"""How many iterations one step starts."""

COUNTED_MAX: Final = 10_000_000
"""The maximum number of iterations of a counting loop."""


class ForEachKind(ActivityKind[ForEachInstance]):
    makes = ForEachInstance

    def start(self, run: Run, instance: ForEachInstance) -> None:
        activity: ForEach = run.nodes[instance.node].activity
        case, env = run.case, instance.env
        if activity.items is not None:
            elements = data.value_of(case, env, activity.items)
            if is_spilled(elements):
                raise flow_fault(INVALID_EXPRESSION_VALUE, too_large(f"{activity.name}: `items`", elements).message)
            if not isinstance(elements, list):
                kind = type(elements).__name__
                raise flow_fault(
                    INVALID_EXPRESSION_VALUE, f"{activity.name}: `items` gives {kind}; it must give a list"
                )
            instance.elements, instance.total = elements, len(elements)
        else:
            most = COUNTER_MAX if run.plan.flow.xml is not None else data.COUNT_VALUE_MAX
            instance.first = data.number_of(case, env, _bound_of(activity.first), f"{activity.name}: `first`", most)
            last = data.number_of(case, env, _bound_of(activity.last), f"{activity.name}: `last`", most)
            instance.total = max(0, last - instance.first + 1)
            if instance.total > COUNTED_MAX:
                raise flow_fault(
                    INVALID_EXPRESSION_VALUE,
                    f"{activity.name}: from {instance.first} to {last} are {instance.total:,} iterations; "
                    f"at most {COUNTED_MAX:,} are taken. Give each iteration more to do",
                )
        key = "min-success" if activity.min_success is not None else "min-ended"
        wanted = activity.min_success if activity.min_success is not None else activity.min_ended
        if wanted is not None:
            instance.enough = data.number_of(case, env, wanted, f"{activity.name}: `{key}`")
            if instance.enough > instance.total and (instance.total or run.plan.flow.xml is None):
                raise flow_fault(
                    INVALID_BRANCH_CONDITION,
                    f"{activity.name}: `{key}` is {instance.enough}, but there are only {instance.total} iterations",
                )
        self.step(run, instance)

    def step(self, run: Run, instance: ForEachInstance) -> None:
        """Start as many iterations as may run now, up to a limit per step."""
        if instance.over:
            return
        activity: ForEach = run.nodes[instance.node].activity
        bound = (activity.max_parallel or instance.total) if activity.parallel else 1
        room = min(bound - len(instance.children), instance.total - instance.next)
        if room > 0 and activity.parallel and instance.enough >= 0 and run.plan.flow.xml is not None:
            self.begin_next(run, instance, activity)
            return
        for _ in range(min(room, ITERATIONS_MAX)):
            self.begin_iteration(run, instance, activity)
        if room > ITERATIONS_MAX:
            run.agenda.append((STEP, instance.id))
        if not instance.children and instance.ended == instance.total:
            self.complete(run, instance, activity)

    def begin_next(self, run: Run, instance: ForEachInstance, activity: ForEach) -> None:
        """Start an iteration once those before it are idle: it may not be needed. Iterations that only wait for the
        same are not waited for."""
        if all(what == STEP for what, _ in run.agenda):
            self.begin_iteration(run, instance, activity)
        run.agenda.append((STEP, instance.id))

    def begin_iteration(self, run: Run, instance: ForEachInstance, activity: ForEach) -> None:
        place = instance.next
        instance.next += 1
        element = instance.first + place if instance.elements is None else instance.elements[place]
        variables = {activity.variable: element}
        if run.plan.flow.xml is None:
            variables["index"] = place
        env = data.open_env(run.case, instance.env, variables, instance.node, home=activity.parallel)
        body = run.nodes[instance.node].children[0]
        run.begin(body, instance, place, env.id, instance.scope, path_of(instance.path, place))

    def child_ended(self, run: Run, instance: ForEachInstance, child: Instance, place: int) -> None:
        activity: ForEach = run.nodes[instance.node].activity
        well = child.end in (InstanceEnd.COMPLETED, InstanceEnd.SKIPPED) and not _handled_a_fault(run, child)
        try:
            if activity.collect is not None and child.end is InstanceEnd.COMPLETED and not instance.over:
                collected = data.result_of(run.case, child.env, activity.collect)
                # The list grows with the iterations: most of a very long loop may never run.
                instance.collected.extend([None] * (place + 1 - len(instance.collected)))
                instance.collected[place] = collected
        finally:
            data.release(run.case, child.env)
        if instance.over:
            if not instance.children:
                self.complete(run, instance, activity)
            return
        instance.ended += 1
        instance.counted += 1 if well or activity.min_success is None else 0
        if instance.enough >= 0 and self.is_settled(run, instance, activity):
            return
        if instance.next < instance.total:
            # Only a loop with a limit continues here; one without has a step on the agenda already.
            if not activity.parallel or activity.max_parallel:
                self.step(run, instance)
        elif not instance.children:
            self.complete(run, instance, activity)

    def child_removed(self, run: Run, instance: ForEachInstance, child: Instance, place: int) -> None:
        """Parallel iterations are separate paths; in a sequential loop, the later ones follow the removed one."""
        if instance.over or (run.nodes[instance.node].activity.parallel and instance.total > 1):
            self.child_ended(run, instance, child, place)
        else:
            data.release(run.case, child.env)
            run.end(instance, InstanceEnd.REMOVED)

    def is_settled(self, run: Run, instance: ForEachInstance, activity: ForEach) -> bool:
        """Whether enough iterations have ended, or enough never can."""
        if instance.counted >= instance.enough:
            instance.over = True
            for child in list(instance.children):
                run.stop(run.instances[child])
            if not instance.children:
                self.complete(run, instance, activity)
            return True
        if instance.counted + instance.total - instance.ended < instance.enough:
            raise flow_fault(
                COMPLETION_CONDITION_FAILURE,
                f"{activity.name}: {instance.enough} iterations were to succeed; {instance.counted} did, and only "
                f"{instance.total - instance.ended} are left",
            )
        return False

    def child_faulted(self, run: Run, instance: ForEachInstance, child: Instance, fault: Fault) -> bool:
        if instance.over:
            run.stop(child)
            return True
        if run.nodes[instance.node].activity.on_fault != "finish":
            return False
        instance.fault = instance.fault or fault
        run.stop(child)
        return True

    def child_forgotten(self, run: Run, _instance: ForEachInstance, child: Instance) -> None:
        data.release(run.case, child.env)

    def complete(self, run: Run, instance: ForEachInstance, activity: ForEach) -> None:
        outputs = None
        if activity.collect is not None:
            outputs = instance.collected + [None] * (instance.total - len(instance.collected))
        run.case.envs[instance.env].results[activity.name] = {"outputs": outputs, "files": {}, "exit_code": None}
        if instance.fault is None or instance.over:
            run.end(instance, InstanceEnd.COMPLETED)
        else:
            run.fail(instance, instance.fault)


def _handled_a_fault(run: Run, turn: Instance) -> bool:
    """Whether an iteration succeeded only because it handled a fault itself, which does not count in BPEL."""
    return run.plan.flow.xml is not None and isinstance(turn, ScopeInstance) and turn.fault is not None


def _bound_of(bound: Expr | int | None) -> Expr | int:
    if bound is None:
        raise flow_fault(INVALID_EXPRESSION_VALUE, "a for-each needs `items`, or `first` and `last`")
    return bound
