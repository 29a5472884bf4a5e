"""Scopes: their own variables, and handlers for faults, compensation, termination and events.

A handler is a scope too, so what it started is stopped, handled and compensated by the same rules. The flow itself is
the outermost scope. A fault first stops everything that runs in the scope; when all of it has ended, a handler starts.
Without a matching handler, completed inner scopes are compensated, last first, and the fault propagates outwards. A
scope that is told to end while it handles a fault finishes that first.

Isolated scopes of a case run one at a time, in order of arrival: so they never see each other's partial changes of
shared variables."""

from typing import ClassVar

from mendflow.core.engine import data, message_delivery
from mendflow.core.engine.activities import basic, compensation, events
from mendflow.core.engine.activity_kind import ActivityKind
from mendflow.core.engine.faults import (
    JOIN_FAILURE,
    MISSING_REPLY,
    SCOPE_INITIALIZATION_FAILURE,
    STANDARD,
    FlowFault,
    fault_value,
    flow_fault,
)
from mendflow.core.engine.messages import Deliver
from mendflow.core.engine.plan import ON_MESSAGE
from mendflow.core.engine.run import Run
from mendflow.core.engine.state import CompensationRecord, Instance, InstanceEnd, ScopeInstance, ScopeStage
from mendflow.core.engine.xml.assignment import declare
from mendflow.core.engine.xml.handlers import choose
from mendflow.core.model.faults import Fault
from mendflow.core.model.flow import Catch, Scope
from mendflow.core.model.values import Value
from mendflow.core.model.xml import ScopeDeclarations

BODY, HANDLER = 0, 1
"""Positions of a scope's children: its body, and the handler that runs after it."""


class ScopeKind(ActivityKind[ScopeInstance]):
    makes = ScopeInstance
    home: ClassVar[bool] = False
    is_remembered: ClassVar[bool] = True  # completed inner scopes, or its own handler, can be compensated later
    shares_results: ClassVar[bool] = True  # its variables are visible outside when it has ended

    def start(self, run: Run, scope: ScopeInstance) -> None:
        if not self.enter_isolation(run, scope):
            return
        scope.stage = ScopeStage.BODY
        scope.inner = data.open_env(run.case, scope.env, {}, scope.node, home=self.keeps_requests(run, scope)).id
        try:
            self.initialise(run, scope)
        except FlowFault as problem:
            cause = problem.fault
            raise flow_fault(
                SCOPE_INITIALIZATION_FAILURE, f"{cause.name}: {cause.message}", fault_value(cause)
            ) from None
        self.begin_body(run, scope)
        try:
            events.enable(run, scope)
        except FlowFault as problem:
            self.catch(run, scope, problem.fault)

    def keeps_requests(self, run: Run, scope: ScopeInstance) -> bool:
        """Whether it declares the unnamed message exchange. In BPEL, a process and an event handler do."""
        if run.plan.flow.xml is None:
            return self.home
        return scope.node in (0, run.plan.process) or run.nodes[scope.node].kind == ON_MESSAGE

    def enter_isolation(self, run: Run, scope: ScopeInstance) -> bool:
        """Whether the scope may run now; an isolated one may have to wait."""
        case = run.case
        if not self.is_isolated(run, scope) or case.isolated == scope.id:
            return True
        if case.isolated:
            scope.stage = ScopeStage.QUEUED
            case.tickets += 1
            scope.ticket = case.tickets
            case.isolated_next[scope.ticket] = scope.id
            return False
        case.isolated, scope.is_isolating = scope.id, True
        return True

    def is_isolated(self, run: Run, scope: ScopeInstance) -> bool:
        return run.nodes[scope.node].isolated

    def step(self, run: Run, scope: ScopeInstance) -> None:
        """Its turn among the isolated scopes has come."""
        self.start(run, scope)

    def initialise(self, run: Run, scope: ScopeInstance) -> None:
        """Set the variables, in order: each may use those before it."""
        variables = run.case.envs[scope.inner].variables
        declared = run.nodes[scope.node].declared
        if declared is not None:
            declare(run.case, run.case.envs[scope.inner], declared)
            if scope.node == run.plan.process:
                self.begin_process(run, scope, declared)
        for name, template in run.nodes[scope.node].activity.variables.items():
            variables[name] = data.value_of(run.case, scope.inner, template)

    def begin_process(self, run: Run, scope: ScopeInstance, declared: ScopeDeclarations) -> None:
        """The variables of a flow with XML are those of its process: they may be visible outside, or written before the
        start."""
        run.case.envs[scope.inner].variables.update(run.plan.flow.variables)
        for name in declared.types:
            basic.reapply_early_writes(run.case, scope.inner, name)

    def begin_body(self, run: Run, scope: ScopeInstance) -> None:
        run.begin(run.nodes[scope.node].children[0], scope, BODY, scope.inner, scope.id, scope.path)

    def child_ended(self, run: Run, scope: ScopeInstance, child: Instance, place: int) -> None:
        if scope.stage is ScopeStage.BODY and place == BODY:
            events.disable(run, scope)
            scope.stage = ScopeStage.CLOSING
            scope.is_failed = child.end is InstanceEnd.FAILED
        if scope.stage is ScopeStage.HANDLING:
            self.handled(run, scope, child)
        elif not scope.children:
            if (
                scope.stage is ScopeStage.CLOSING
                and (missing := message_delivery.missing_reply(run, scope)) is not None
            ):
                self.catch(run, scope, missing)
            elif scope.stage is ScopeStage.CLOSING:
                self.complete(run, scope)
            elif scope.stage is ScopeStage.FAULTING:
                self.handle(run, scope)

    def child_removed(self, run: Run, scope: ScopeInstance, child: Instance, place: int) -> None:
        """Event handlers are separate paths; the body and a fault handler are the scope's own path."""
        scope.is_removed = scope.is_removed or place == BODY or scope.stage is ScopeStage.HANDLING
        self.child_ended(run, scope, child, place)

    def child_faulted(self, run: Run, scope: ScopeInstance, _child: Instance, fault: Fault, /) -> bool:
        if scope.stage in (ScopeStage.BODY, ScopeStage.CLOSING):
            self.catch(run, scope, fault)
            return True
        if scope.stage is ScopeStage.FAULTING:
            return True
        assert scope.stage is ScopeStage.HANDLING, scope.stage
        if scope.is_terminating:
            return True
        run.end(scope, InstanceEnd.FAULTED)
        return False

    def catch(self, run: Run, scope: ScopeInstance, fault: Fault) -> None:
        """Stop everything inside; the handler starts when all of it has ended."""
        standard = fault.name in STANDARD and fault.name != JOIN_FAILURE
        if standard and self.exits(run, scope):
            run.finish("failed", fault=fault)
            return
        scope.fault, scope.stage = fault, ScopeStage.FAULTING
        events.disable(run, scope)
        for child in list(scope.children):
            run.stop(run.instances[child])
        if not scope.children:
            self.handle(run, scope)

    def exits(self, run: Run, scope: ScopeInstance) -> bool:
        """Whether a standard fault ends the case. In BPEL, handlers behave like their scope."""
        node = run.nodes[scope.node]
        if run.plan.flow.xml is not None and node.parent >= 0 and not isinstance(node.activity, Scope):
            node = run.nodes[node.parent]
        return isinstance(node.activity, Scope) and node.activity.exit_on_standard_fault

    def handle(self, run: Run, scope: ScopeInstance) -> None:
        """Everything inside has ended: choose the handler."""
        node = run.nodes[scope.node]
        chosen, given = self.choose(run, scope)
        for each in node.catches:
            if each != chosen:
                run.skip_links(each, scope)
        if chosen < 0 and not scope.records:
            self.give_up(run, scope)
            return
        scope.stage = ScopeStage.HANDLING
        self.begin_handler(run, scope, chosen).handler_arguments = given

    def choose(self, run: Run, scope: ScopeInstance) -> tuple[int, dict[str, Value]]:
        """The node of the matching handler, or -1, and its data."""
        catches, fault, world = run.nodes[scope.node].catches, scope.fault, run.plan.flow.xml
        assert fault is not None
        handlers: list[Catch] = [run.nodes[each].activity for each in catches]
        if world is not None:
            place, given = choose(handlers, fault, world)
            return (catches[place] if place >= 0 else -1), given
        for wanted in (fault.name, None):
            for place, handler in enumerate(handlers):
                if handler.fault == wanted:
                    return catches[place], {handler.variable: fault_value(fault)}
        return -1, {}

    def begin_handler(self, run: Run, scope: ScopeInstance, node: int) -> ScopeInstance:
        index = node if node >= 0 else run.plan.default
        handler = run.begin(index, scope, HANDLER, scope.inner, scope.id, scope.path)
        assert isinstance(handler, ScopeInstance)
        handler.targets, scope.records = scope.records, []
        return handler

    def handled(self, run: Run, scope: ScopeInstance, handler: Instance) -> None:
        """The handler has ended. The default one throws the fault again."""
        if scope.is_terminating:
            run.end(scope, InstanceEnd.STOPPED)
        elif handler.node == run.plan.default:
            self.give_up(run, scope)
        elif (missing := message_delivery.missing_reply(run, scope)) is not None:
            run.fail(scope, missing)
        else:
            self.share_results(run, scope)
            run.end(scope, InstanceEnd.REMOVED if scope.is_removed else InstanceEnd.COMPLETED)

    def give_up(self, run: Run, scope: ScopeInstance) -> None:
        assert scope.fault is not None
        if scope.is_terminating:
            run.end(scope, InstanceEnd.STOPPED)
        else:
            run.fail(scope, scope.fault)

    def complete(self, run: Run, scope: ScopeInstance) -> None:
        """The scope succeeded: leave a record if there is anything to compensate."""
        self.share_results(run, scope)
        self.keep_variables(run, scope)
        node = run.nodes[scope.node]
        undoable = node.compensation >= 0 and not scope.is_failed and not scope.is_removed
        if self.is_remembered and (undoable or scope.records):
            outer = run.instances[scope.scope]
            assert isinstance(outer, ScopeInstance)
            if scope.is_removed:  # it did not complete, but what completed inside can be undone
                outer.records.extend(scope.records)
            else:
                run.case.completions += 1
                number = run.case.completions
                outer.records.append(CompensationRecord(scope.node, scope.path, scope.inner, scope.records, number))
                scope.inner = 0
            scope.records = []
        run.end(scope, InstanceEnd.REMOVED if scope.is_removed else InstanceEnd.COMPLETED)

    def share_results(self, run: Run, scope: ScopeInstance) -> None:
        if self.shares_results:
            run.case.envs[scope.env].results.update(run.case.envs[scope.inner].results)

    def keep_variables(self, run: Run, scope: ScopeInstance) -> None:
        """The variables of a process stay visible after its end."""
        if scope.node == run.plan.process and run.plan.flow.xml is not None:
            run.case.variables = data.flow_variables(run.case)

    def stop(self, run: Run, scope: ScopeInstance, stack: list[Instance]) -> None:
        if scope.stage in (ScopeStage.FAULTING, ScopeStage.HANDLING):
            scope.is_terminating = True
            return
        if scope.stage is ScopeStage.QUEUED:
            run.end(scope, InstanceEnd.STOPPED)
            return
        events.disable(run, scope)
        super().stop(run, scope, stack)

    def children_stopped(self, run: Run, scope: ScopeInstance) -> None:
        node = run.nodes[scope.node]
        if scope.stage is not ScopeStage.ENDING and (node.termination >= 0 or scope.records):
            scope.stage = ScopeStage.ENDING
            self.begin_handler(run, scope, node.termination)
        else:
            run.end(scope, InstanceEnd.STOPPED)

    def close(self, run: Run, scope: ScopeInstance) -> None:
        case = run.case
        self.keep_variables(run, scope)
        events.disable(run, scope)
        compensation.discard(run, scope.records)
        compensation.discard(run, scope.targets)
        data.release(case, scope.inner)
        data.release(case, scope.held)
        scope.inner = scope.held = 0
        if scope.is_isolating:
            self.pass_isolation_on(run, scope)
        elif scope.stage is ScopeStage.QUEUED:
            del case.isolated_next[scope.ticket]

    def pass_isolation_on(self, run: Run, scope: ScopeInstance) -> None:
        case = run.case
        scope.is_isolating, case.isolated = False, 0
        while case.isolated_next and not case.isolated:
            case.tickets_served += 1
            case.isolated = case.isolated_next.pop(case.tickets_served, 0)
        if case.isolated:
            following = run.instances[case.isolated]
            assert isinstance(following, ScopeInstance)
            following.is_isolating = True
            run.step_later(following)

    def timer_fired(self, run: Run, scope: ScopeInstance, serial: int) -> None:
        events.alarm_fired(run, scope, serial)

    def message_heard(self, run: Run, scope: ScopeInstance, place: int, message: Deliver) -> None:
        events.begin(run, scope, place, message)

    def listening_failed(self, run: Run, scope: ScopeInstance, fault: Fault) -> None:
        """In BPEL, an event handler's failed message goes to the handlers of its own scope."""
        if run.plan.flow.xml is None:
            run.fail(scope, fault)
        elif scope.stage is ScopeStage.BODY:
            self.catch(run, scope, fault)


class FlowKind(ScopeKind):
    """The flow itself: its inputs are its variables, its outputs are evaluated at its end."""

    home = True

    def initialise(self, run: Run, scope: ScopeInstance) -> None:
        case, flow = run.case, run.plan.flow
        env = case.envs[scope.inner]
        if flow.xml is None:  # otherwise those of the process
            env.variables.update(flow.variables)
            env.variables.update(case.variables)
        env.variables["inputs"] = case.inputs
        env.results.update(flow.results)

    def complete(self, run: Run, scope: ScopeInstance) -> None:
        case = run.case
        if scope.is_removed:
            run.finish("completed", outputs=basic.outputs_so_far(run, scope))
            return
        try:
            unanswered = sorted(case.envs[scope.inner].requests or ())
            if unanswered:
                raise flow_fault(MISSING_REPLY, f"the flow ended without a reply on {', '.join(unanswered)}")
            if run.plan.flow.xml is not None and run.plan.flow.outputs:  # these belong to what the process leaves
                case.envs[scope.inner].variables.update(case.variables)
            outputs: dict[str, Value] = data.value_of(case, scope.inner, run.plan.flow.outputs)
        except FlowFault as problem:
            run.finish("failed", fault=problem.fault)
            return
        run.finish("completed", outputs=outputs)

    def close(self, run: Run, scope: ScopeInstance) -> None:
        run.case.variables = data.flow_variables(run.case)
        super().close(run, scope)


class HandlerKind(ScopeKind):
    """A fault or termination handler. `given` is the data that it was called with."""

    remembered = False

    def initialise(self, run: Run, scope: ScopeInstance) -> None:
        env, declared = run.case.envs[scope.inner], run.nodes[scope.node].declared
        if declared is not None:
            declare(run.case, env, declared)
        env.variables.update(scope.handler_arguments)
        scope.handler_arguments = {}


class CompensationKind(HandlerKind):
    """A compensation handler runs on its scope's data as of the scope's completion."""

    shares_results = False

    def is_isolated(self, run: Run, scope: ScopeInstance) -> bool:
        return run.nodes[run.nodes[scope.node].parent].isolated


class EventKind(HandlerKind):
    """One run of an event handler."""

    home = True
    remembered = True
    shares_results = False

    def initialise(self, run: Run, scope: ScopeInstance) -> None:
        super().initialise(run, scope)
        events.take_message(run, scope)
        if scope.request is not None:
            channel, message = scope.request
            run.case.envs[scope.inner].requests = {channel: message}
            scope.request = None


class DefaultKind(HandlerKind):
    """The default handler: compensate all completed inner scopes, last first."""

    shares_results = False

    def begin_body(self, run: Run, scope: ScopeInstance) -> None:
        self.next(run, scope)

    def next(self, run: Run, scope: ScopeInstance) -> None:
        if not compensation.begin_last(run, scope):
            run.end(scope, InstanceEnd.COMPLETED)

    def child_removed(self, run: Run, scope: ScopeInstance, child: Instance, place: int) -> None:
        """The remaining compensations are another path."""
        self.child_ended(run, scope, child, place)

    def child_ended(self, run: Run, scope: ScopeInstance, child: Instance, place: int) -> None:
        if scope.stage is ScopeStage.BODY:
            self.next(run, scope)
        else:
            super().child_ended(run, scope, child, place)
