"""The interpreter: processes one event step by step from an agenda until nothing more can be done.

Activities never call each other: a parent puts a child's start on the agenda, a child its own end. So depth costs no
stack, the order is deterministic, and the work can be interrupted anywhere: after a bounded number of starts the rest
of the agenda stays in the case, and ContinueLater requests the next piece.

What an activity does is up to its kind (activity_kind.py). The interpreter knows none of them."""

from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from mendflow.core.engine import data, links
from mendflow.core.engine.activity_kind import ActivityKind
from mendflow.core.engine.elements import element_at
from mendflow.core.engine.faults import JOIN_FAILURE, FlowFault, flow_fault
from mendflow.core.engine.item_ids import item_id
from mendflow.core.engine.messages import (
    CUT_WHEN_LONG,
    NOT_CUT,
    CancelCalledCase,
    CancelJob,
    ContinueLater,
    EndCase,
    ItemFailed,
    ItemSkipped,
    Order,
    WithdrawTask,
)
from mendflow.core.engine.plan import WORK, work_below
from mendflow.core.engine.state import (
    AnyInstance,
    Case,
    CaseIndex,
    Instance,
    InstanceEnd,
    InstancePhase,
    Item,
    JobItem,
    Structure,
    XmlMeter,
    kept_answer_serial,
)
from mendflow.core.expressions.cel_functions import CANCELLED_END, FAILED_END
from mendflow.core.model.faults import REMOVED_WORDS, Fault, with_reason
from mendflow.core.model.ids import Instant
from mendflow.core.model.values import Value

STARTS_MAX: Final = 500
"""How many activities one event starts before the rest is left to ContinueLater."""

WORK_MAX: Final = 30_000
"""How much work of expressions and on XML, as the meter counts it, one event does before the rest is left to
ContinueLater: others wait meanwhile."""

START, JOIN, ENDED, STEP = range(4)


class Run:
    """The processing of one event on one case."""

    __slots__ = (
        "_cut",
        "_steps",
        "agenda",
        "case",
        "index",
        "instances",
        "kinds",
        "meter",
        "nodes",
        "now",
        "orders",
        "plan",
        "starts",
    )

    def __init__(self, case: Case, kinds: Mapping[str, ActivityKind[Any]], now: Instant, cut: int = NOT_CUT) -> None:
        self._cut = cut
        self._steps = 0
        self.case = case
        self.kinds = kinds
        self.now = now
        self.plan = case.plan
        self.nodes = self.plan.nodes
        self.instances = case.instances
        self.index: CaseIndex = case.index
        self.orders: list[Order] = []
        self.agenda: deque[tuple[int, int]] = deque()
        self.starts = 0
        self.meter: XmlMeter = case.meter
        self.meter.begin()

    def serial(self) -> int:
        self.case.last_serial += 1
        return self.case.last_serial

    def is_cut_here(self) -> bool:
        """Whether the rest is left for later: asked before each step. An event that was applied before is cut where it
        was cut then, whatever its work counts for by now."""
        meter = self.meter
        if meter.cut:
            return True
        self._steps += 1
        if self._cut == CUT_WHEN_LONG:
            is_here = self.starts >= STARTS_MAX or meter.work >= WORK_MAX
        else:
            is_here = self._steps == self._cut
        if is_here:
            meter.cut = self._steps
        return is_here

    def answered(self, serial: int) -> bool:
        """Whether a kept fact answers this order, which is about to be dropped: then there is nothing to withdraw."""
        return self.case.answered.pop(serial, 0) is None

    def begin(self, node: int, parent: Structure, place: int, env: int, scope: int, path: str) -> AnyInstance:
        """Schedule a child: it starts when the agenda gets to it."""
        instance = self.make(node, parent.id, env, scope, path)
        parent.children[instance.id] = place
        self.agenda.append((START, instance.id))
        return instance

    def make(self, node: int, parent: int, env: int, scope: int, path: str) -> AnyInstance:
        case = self.case
        case.last_id += 1
        instance = self.kinds[self.nodes[node].kind].makes(case.last_id, node, parent, env, scope, path)
        self.instances[instance.id] = instance
        return instance

    def work(self) -> None:
        """Process the agenda, up to the limit; the rest stays in the case."""
        agenda, instances = self.agenda, self.instances
        while agenda:
            if self.is_cut_here():
                self.case.backlog.extend(agenda)
                agenda.clear()
                return
            what, id = agenda.popleft()
            instance = instances.get(id)
            if instance is None:
                continue
            if what == ENDED:
                self.tell_parent(instance)
                continue
            try:
                _STEPS[what](self, instance)
            except FlowFault as problem:
                self.fail(instance, problem.fault)

    def yield_work(self) -> None:
        """At the end of an event: request to be called again if there is more to do."""
        self.meter.end()
        case = self.case
        if case.continuation or case.status != "running" or not (case.backlog or case.facts):
            return
        case.continuation = self.serial()
        self.orders.append(ContinueLater(serial=case.continuation))

    def start(self, instance: Instance) -> None:
        if instance.phase is not InstancePhase.NEW:
            return
        self.starts += 1
        node = self.nodes[instance.node]
        if node.is_plain:
            instance.phase = InstancePhase.RUNNING
            self.kinds[node.kind].start(self, instance)
        elif links.await_links(self, instance, node):
            self.join(instance)
        else:
            instance.phase = InstancePhase.JOINING

    def join(self, instance: Instance) -> None:
        """All links are decided: run the activity, skip it, or fail."""
        if instance.phase > InstancePhase.JOINING:
            return
        node = self.nodes[instance.node]
        if node.targets and not links.join_holds(self, instance, node):
            if not node.activity.suppress_join_failure:
                raise flow_fault(JOIN_FAILURE, f"{node.name}: its incoming links do not let it run")
            self.skip(instance, links.why_not_joined(self, instance, node))
        elif node.activity.when is not None and not data.holds(self.case, instance.env, node.activity.when):
            self.skip(instance, data.why_false(self.case, instance.env, node.activity.when))
        else:
            instance.phase = InstancePhase.RUNNING
            self.kinds[node.kind].start(self, instance)

    def step(self, instance: Instance) -> None:
        if instance.phase is InstancePhase.RUNNING:
            self.kinds[self.nodes[instance.node].kind].step(self, instance)

    def step_later(self, instance: Instance) -> None:
        self.agenda.append((STEP, instance.id))

    def end(self, instance: Instance, how: InstanceEnd) -> None:
        """The instance has ended. Its links are decided, and its parent will be notified."""
        assert instance.phase is not InstancePhase.DONE, "an instance ends once"
        node = self.nodes[instance.node]
        if instance.phase is InstancePhase.JOINING:
            links.stop_waiting(self, instance, node)
        unheard = kept_answer_serial(self.case, instance) if how is InstanceEnd.STOPPED else 0
        self.kinds[node.kind].close(self, instance)
        if unheard:
            self.tell_skipped(instance.node, instance, "it was not needed", cancelled=True, serial=unheard)
        instance.phase = InstancePhase.DONE
        instance.end = how
        if how in FAILING_ENDS:
            self.note_end(instance, FAILING_ENDS[how])
        elif how is InstanceEnd.COMPLETED:
            self.forget_end(instance, node.name)
        if not node.is_quiet:
            links.decide_leaving(self, instance, node)
        self.agenda.append((ENDED, instance.id))

    def note_end(self, instance: Instance, end: str) -> None:
        """Remember that an activity did not end well, for those who ask. A step that can be undone stands in a scope
        that is shown as the step."""
        node = self.nodes[instance.node]
        env = self.case.envs.get(instance.env)
        if env is not None and node.name:
            env.ends = {**(env.ends or {}), node.name: end, node.shown: end}

    def forget_end(self, instance: Instance, name: str) -> None:
        """It ended well, in a later turn of a loop than the one that failed."""
        env = self.case.envs.get(instance.env)
        if env is not None and env.ends is not None and name in env.ends:
            env.ends = {each: end for each, end in env.ends.items() if each != name}

    def tell_parent(self, instance: Instance) -> None:
        del self.instances[instance.id]
        parent = self.instances[instance.parent]
        assert isinstance(parent, Structure)
        place = parent.children.pop(instance.id)
        if parent.phase is InstancePhase.DONE:
            return
        kind = self.kinds[self.nodes[parent.node].kind]
        try:
            if parent.phase is not InstancePhase.STOPPING:
                if instance.end is InstanceEnd.REMOVED:
                    kind.child_removed(self, parent, instance, place)
                else:
                    kind.child_ended(self, parent, instance, place)
                return
            kind.child_forgotten(self, parent, instance)
            if not parent.children:
                kind.children_stopped(self, parent)
        except FlowFault as problem:
            self.fail(parent, problem.fault)

    def skip(self, instance: Instance, reason: str) -> None:
        """End it without having run it."""
        self.tell_skipped(instance.node, instance, reason)
        self.end(instance, InstanceEnd.SKIPPED)

    def remove(self, instance: Item, reason: str) -> None:
        """End an item as cancelled, and with it its path. If it had no outstanding order, its end is reported as
        information."""
        given, unheard = len(self.orders), kept_answer_serial(self.case, instance)
        self.end(instance, InstanceEnd.REMOVED)
        if len(self.orders) == given:
            message = with_reason(REMOVED_WORDS, reason)
            self.tell_skipped(instance.node, instance, message, cancelled=True, serial=unheard)
        for place in range(given, len(self.orders)) if reason else ():
            order = self.orders[place]
            if isinstance(order, CancelJob | WithdrawTask | CancelCalledCase):
                self.orders[place] = replace(order, reason=reason)

    def skip_unstarted(self, node: int, near: Instance, reason: str) -> None:
        """A part that will never start: its outgoing links are false."""
        self.tell_skipped(node, near, reason)
        self.skip_links(node, near)

    def skip_links(self, node: int, near: Instance) -> None:
        for link in self.nodes[node].leaving:
            links.decide(self, link, near, False)

    def tell_skipped(self, node: int, near: Instance, reason: str, *, cancelled: bool = False, serial: int = 0) -> None:
        for each in work_below(self.plan, node):
            told = ItemSkipped(
                item=item_id(each.shown, near.path),
                name=each.shown,
                kind=each.kind,
                reason=reason,
                cancelled=cancelled,
                serial=serial,
                element=element_at(self.case, near, each.index),
            )
            self.orders.append(told)

    def tell_failed(self, instance: Item, fault: Fault) -> Fault:
        """Report an item that failed before it issued an order, and name it in the fault. So is a job whose files did
        not come; that failure is not early: whoever stages files asks the rules about it. Of a job that was submitted
        once, and restarted, the fault stays as it came: journals have it so."""
        node = self.nodes[instance.node]
        is_staging = isinstance(instance, JobItem) and instance.staging
        was_submitted = bool(getattr(instance.order, "serial", 0))
        if node.kind not in WORK or (was_submitted and not is_staging):
            return fault
        item = item_id(node.shown, instance.path)
        is_named = fault.message.startswith(tuple(f"{name}:" for name in (item, node.shown, node.name)))
        if not was_submitted and not is_named:
            fault = replace(fault, message=f"{item}: {fault.message}")
        element = element_at(self.case, instance, instance.node)
        told = ItemFailed(
            item=item, name=node.shown, kind=node.kind, fault=fault, early=not is_staging, element=element
        )
        self.orders.append(told)
        return fault

    def tell_not_begun(self, loop: Instance, fault: Fault) -> Fault:
        """Report a loop that failed before its first iteration, as its first item: nothing else of it is seen. The
        fault names the loop. In BPEL the faults are left as they are."""
        if self.plan.flow.xml is not None:
            return fault
        node = self.nodes[loop.node]
        if not fault.message.startswith(f"{node.name}:"):
            fault = replace(fault, message=f"{node.name}: {fault.message}")
        failed = ""
        for each in work_below(self.plan, loop.node):
            item, name, kind = item_id(each.shown, loop.path), each.shown, each.kind
            element = element_at(self.case, loop, each.index)
            if failed:
                reason = f"{failed} failed"
                self.orders.append(ItemSkipped(item=item, name=name, kind=kind, reason=reason, element=element))
            else:
                failure = ItemFailed(item=item, name=name, kind=kind, fault=fault, early=True, element=element)
                self.orders.append(failure)
                failed = item
        return fault

    def stop(self, instance: Instance) -> None:
        """End a subtree early."""
        stack = [instance]
        while stack:
            each = stack.pop()
            if each.phase >= InstancePhase.STOPPING:
                continue
            if each.phase < InstancePhase.RUNNING or not isinstance(each, Structure):
                self.end(each, InstanceEnd.STOPPED)
            else:
                self.kinds[self.nodes[each.node].kind].stop(self, each, stack)

    def fail(self, instance: Instance, fault: Fault) -> None:
        """The activity itself fails; the fault propagates to a handler."""
        if instance.phase >= InstancePhase.STOPPING:
            return
        if isinstance(instance, Item):
            fault = self.tell_failed(instance, fault)
        if isinstance(instance, Structure) and instance.children:
            self.stop(instance)
        else:
            self.end(instance, InstanceEnd.FAULTED)
        self.throw(instance, fault)

    def throw(self, instance: Instance, fault: Fault) -> None:
        """Propagate a fault up the tree, from an instance that it ended. Where everything is being stopped it is
        dropped."""
        child = instance
        while child.parent:
            parent = self.instances[child.parent]
            if parent.phase is InstancePhase.STOPPING:
                self.stop(child)
                return
            if self.kinds[self.nodes[parent.node].kind].child_faulted(self, parent, child, fault):
                return
            child = parent
        self.finish("failed", fault=fault)

    def finish(self, status: Any, *, outputs: dict[str, Value] | None = None, fault: Fault | None = None) -> None:
        """The case has ended: nothing of it stays live."""
        case, self.case.final_results = self.case, data.all_results(self.case) if status == "completed" else {}
        for instance in self.instances.values():
            if instance.phase is not InstancePhase.DONE:
                self.kinds[self.nodes[instance.node].kind].close(self, instance)
        case.status, case.outputs, case.fault, case.ended_at = status, outputs or {}, fault, self.now
        if self.plan.flow.xml is not None:
            case.undelivered = case.messages_waiting()
        self.agenda.clear()
        live: tuple[dict[Any, Any] | list[Any], ...] = (
            case.instances,
            case.envs,
            case.backlog,
            case.listeners,
            case.mailbox,
            case.message_ids,
            case.facts,
            case.answered,
            case.isolated_next,
            case.holders,
            case.item_holders,
            case.at_start,
            case.restarts,
            case.levels,
            case.completed_items,
            self.index.items,
            self.index.serials,
        )
        for each in live:
            each.clear()
        case.root = case.isolated = case.continuation = 0
        self.orders.append(EndCase(status=status, outputs=case.outputs, fault=fault))


FAILING_ENDS: Final = {
    InstanceEnd.FAULTED: FAILED_END,
    InstanceEnd.FAILED: FAILED_END,
    InstanceEnd.REMOVED: CANCELLED_END,
}
_STEPS: Final = (Run.start, Run.join, Run.tell_parent, Run.step)
