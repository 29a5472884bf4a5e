"""Parallel branches, ordered by links if there are any.

With `on_fault: finish`, only the failed branch ends: its links become false, the others continue, and the first fault
is thrown when all have ended."""

from typing import Final

from mendflow.core.engine.activity_kind import ActivityKind
from mendflow.core.engine.run import STEP, Run
from mendflow.core.engine.state import Graph, Instance, InstanceEnd
from mendflow.core.expressions.cel_functions import FAILED_END
from mendflow.core.model.faults import Fault

BRANCHES_MAX: Final = 100
"""How many branches one step starts, so that a very wide parallel keeps the agenda short."""


class ParallelKind(ActivityKind[Graph]):
    makes = Graph

    def start(self, run: Run, instance: Graph) -> None:
        self.step(run, instance)

    def step(self, run: Run, instance: Graph) -> None:
        branches = run.nodes[instance.node].children
        stop = min(instance.next + BRANCHES_MAX, len(branches))
        for place in range(instance.next, stop):
            run.begin(branches[place], instance, place, instance.env, instance.scope, instance.path)
        instance.next = stop
        if stop < len(branches):
            run.agenda.append((STEP, instance.id))
        elif not instance.children:
            self.complete(run, instance)

    def child_ended(self, run: Run, instance: Graph, _child: Instance, _place: int, /) -> None:
        if not instance.children and instance.next == len(run.nodes[instance.node].children):
            self.complete(run, instance)

    def child_removed(self, run: Run, instance: Graph, child: Instance, place: int) -> None:
        if len(run.nodes[instance.node].children) > 1:
            self.child_ended(run, instance, child, place)
        else:
            run.end(instance, InstanceEnd.REMOVED)

    def child_faulted(self, run: Run, instance: Graph, child: Instance, fault: Fault) -> bool:
        if run.nodes[instance.node].activity.on_fault != "finish":
            return False
        instance.fault = instance.fault or fault
        run.note_end(child, FAILED_END)
        run.stop(child)
        return True

    def complete(self, run: Run, instance: Graph) -> None:
        if instance.fault is None:
            run.end(instance, InstanceEnd.COMPLETED)
        else:
            run.fail(instance, instance.fault)
