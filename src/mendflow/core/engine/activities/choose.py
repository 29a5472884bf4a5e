"""Runs the first branch whose condition holds, or all that do."""

from mendflow.core.engine import data
from mendflow.core.engine.activity_kind import ActivityKind
from mendflow.core.engine.run import Run
from mendflow.core.engine.state import Instance, InstanceEnd, Structure
from mendflow.core.model.flow import Choose


class ChooseKind(ActivityKind[Structure]):
    makes = Structure

    def start(self, run: Run, instance: Structure) -> None:
        node = run.nodes[instance.node]
        chosen = self.chosen(run, instance, node.activity)
        instance.next = len(chosen)
        for place, part in enumerate(node.children):
            if place in chosen:
                run.begin(part, instance, place, instance.env, instance.scope, instance.path)
            else:
                run.skip_unstarted(part, instance, f"{node.name} chose another way")
        if not chosen:
            run.end(instance, InstanceEnd.COMPLETED)

    def chosen(self, run: Run, instance: Structure, activity: Choose) -> set[int]:
        chosen: set[int] = set()
        for place, branch in enumerate(activity.branches):
            if data.holds(run.case, instance.env, branch.when):
                chosen.add(place)
                if not activity.many:
                    return chosen
        if not chosen and activity.otherwise is not None:
            chosen.add(len(activity.branches))
        return chosen

    def child_ended(self, run: Run, instance: Structure, _child: Instance, _place: int, /) -> None:
        if not instance.children:
            run.end(instance, InstanceEnd.COMPLETED)

    def child_removed(self, run: Run, instance: Structure, child: Instance, place: int) -> None:
        if instance.children or instance.next > 1:
            self.child_ended(run, instance, child, place)
        else:
            run.end(instance, InstanceEnd.REMOVED)
