"""One activity after the other."""

from mendflow.core.engine.activity_kind import ActivityKind
from mendflow.core.engine.run import Run
from mendflow.core.engine.state import Instance, InstanceEnd, Structure


class SequenceKind(ActivityKind[Structure]):
    makes = Structure

    def start(self, run: Run, instance: Structure) -> None:
        parts = run.nodes[instance.node].children
        if instance.next == len(parts):
            run.end(instance, InstanceEnd.COMPLETED)
            return
        place = instance.next
        instance.next += 1
        run.begin(parts[place], instance, place, instance.env, instance.scope, instance.path)

    def child_ended(self, run: Run, instance: Structure, _child: Instance, _place: int, /) -> None:
        self.start(run, instance)

    def child_removed(self, run: Run, instance: Structure, _child: Instance, _place: int, /) -> None:
        for part in run.nodes[instance.node].children[instance.next :]:
            run.skip_unstarted(part, instance, "the activity before it on its path was removed")
        run.end(instance, InstanceEnd.REMOVED)
