"""Compiles the flows that users send, and holds up nobody meanwhile.

To check an expression of a few characters takes a fraction of a millisecond, and a flow may have a hundred thousand of
them. So a short check is done at once, as most are. A long one is begun as if it were short, and left to the process
that reads for the server as soon as it turns out to be long. What then remains is to number the activities, with pauses
between them. A flow that was checked in this way is known as long as it is in memory.

Most cases are of few flows. So the plans that were used last are kept, and the next case of the same flow begins with
what the one before has found out about it. Nothing in a plan depends on a case."""

import weakref
from collections import OrderedDict
from collections.abc import Callable
from types import NoneType
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import msgspec

from mendflow.core.engine.expression_checks import FlowJudge
from mendflow.core.engine.plan import Plan, compiling
from mendflow.core.expressions.work_budget import LongWork
from mendflow.core.model.flow import Flow
from mendflow.lazy import LazyModule
from mendflow.services.base.long_reads import LongReads
from mendflow.services.base.loop_yielder import done_in_pieces

if TYPE_CHECKING:
    from mendflow.services.base import reading_tasks
else:
    reading_tasks = LazyModule("mendflow.services.base.reading_tasks")

T = TypeVar("T")

UNITS_AT_ONCE: Final = 50_000
"""What the check of a flow may take within the server, about a microsecond each."""

PLANS_KEPT_MAX: Final = 16
ACTIVITIES_KEPT_MAX: Final = 10_000
FLOW_KEPT_BYTES_MAX: Final = 256 * 1024
"""So many plans are kept, with so many activities in all; a plan that has more by itself is not kept. A flow is kept
with its plan, so the plan of a large one is not kept either."""


class FlowMemo(Generic[T]):
    """What was computed from a flow, as long as that is in memory, also if it is too large for its plan to be kept.
    Flows are told apart by identity, for to compare them takes as long as to compute."""

    def __init__(self, compute: Callable[[Flow], T]) -> None:
        self._compute = compute
        self._known: dict[int, tuple[weakref.ref[Flow], T]] = {}

    def of(self, flow: Flow) -> T:
        key = id(flow)
        if (known := self._known.get(key)) is not None and known[0]() is flow:
            return known[1]
        found = self._compute(flow)
        self._known[key] = weakref.ref(flow, lambda gone: self._forget(key, gone)), found
        return found

    @property
    def known_count(self) -> int:
        return len(self._known)

    def _forget(self, key: int, gone: weakref.ref[Flow]) -> None:
        """The number of a flow that is gone may be that of another one by now."""
        if (known := self._known.get(key)) is not None and known[0] is gone:
            del self._known[key]


class FlowCompiler:
    def __init__(self, reads: LongReads) -> None:
        self._reads = reads
        self._checked: dict[tuple[int, bool], weakref.ref[Flow]] = {}  # those of which the check was long, by identity
        self._kept: OrderedDict[tuple[int, bool], Plan] = OrderedDict()  # the same way, the one used last at the end
        self._activities_kept = 0
        self._is_large = FlowMemo(is_large)

    async def check(self, flow: Flow) -> None:
        """Raises BadFlow with everything that is wrong with the flow and those that came with it."""
        await self._compiled(flow, alone=False)

    async def plan_of(self, flow: Flow, *, alone: bool = False) -> Plan:
        """The same; what is wrong with the flows that came with it does not matter if it is checked `alone`."""
        key = (id(flow), alone)  # as long as a plan is kept it has its flow, so no other one gets this id
        if (kept := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return kept
        plan = await self._compiled(flow, alone)
        if key not in self._kept:
            self._keep(key, plan)
        return plan

    def _keep(self, key: tuple[int, bool], plan: Plan) -> None:
        if len(plan.nodes) > ACTIVITIES_KEPT_MAX or self._is_large.of(plan.flow):
            return
        self._kept[key] = plan
        self._activities_kept += len(plan.nodes)
        while self._activities_kept > ACTIVITIES_KEPT_MAX or len(self._kept) > PLANS_KEPT_MAX:
            self._activities_kept -= len(self._kept.popitem(last=False)[1].nodes)

    async def _compiled(self, flow: Flow, alone: bool) -> Plan:
        if not self._reads.is_aside:
            return await done_in_pieces(compiling(flow, alone=alone))
        if not self._is_checked(flow, alone):
            try:
                return await done_in_pieces(compiling(flow, alone=alone, judge=FlowJudge(UNITS_AT_ONCE)))
            except LongWork:
                await self._reads.do_aside(reading_tasks.FlowToCheck(flow, alone), NoneType)
            self._remember(flow, alone)
        return await done_in_pieces(compiling(flow, taken=True))

    def _is_checked(self, flow: Flow, alone: bool) -> bool:
        found = self._checked.get((id(flow), False)) or (self._checked.get((id(flow), True)) if alone else None)
        return found is not None and found() is flow

    def _remember(self, flow: Flow, alone: bool) -> None:
        key = id(flow), alone
        self._checked[key] = weakref.ref(flow, lambda _: self._checked.pop(key, None))


def is_large(flow: Flow) -> bool:
    """Whether a flow takes too much memory to be kept with its plan."""
    return len(msgspec.msgpack.encode(flow)) > FLOW_KEPT_BYTES_MAX
