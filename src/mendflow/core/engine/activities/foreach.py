"""For-each: one iteration per element of a list or per number, in sequence or in parallel.

Iterations are counted, never searched: the end of an iteration costs the same with a hundred as with a hundred
thousand. Each has its own environment, which is dropped when it ends."""

import math
from typing import Final

from msgspec.structs import replace

from mendflow.core.engine import data
from mendflow.core.engine.activity_kind import ActivityKind
from mendflow.core.engine.faults import (
    COMPLETION_CONDITION_FAILURE,
    INVALID_BRANCH_CONDITION,
    INVALID_EXPRESSION_VALUE,
    FlowFault,
    flow_fault,
)
from mendflow.core.engine.item_ids import path_of
from mendflow.core.engine.run import STEP, Run
from mendflow.core.engine.state import ForEachInstance, Instance, InstanceEnd, ScopeInstance
from mendflow.core.engine.xml.xpath_lookup import COUNTER_MAX
from mendflow.core.expressions.kinds import NUMBER, kind_of
from mendflow.core.expressions.text_values import too_large
from mendflow.core.model.expr import Expr
from mendflow.core.model.faults import Fault
from mendflow.core.model.flow import ForEach
from mendflow.core.model.templates import Template
from mendflow.core.model.values import Value, is_spilled

ITERATIONS_MAX: Final = 100
"""How many iterations one step starts."""

COUNTED_MAX: Final = 10_000_000
"""The maximum number of iterations of a counting loop."""


class ForEachKind(ActivityKind[ForEachInstance]):
    makes = ForEachInstance

    def start(self, run: Run, instance: ForEachInstance) -> None:
        activity: ForEach = run.nodes[instance.node].activity
        try:
            self.take_elements(run, instance, activity)
        except FlowFault as problem:
            raise FlowFault(run.tell_not_begun(instance, problem.fault)) from None
        self.step(run, instance)

    def take_elements(self, run: Run, instance: ForEachInstance, activity: ForEach) -> None:
        """Evaluate what the loop goes over, and how many iterations must end or may fail."""
        if activity.axes:
            self.take_axes(run, instance, activity)
        elif activity.items is not None:
            instance.elements = elements_of(run, instance, activity.items, f"{activity.name}: `for-each`")
            instance.total = len(instance.elements)
        else:
            self.count(run, instance, activity)
        self.bound_ends(run, instance, activity)

    def take_axes(self, run: Run, instance: ForEachInstance, activity: ForEach) -> None:
        """Lists with names: all combinations, or each list's elements side by side."""
        axes = {
            name: elements_of(run, instance, given, f"{activity.name}: `{name}`")
            for name, given in activity.axes.items()
        }
        sizes = {name: len(elements) for name, elements in axes.items()}
        if activity.zip and len(set(sizes.values())) > 1:
            lengths = ", ".join(f"`{name}` has {size}" for name, size in sizes.items())
            raise flow_fault(
                INVALID_EXPRESSION_VALUE,
                f"{activity.name}: lists that are zipped must be of one length; {lengths} elements",
            )
        instance.axes = axes
        instance.total = min(sizes.values()) if activity.zip else math.prod(sizes.values())
        if instance.total > COUNTED_MAX:
            raise too_many(activity, " x ".join(str(size) for size in sizes.values()), instance.total)

    def count(self, run: Run, instance: ForEachInstance, activity: ForEach) -> None:
        case, env = run.case, instance.env
        most = COUNTER_MAX if run.plan.flow.xml is not None else data.COUNT_VALUE_MAX
        instance.first = data.number_of(case, env, _bound_of(activity.first), f"{activity.name}: `first`", most)
        last = data.number_of(case, env, _bound_of(activity.last), f"{activity.name}: `last`", most)
        instance.total = max(0, last - instance.first + 1)
        if instance.total > COUNTED_MAX:
            raise too_many(activity, f"from {instance.first} to {last}", instance.total)

    def bound_ends(self, run: Run, instance: ForEachInstance, activity: ForEach) -> None:
        """How many turns must end, or may fail."""
        case, env = run.case, instance.env
        key = "min-success" if activity.min_success is not None else "min-ended"
        wanted = activity.min_success if activity.min_success is not None else activity.min_ended
        if wanted is not None:
            instance.enough = data.number_of(case, env, wanted, f"{activity.name}: `{key}`")
            if instance.enough > instance.total and (instance.total or run.plan.flow.xml is None):
                raise flow_fault(
                    INVALID_BRANCH_CONDITION,
                    f"{activity.name}: `{key}` is {instance.enough}, but there are only {instance.total} iterations",
                )
        if activity.tolerate is not None:
            instance.tolerated = data.number_of(case, env, activity.tolerate, f"{activity.name}: `tolerate`")
        elif activity.tolerate_percent is not None:
            instance.tolerated = int(instance.total * activity.tolerate_percent / 100)

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
        variables = variables_at(instance, activity, place)
        if run.plan.flow.xml is None:
            variables["index"] = place
        env = data.open_env(run.case, instance.env, variables, instance.node, home=activity.parallel)
        body = run.nodes[instance.node].children[0]
        run.begin(body, instance, place, env.id, instance.scope, path_of(instance.path, place))

    def child_ended(self, run: Run, instance: ForEachInstance, child: Instance, place: int) -> None:
        activity: ForEach = run.nodes[instance.node].activity
        well = child.end in (InstanceEnd.COMPLETED, InstanceEnd.SKIPPED) and not _handled_a_fault(run, child)
        try:
            if child.end is InstanceEnd.COMPLETED and not instance.over:
                self.collect(run, instance, activity, child.env, place)
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

    def collect(self, run: Run, instance: ForEachInstance, activity: ForEach, env: int, place: int) -> None:
        """Keep what the turn gives. Lists grow with the turns: most of a very long loop may never run."""
        if activity.collect is not None:
            put(instance.collected, place, data.result_of(run.case, env, activity.collect))
        elif activity.collect_map:
            put(instance.collected, place, data.value_of(run.case, env, activity.collect_map))
        for name, file in activity.collect_files.items():
            put(instance.files.setdefault(name, []), place, data.result_of(run.case, env, file))

    def child_removed(self, run: Run, instance: ForEachInstance, child: Instance, place: int) -> None:
        """Parallel iterations are separate paths; in a sequential loop, the later ones follow the removed one."""
        instance.removed += 1
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
        instance.failed += 1
        stops = run.nodes[instance.node].activity.on_fault != "finish"
        if stops and instance.failed > instance.tolerated:
            return False
        instance.fault = instance.fault or fault
        run.stop(child)
        return True

    def child_forgotten(self, run: Run, _instance: ForEachInstance, child: Instance) -> None:
        data.release(run.case, child.env)

    def complete(self, run: Run, instance: ForEachInstance, activity: ForEach) -> None:
        if instance.fault is not None and not instance.over and instance.failed > instance.tolerated:
            run.fail(instance, self.fault_of_all(instance, activity))
            return
        if self.lacks_removed(run, instance):
            run.end(instance, InstanceEnd.REMOVED)
            return
        outputs = filled(instance.collected, instance.total) if activity.collect or activity.collect_map else None
        files = {name: filled(instance.files.get(name, []), instance.total) for name in activity.collect_files}
        result = {"outputs": outputs, "files": files, "exit_code": None}
        run.case.envs[instance.env].results[activity.name] = result
        run.end(instance, InstanceEnd.COMPLETED)

    def lacks_removed(self, run: Run, instance: ForEachInstance) -> bool:
        """Whether iterations were removed, and the flow does not say that some may be missing: then what follows would
        work on a part of what it needs, and nobody would see it. So it stands on the removed path too."""
        if not instance.removed or instance.over or instance.enough >= 0 or run.plan.flow.xml is not None:
            return False
        return instance.failed + instance.removed > max(instance.tolerated, 0)

    def fault_of_all(self, instance: ForEachInstance, activity: ForEach) -> Fault:
        """The fault of the first turn that failed; of a loop that tolerates some, with how many have failed."""
        assert instance.fault is not None
        if instance.tolerated < 0:
            return instance.fault
        message = f"{instance.failed} of {instance.total} iterations failed, {instance.tolerated} may"
        return replace(instance.fault, message=f"{activity.name}: {message}; the first: {instance.fault.message}")


def elements_of(run: Run, instance: ForEachInstance, given: Template, what: str) -> list[Value]:
    elements = data.value_of(run.case, instance.env, given)
    if is_spilled(elements):
        raise flow_fault(INVALID_EXPRESSION_VALUE, too_large(what, elements).message)
    if not isinstance(elements, list):
        hint = "; files by a pattern are an input of `type: files`" if isinstance(elements, str) else ""
        if kind_of(elements) == NUMBER:
            shown = given if isinstance(given, str) else elements
            hint = f"; the numbers up to {elements} are `for-each: {{from: 1, to: {shown}}}`"
        raise flow_fault(INVALID_EXPRESSION_VALUE, f"{what} gives {kind_of(elements)}; it must give a list{hint}")
    return elements


def variables_at(instance: ForEachInstance, activity: ForEach, place: int) -> dict[str, Value]:
    """What the names of the loop are in a turn."""
    if not instance.axes:
        element = instance.first + place if instance.elements is None else instance.elements[place]
        return {activity.variable: element}
    return place_names(instance.axes, place, zipped=activity.zip)


def place_names(axes: dict[str, list[Value]], place: int, *, zipped: bool) -> dict[str, Value]:
    """What the names of lists are at a place of their combinations, or of the lists side by side."""
    if zipped:
        return {name: elements[place] for name, elements in axes.items()}
    found: dict[str, Value] = {}
    for name, elements in reversed(axes.items()):
        place, at = divmod(place, len(elements))
        found[name] = elements[at]
    return found


def put(values: list[Value], place: int, value: Value) -> None:
    values.extend([None] * (place + 1 - len(values)))
    values[place] = value


def filled(values: list[Value], size: int) -> list[Value]:
    return values + [None] * (size - len(values))


def too_many(activity: ForEach, counts: str, total: int) -> FlowFault:
    return flow_fault(
        INVALID_EXPRESSION_VALUE,
        f"{activity.name}: {counts} are {total:,} iterations; at most {COUNTED_MAX:,} are taken. "
        "Give each iteration more to do",
    )


def _handled_a_fault(run: Run, turn: Instance) -> bool:
    """Whether an iteration succeeded only because it handled a fault itself, which does not count in BPEL."""
    return run.plan.flow.xml is not None and isinstance(turn, ScopeInstance) and turn.fault is not None


def _bound_of(bound: Expr | int | None) -> Expr | int:
    if bound is None:
        raise flow_fault(INVALID_EXPRESSION_VALUE, "a for-each needs `items`, or `first` and `last`")
    return bound
