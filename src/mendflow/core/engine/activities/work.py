"""Items other than jobs: a user task, a staging of files, a called flow, a partner's operation, a wait."""

from msgspec.structs import replace

from mendflow.core.engine import data, message_delivery
from mendflow.core.engine.activities.events import add_timer, take_timer
from mendflow.core.engine.activities.items import ItemKind, files_of, leave_result
from mendflow.core.engine.faults import (
    DEADLINE,
    INVALID_EXPRESSION_VALUE,
    UNSUPPORTED_REFERENCE,
    FlowFault,
    flow_fault,
)
from mendflow.core.engine.messages import (
    CallPartner,
    CancelCalledCase,
    ItemDone,
    OfferTask,
    RunPrimitive,
    StageFiles,
    StartCalledCase,
    WithdrawTask,
)
from mendflow.core.engine.run import Run
from mendflow.core.engine.secrets_in_faults import quoted
from mendflow.core.engine.state import Alarm, InstanceEnd, Item, TimedItem
from mendflow.core.engine.xml.declarations import link_at, operation_of, partner_at
from mendflow.core.engine.xml.parts import build_message, store_message
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import DURATION_MS_MAX, Call, Invoke, PrimitiveStep, Stage, UserTask, Wait
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.values import Value, file_of
from mendflow.core.model.xml import XmlMessage
from mendflow.core.scheduling.amounts import duration
from mendflow.core.soap.references import address_of, is_callable


class TaskKind(ItemKind[TimedItem]):
    """Offered to a role. After its deadline it is withdrawn and throws `deadline`."""

    makes = TimedItem
    withdrawal = WithdrawTask

    def prepare(self, run: Run, instance: TimedItem) -> None:
        activity: UserTask = run.nodes[instance.node].activity
        case, env = run.case, instance.env
        within = f"{activity.name}: `deadline_ms`"
        instance.duration_ms = data.number_of(case, env, activity.deadline_ms, within, DURATION_MS_MAX)
        instance.order = OfferTask(
            serial=0,
            item=instance.item,
            role=activity.role,
            title=data.text_of(case, env, activity.title) or activity.name,
            description=data.text_of(case, env, activity.description),
            data=data.value_of(case, env, activity.data),
            fields=activity.fields,
        )

    def ask(self, run: Run, instance: TimedItem) -> None:
        deadline = run.now + instance.duration_ms if instance.duration_ms else 0
        assert isinstance(instance.order, OfferTask)
        instance.order = replace(instance.order, deadline=deadline)
        super().ask(run, instance)
        if deadline:
            add_timer(run, instance, Alarm(0, deadline))

    def timer_fired(self, run: Run, instance: TimedItem, serial: int) -> None:
        take_timer(run, instance, serial)
        self.withdraw(run, instance)
        message = f"{instance.item} was not done within {duration(instance.duration_ms)}"
        raise FlowFault(Fault(name=DEADLINE, category=Category.TIME, message=message))

    def phase(self, _instance: Item, /) -> str:
        return "offered"


class StageKind(ItemKind[Item]):
    """Stores files on the server. Files that are stored already need no staging."""

    def prepare(self, run: Run, instance: Item) -> None:
        activity: Stage = run.nodes[instance.node].activity
        sources: dict[str, str] = {}
        for name, template in activity.files.items():
            given = data.value_of(run.case, instance.env, template)
            if isinstance(given, str) and given:
                sources[name] = given
            elif file_of(given) is None:
                told = f"{activity.name}: file {name} is {quoted(given, template)}"
                raise flow_fault(INVALID_EXPRESSION_VALUE, f"{told}; give a path, a URL or a stored file")
        instance.order = StageFiles(serial=0, item=instance.item, files=sources, order=activity.order)

    def ask(self, run: Run, instance: Item) -> None:
        assert isinstance(instance.order, StageFiles)
        if instance.order.files:
            super().ask(run, instance)
        else:
            self.succeed(run, instance, Outcome())

    def succeed(self, run: Run, instance: Item, outcome: Outcome) -> None:
        activity: Stage = run.nodes[instance.node].activity
        files = files_of(outcome)
        for name, template in activity.files.items():
            if name not in files:
                files[name] = data.value_of(run.case, instance.env, template)
        leave_result(run, instance, outcome.outputs, files, None)
        run.end(instance, InstanceEnd.COMPLETED)

    def phase(self, _instance: Item, /) -> str:
        return "staging"


class CallKind(ItemKind[Item]):
    """Runs another flow as a case of its own."""

    withdrawal = CancelCalledCase

    def prepare(self, run: Run, instance: Item) -> None:
        activity: Call = run.nodes[instance.node].activity
        instance.order = StartCalledCase(
            serial=0,
            item=instance.item,
            name=activity.flow,
            flow=run.plan.called.get(activity.flow),
            inputs=data.value_of(run.case, instance.env, activity.inputs),
            domain=activity.domain,
        )

    def phase(self, _instance: Item, /) -> str:
        return "called"


class InvokeKind(ItemKind[Item]):
    """Calls a partner. With a variable it waits for the answer; without one the call is posted and the flow continues.
    In XML it waits for every call: for the answer, or until a one-way partner has taken it. If it is given up while it
    waits, what it started is ended too: a job that nobody waits for is cancelled."""

    withdrawal = CancelCalledCase

    def prepare(self, run: Run, instance: Item) -> None:
        activity: Invoke = run.nodes[instance.node].activity
        if activity.sends is not None:
            instance.order = self.call(run, instance, activity.sends)
            return
        instance.order = CallPartner(
            serial=0,
            item=instance.item,
            partner=activity.partner,
            operation=activity.operation,
            value=data.value_of(run.case, instance.env, activity.value),
            wants_answer=bool(activity.variable),
        )

    def call(self, run: Run, instance: Item, sends: XmlMessage) -> CallPartner:
        case, env = run.case, instance.env
        operation = operation_of(case, env, sends, mine=False)
        value = build_message(case, env, sends, operation.input)
        _, link = link_at(case, env, sends.partner_link)
        reference = partner_at(case, env, sends.partner_link)
        if not is_callable(address := address_of(reference)):
            text = f"the address {address!r:.200}, which cannot be called" if address else "no address"
            raise flow_fault(UNSUPPORTED_REFERENCE, f"the reference of {sends.partner_link} says {text}")
        message_delivery.correlate_with(run, env, sends.correlations, operation.input, value)
        return CallPartner(
            serial=0,
            item=instance.item,
            partner=sends.partner_link,
            operation=sends.operation,
            value=value,
            wants_answer=True,
            port_type=link.partner,
            reference=reference,
        )

    def ask(self, run: Run, instance: Item) -> None:
        assert isinstance(instance.order, CallPartner)
        if instance.order.wants_answer:
            super().ask(run, instance)
            return
        order = replace(instance.order, serial=run.serial())
        run.case.posted[order.serial] = order
        run.orders.append(order)
        run.end(instance, InstanceEnd.COMPLETED)

    def order_finished(self, run: Run, instance: Item, outcome: Outcome) -> None:
        node = run.nodes[instance.node]
        if node.activity.sends is not None:
            done = ItemDone(item=instance.item, name=node.shown, kind=node.kind)
            run.orders.append(replace(done, outputs=outcome.outputs, fault=outcome.fault))
        super().order_finished(run, instance, outcome)

    def succeed(self, run: Run, instance: Item, outcome: Outcome) -> None:
        activity: Invoke = run.nodes[instance.node].activity
        if activity.gets is not None:
            self.take(run, instance, activity.gets, outcome.outputs)
        elif activity.variable:
            data.assign(run.case, instance.env, activity.variable, outcome.outputs)
        run.end(instance, InstanceEnd.COMPLETED)

    def take(self, run: Run, instance: Item, gets: XmlMessage, answer: Value) -> None:
        message = operation_of(run.case, instance.env, gets, mine=False).output
        store_message(run.case, instance.env, gets, message, answer)
        message_delivery.correlate_with(run, instance.env, gets.correlations, message, answer)

    def phase(self, _instance: Item, /) -> str:
        return "invoked"


class MendKind(ItemKind[Item]):
    """A primitive of an exlet, applied to the case that it mends. Its result is `jobs.NAME.outputs`."""

    def prepare(self, run: Run, instance: Item) -> None:
        activity: PrimitiveStep = run.nodes[instance.node].activity
        case, env = run.case, instance.env
        instance.order = RunPrimitive(
            serial=0,
            item=instance.item,
            do=activity.do,
            target=activity.target,
            about=data.text_of(case, env, activity.item),
            settings=data.value_of(case, env, activity.settings),
        )

    def phase(self, _instance: Item, /) -> str:
        return "mending"


class WaitKind(ItemKind[TimedItem]):
    makes = TimedItem

    def prepare(self, run: Run, instance: TimedItem) -> None:
        activity: Wait = run.nodes[instance.node].activity
        case, env = run.case, instance.env
        if activity.until is None:
            duration = 0 if activity.duration is None else activity.duration
            instance.duration_ms = data.duration_of(case, env, duration, run.now, f"{activity.name}: `duration`")
        else:
            instance.until = data.instant_of(case, env, activity.until, f"{activity.name}: `until`")

    def ask(self, run: Run, instance: TimedItem) -> None:
        at = run.now + instance.duration_ms if instance.duration_ms >= 0 else instance.until
        add_timer(run, instance, Alarm(0, at))

    def timer_fired(self, run: Run, instance: TimedItem, serial: int) -> None:
        take_timer(run, instance, serial)
        run.end(instance, InstanceEnd.COMPLETED)

    def succeed(self, run: Run, instance: TimedItem, _outcome: Outcome, /) -> None:
        run.end(instance, InstanceEnd.COMPLETED)

    def phase(self, _instance: Item, /) -> str:
        return "waiting"
