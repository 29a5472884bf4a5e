"""Event handlers: while a scope's body runs, each message and alarm starts a handler in parallel."""

from typing import Final

from mendflow.core.engine import data, message_delivery
from mendflow.core.engine.faults import INVALID_EXPRESSION_VALUE, FlowFault, flow_fault
from mendflow.core.engine.item_ids import path_of
from mendflow.core.engine.messages import Deliver, DropTimer, SetTimer
from mendflow.core.engine.run import Run
from mendflow.core.engine.state import Alarm, InstancePhase, PickInstance, ScopeInstance, ScopeStage, TimedItem
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import OnAlarm, OnMessage
from mendflow.core.model.ids import Instant

EVENT: Final = 2
"""The position of event handlers among a scope's children."""

TimedInstance = ScopeInstance | TimedItem | PickInstance


def enable(run: Run, scope: ScopeInstance) -> None:
    """Set the alarms and listen to the channels; messages that are already there are taken at once. The handlers of a
    process wait for the message that starts it."""
    if run.plan.begins and scope.node == run.plan.process and not run.case.has_created:
        return
    node = run.nodes[scope.node]
    for place, index in enumerate(node.alarms):
        set_alarm(run, scope, place, run.nodes[index].activity, scope.inner)
    for place, index in enumerate(node.messages):
        activity = run.nodes[index].activity
        correlation = data.value_of(run.case, scope.inner, activity.correlation)
        message_delivery.listen(run, scope, place, activity, scope.inner, correlation)
        while (message := message_delivery.take_waiting(run, scope, place, activity, correlation)) is not None:
            begin(run, scope, place, message)


def case_created(run: Run) -> None:
    """The message that starts the case was taken."""
    if run.case.has_created:
        return
    run.case.has_created = True
    process = next((each for each in run.instances.values() if each.node == run.plan.process), None)
    if (
        isinstance(process, ScopeInstance)
        and process.phase is InstancePhase.RUNNING
        and process.stage is ScopeStage.BODY
    ):
        try:
            enable(run, process)
        except FlowFault as problem:
            run.kinds[run.nodes[process.node].kind].listening_failed(run, process, problem.fault)


def disable(run: Run, scope: ScopeInstance) -> None:
    drop_alarms(run, scope)
    message_delivery.stop_listening(run, scope)


def set_alarm(run: Run, owner: TimedInstance, place: int, alarm_fired: OnAlarm, env: int) -> None:
    every_ms = 0
    if alarm_fired.every is not None:
        every_ms = data.duration_of(run.case, env, alarm_fired.every, run.now, "`every`")
        if not every_ms and run.plan.flow.xml is not None:
            raise flow_fault(INVALID_EXPRESSION_VALUE, "an alarm that repeats must let some time pass each time")
    at = due_instant(run, env, alarm_fired.duration, alarm_fired.until, every_ms)
    add_timer(run, owner, Alarm(place, at, every_ms))


def due_instant(
    run: Run, env: int, duration: Expr | int | None, until: Expr | int | None, otherwise_ms: int = 0
) -> Instant:
    if until is not None:
        return data.instant_of(run.case, env, until, "`until`")
    if duration is not None:
        return run.now + data.duration_of(run.case, env, duration, run.now, "`duration`")
    return run.now + otherwise_ms


def add_timer(run: Run, owner: TimedInstance, alarm_fired: Alarm) -> None:
    serial = run.serial()
    owner.timers[serial] = alarm_fired
    run.index.serials[serial] = owner.id
    run.orders.append(SetTimer(serial=serial, at=alarm_fired.at))


def take_timer(run: Run, owner: TimedInstance, serial: int) -> Alarm:
    """A timer has fired: remove it."""
    del run.index.serials[serial]
    return owner.timers.pop(serial)


def drop_alarms(run: Run, owner: TimedInstance) -> None:
    for serial in owner.timers:
        del run.index.serials[serial]
        if not run.answered(serial):
            run.orders.append(DropTimer(serial=serial))
    owner.timers.clear()


def alarm_fired(run: Run, scope: ScopeInstance, serial: int) -> None:
    """An alarm fired. A repeating one is set again from its due time, so that it does not drift; repetitions that were
    missed completely are skipped."""
    due = take_timer(run, scope, serial)
    if due.every_ms:
        missed = max(0, run.now - due.at) // due.every_ms
        add_timer(run, scope, Alarm(due.place, due.at + (missed + 1) * due.every_ms, due.every_ms))
    begin_handler(run, scope, run.nodes[scope.node].alarms[due.place])


def begin(run: Run, scope: ScopeInstance, place: int, heard: Deliver) -> None:
    index = run.nodes[scope.node].messages[place]
    activity: OnMessage = run.nodes[index].activity
    if activity.xml is not None:
        if not opens_inside(activity):
            message_delivery.open_request(run, scope.inner, activity, heard)
        message_delivery.correlate_heard(run, scope.inner, activity, heard.value)
        begin_handler(run, scope, index).message = heard
        return
    handler = begin_handler(run, scope, index)
    handler.handler_arguments = {activity.variable: heard.value}
    if heard.channel in run.plan.referenced_names:
        handler.request = (message_delivery.exchange_of(activity), heard.id)


def opens_inside(activity: OnMessage) -> bool:
    """Whether the request belongs to the scope of the handler itself."""
    own = activity.declared.exchanges if activity.declared is not None else ()
    return not activity.exchange or activity.exchange in own


def take_message(run: Run, handler: ScopeInstance) -> None:
    """The scope of a handler has started: its declared variables exist and can hold the message."""
    heard, handler.message = handler.message, None
    if heard is None:
        return
    activity: OnMessage = run.nodes[handler.node].activity
    if opens_inside(activity):
        message_delivery.open_request(run, handler.inner, activity, heard)
    message_delivery.correlate_inside(run, handler.inner, activity, heard.value)
    message_delivery.assign_message(run, handler.inner, activity, heard.value)


def begin_handler(run: Run, scope: ScopeInstance, node: int) -> ScopeInstance:
    path = path_of(scope.path, scope.handlers_begun)
    scope.handlers_begun += 1
    handler = run.begin(node, scope, EVENT, scope.inner, scope.id, path)
    assert isinstance(handler, ScopeInstance)
    return handler
