"""Receive, reply and pick: messages from outside the case."""

from msgspec.structs import replace

from mendflow.core.engine import data, message_delivery
from mendflow.core.engine.activities.events import case_created, drop_alarms, set_alarm, take_timer
from mendflow.core.engine.activities.items import ItemKind
from mendflow.core.engine.activity_kind import ActivityKind
from mendflow.core.engine.messages import Deliver, ItemDone, SendReply
from mendflow.core.engine.run import Run
from mendflow.core.engine.state import Instance, InstanceEnd, PickInstance, ReceiveItem
from mendflow.core.engine.xml.correlation import demand_initiated
from mendflow.core.model.flow import OnMessage, Pick, Receive, Reply
from mendflow.core.model.jobs import Outcome


class ReceiveKind(ItemKind[ReceiveItem]):
    """Waits for one message."""

    makes = ReceiveItem

    def prepare(self, run: Run, instance: ReceiveItem) -> None:
        activity: Receive = run.nodes[instance.node].activity
        instance.correlation = data.value_of(run.case, instance.env, activity.correlation)

    def ask(self, run: Run, instance: ReceiveItem) -> None:
        activity: Receive = run.nodes[instance.node].activity
        if activity.xml is not None:
            demand_initiated(run.case, instance.env, activity.xml.correlations)
        message_delivery.listen(run, instance, 0, activity, instance.env, instance.correlation)
        message = message_delivery.take_waiting(run, instance, 0, activity, instance.correlation)
        if message is not None:
            self.message_heard(run, instance, 0, message)

    def message_heard(self, run: Run, instance: ReceiveItem, _place: int, message: Deliver) -> None:
        activity: Receive = run.nodes[instance.node].activity
        message_delivery.open_request(run, instance.env, activity, message)
        if activity.xml is not None:
            message_delivery.correlate_heard(run, instance.env, activity, message.value)
        self.succeed(run, instance, Outcome(outputs=message.value))

    def succeed(self, run: Run, instance: ReceiveItem, outcome: Outcome) -> None:
        activity: Receive = run.nodes[instance.node].activity
        if activity.xml is not None:
            message_delivery.assign_message(run, instance.env, activity, outcome.outputs)
        elif activity.variable:
            data.assign(run.case, instance.env, activity.variable, outcome.outputs)
        shown = run.nodes[instance.node].shown
        run.orders.append(ItemDone(item=instance.item, name=shown, kind="receive", outputs=outcome.outputs))
        run.end(instance, InstanceEnd.COMPLETED)
        if activity.xml is not None and activity.xml.creates:
            case_created(run)

    def withdraw(self, run: Run, instance: ReceiveItem) -> None:
        message_delivery.stop_listening(run, instance)

    def wake(self, run: Run, instance: ReceiveItem, /) -> None:
        """Take a message that arrived while it was suspended."""
        self.withdraw(run, instance)
        self.ask(run, instance)

    def phase(self, _instance: ReceiveItem, /) -> str:
        return "listening"


class ReplyKind(ActivityKind[Instance]):
    """Answers the open request. The reply is posted: owed until it is acknowledged."""

    def start(self, run: Run, instance: Instance) -> None:
        activity: Reply = run.nodes[instance.node].activity
        if activity.xml is not None:
            order = message_delivery.build_reply(run, instance.env, activity, activity.xml)
        else:
            value = data.value_of(run.case, instance.env, activity.value)
            message = message_delivery.close_request(run, instance.env, activity)
            order = SendReply(serial=0, message=message, channel=activity.channel, value=value, fault=activity.fault)
        serial = run.serial()
        order = replace(order, serial=serial)
        run.case.posted[serial] = order
        run.orders.append(order)
        run.end(instance, InstanceEnd.COMPLETED)


class PickKind(ActivityKind[PickInstance]):
    """Takes the first of several messages and alarms; drops the others."""

    makes = PickInstance

    def start(self, run: Run, instance: PickInstance) -> None:
        activity: Pick = run.nodes[instance.node].activity
        for place, branch in enumerate(activity.messages):
            correlation = data.value_of(run.case, instance.env, branch.correlation)
            if branch.xml is not None:
                demand_initiated(run.case, instance.env, branch.xml.correlations)
            message_delivery.listen(run, instance, place, branch, instance.env, correlation)
            message = message_delivery.take_waiting(run, instance, place, branch, correlation)
            if message is not None:
                self.message_heard(run, instance, place, message)
                return
        for place, alarm in enumerate(activity.alarms, start=len(activity.messages)):
            set_alarm(run, instance, place, alarm, instance.env)

    def message_heard(self, run: Run, instance: PickInstance, place: int, message: Deliver) -> None:
        branch: OnMessage = run.nodes[instance.node].activity.messages[place]
        self.forget(run, instance)
        message_delivery.open_request(run, instance.env, branch, message)
        if branch.xml is None:
            data.assign(run.case, instance.env, branch.variable, message.value)
        else:
            message_delivery.correlate_heard(run, instance.env, branch, message.value)
            message_delivery.assign_message(run, instance.env, branch, message.value)
        self.take(run, instance, place)
        if branch.xml is not None and branch.xml.creates:
            case_created(run)

    def timer_fired(self, run: Run, instance: PickInstance, serial: int) -> None:
        due = take_timer(run, instance, serial)
        self.forget(run, instance)
        self.take(run, instance, due.place)

    def take(self, run: Run, instance: PickInstance, chosen: int) -> None:
        node = run.nodes[instance.node]
        for place, part in enumerate(node.children):
            if place == chosen:
                run.begin(part, instance, place, instance.env, instance.scope, instance.path)
            else:
                run.skip_unstarted(part, instance, f"{node.name} picked another way")

    def forget(self, run: Run, instance: PickInstance) -> None:
        drop_alarms(run, instance)
        message_delivery.stop_listening(run, instance)

    def child_ended(self, run: Run, instance: PickInstance, _child: Instance, _place: int, /) -> None:
        run.end(instance, InstanceEnd.COMPLETED)

    def child_removed(self, run: Run, instance: PickInstance, _child: Instance, _place: int, /) -> None:
        run.end(instance, InstanceEnd.REMOVED)

    def close(self, run: Run, instance: PickInstance) -> None:
        self.forget(run, instance)
