"""The activity kinds, under the names that the model and the plan use."""

from collections.abc import Mapping
from typing import Any, Final

from mendflow.core.engine import plan
from mendflow.core.engine.activities.basic import AssignKind, EmptyKind, ExitKind, RethrowKind, ThrowKind, ValidateKind
from mendflow.core.engine.activities.choose import ChooseKind
from mendflow.core.engine.activities.compensation import CompensateKind
from mendflow.core.engine.activities.foreach import ForEachKind
from mendflow.core.engine.activities.job import JobKind
from mendflow.core.engine.activities.loops import UntilKind, WhileKind
from mendflow.core.engine.activities.messaging import PickKind, ReceiveKind, ReplyKind
from mendflow.core.engine.activities.parallel import ParallelKind
from mendflow.core.engine.activities.scope import (
    CompensationKind,
    DefaultKind,
    EventKind,
    FlowKind,
    HandlerKind,
    ScopeKind,
)
from mendflow.core.engine.activities.sequence import SequenceKind
from mendflow.core.engine.activities.transform import TransformKind
from mendflow.core.engine.activities.work import CallKind, InvokeKind, MendKind, StageKind, TaskKind, WaitKind
from mendflow.core.engine.activity_kind import ActivityKind
from mendflow.core.engine.activity_parts import TRANSFORM

KINDS: Final[Mapping[str, ActivityKind[Any]]] = {
    plan.FLOW: FlowKind(),
    plan.CATCH: HandlerKind(),
    plan.COMPENSATION: CompensationKind(),
    plan.TERMINATION: HandlerKind(),
    plan.ON_MESSAGE: EventKind(),
    plan.ON_ALARM: EventKind(),
    plan.DEFAULT: DefaultKind(),
    "empty": EmptyKind(),
    "exit": ExitKind(),
    "assign": AssignKind(),
    TRANSFORM: TransformKind(),
    "validate": ValidateKind(),
    "wait": WaitKind(),
    "throw": ThrowKind(),
    "rethrow": RethrowKind(),
    "compensate": CompensateKind(),
    "sequence": SequenceKind(),
    "parallel": ParallelKind(),
    "choose": ChooseKind(),
    "while": WhileKind(),
    "until": UntilKind(),
    "for-each": ForEachKind(),
    "scope": ScopeKind(),
    "receive": ReceiveKind(),
    "reply": ReplyKind(),
    "pick": PickKind(),
    "invoke": InvokeKind(),
    "job": JobKind(),
    "user-task": TaskKind(),
    "stage": StageKind(),
    "call": CallKind(),
    "mend": MendKind(),
}
