"""While and until: one iteration after another, numbered in the paths of its items."""

from typing import Final

from mendflow.core.engine import data
from mendflow.core.engine.activity_kind import ActivityKind
from mendflow.core.engine.item_ids import path_of
from mendflow.core.engine.run import Run
from mendflow.core.engine.state import Instance, InstanceEnd, Structure

TURN_WORK: Final = 50
"""What one turn of a loop counts for: a loop whose condition costs nothing and that does nothing could go on for
ever."""


class WhileKind(ActivityKind[Structure]):
    makes = Structure

    def start(self, run: Run, instance: Structure) -> None:
        node = run.nodes[instance.node]
        if data.holds(run.case, instance.env, node.activity.condition):
            self.turn(run, instance)
        else:
            run.end(instance, InstanceEnd.COMPLETED)

    def turn(self, run: Run, instance: Structure) -> None:
        run.meter.spend(TURN_WORK)
        place = instance.next
        instance.next += 1
        body = run.nodes[instance.node].children[0]
        run.begin(body, instance, place, instance.env, instance.scope, path_of(instance.path, place))

    def child_ended(self, run: Run, instance: Structure, _child: Instance, _place: int, /) -> None:
        self.start(run, instance)

    def child_removed(self, run: Run, instance: Structure, _child: Instance, _place: int, /) -> None:
        run.end(instance, InstanceEnd.REMOVED)


class UntilKind(WhileKind):
    def start(self, run: Run, instance: Structure) -> None:
        self.turn(run, instance)

    def child_ended(self, run: Run, instance: Structure, _child: Instance, _place: int, /) -> None:
        if data.holds(run.case, instance.env, run.nodes[instance.node].activity.condition):
            run.end(instance, InstanceEnd.COMPLETED)
        else:
            self.turn(run, instance)
