"""Unwinding: the completed steps of a case are undone, the last first, by a case of its own.

The flow that undoes them is made once and stored in that case's journal; only then one event in the mended case records
that these steps are being undone. So whatever happens in between, each step is undone by this case and by no other: a
crash neither skips one nor repeats one. If the flow itself has no compensation for a task, it comes from a library, by
the task's name."""

from typing import Final, NamedTuple

import msgspec

from mendflow.core.engine import CompensationStep, compensations
from mendflow.core.engine.messages import MarkCompensated
from mendflow.core.model.errors import Conflict, NotFound
from mendflow.core.model.flow import Activity, Call, Flow, Input, Sequence
from mendflow.core.model.ids import CaseId, FlowName, Instant, ItemId
from mendflow.core.model.values import Value
from mendflow.services.base.contracts import TRIES, Clock
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.readable_documents import demand_readable, readable_by_id
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.flows import Flows
from mendflow.services.cases.live_case import CaseDocument, LiveCase
from mendflow.stores.contract import Store

COMPENSATION_KIND: Final = "compensation"
NUMBERS: Final = "numbers"
UNDONE: Final = "undone"
LABEL_CHARS_MAX: Final = 100

UndoStep = tuple[CompensationStep, Flow, dict[str, Value]]
"""A completed step, the flow that undoes it, and its inputs."""


class Unwinding(NamedTuple):
    """The items that a case undoes, the last that completed first; none if there is nothing to undo. `is_live`: it has
    not ended."""

    items: list[str]
    is_live: bool


class Compensation(msgspec.Struct, kw_only=True):
    """An entry of the library: the flow that undoes a task. Its inputs are the task's inputs and results, by name."""

    task: str
    flow: str
    author: str = ""
    at: Instant = 0


_decode = msgspec.json.Decoder(Compensation).decode


class CompensationRegistry:
    """Compensations by the name of the task."""

    def __init__(self, store: Store, ledger: Ledger, clock: Clock, flows: Flows) -> None:
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._flows = flows
        self._known: dict[str, Compensation] = {}

    async def start(self) -> None:
        """Load the library, again where other servers may have changed it."""
        self._known = await readable_by_id(self._store.scan(COMPENSATION_KIND), _decode)

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks whose completion cases have to remember."""
        return tuple(sorted(self._known))

    def all(self) -> list[Compensation]:
        return [each for _, each in sorted(self._known.items())]

    async def register(self, task: str, flow: str, *, who: str = "") -> Compensation:
        """From now on this deployed flow undoes that task, in cases that start from now on."""
        self._flows.newest(flow)
        made = Compensation(task=task, flow=flow, author=who, at=self._clock.now())
        await self._put(task, made)
        self._known[task] = made
        return made

    async def forget(self, task: str) -> None:
        if not await self._put(task, None):
            raise NotFound(f"there is no compensation for {task!r} in the library")
        self._known.pop(task, None)

    async def _put(self, task: str, made: Compensation | None) -> bool:
        """The last write wins. Returns whether there was something to delete."""
        for _ in range(TRIES):
            found = await self._store.get(COMPENSATION_KIND, task)
            if found is None and made is None:
                return False
            if made is not None:
                demand_readable(found, _decode)
            version = found.version if found is not None else 0
            if await self._ledger.put_now(COMPENSATION_KIND, task, made, version) is not None:
                return True
        raise Conflict(f"what undoes {task!r} is changed by several at once, again and again; say it once more")

    def flow_for(self, task: str) -> Flow | None:
        known = self._known.get(task)
        try:
            return self._flows.newest(known.flow).flow if known is not None else None
        except NotFound:
            return None


class Unwinder:
    def __init__(self, manager: FlowManager, flows: Flows, library: CompensationRegistry) -> None:
        self._manager = manager
        self._flows = flows
        self._library = library

    async def unwind(self, exlet: LiveCase, serial: int, case: CaseId) -> Unwinding:
        """Undo what the case has completed. The case that undoes it ends the exlet's item."""
        id, by = CaseId(f"{exlet.id}.{serial}"), f"{exlet.id}/{serial}"
        begun = await self._manager.document(id)
        mended = self._manager.live.get(case)
        if begun is None or (begun.live and id not in self._manager.live):
            if mended is None or not (steps := self._steps(mended)):
                return Unwinding(items=[], is_live=False)
            begun = await self._begin(exlet, serial, id, mended, steps)
        if mended is not None and not mended.case.over:
            await self._manager.command(case, MarkCompensated(numbers=tuple(begun.inputs[NUMBERS]), by=by))
        return Unwinding(items=list(begun.inputs[UNDONE]), is_live=begun.live)

    def _steps(self, mended: LiveCase) -> list[UndoStep]:
        """What is to be undone and how, the last first."""
        found = []
        for each in reversed(compensations(mended.case)):
            if each.flow is not None:
                found.append((each, each.flow, each.inputs))
            elif (flow := self._library.flow_for(each.name)) is not None:
                found.append((each, flow, inputs_of(flow, mended.id, each)))
        return found

    async def _begin(
        self,
        exlet: LiveCase,
        serial: int,
        id: CaseId,
        mended: LiveCase,
        steps: list[UndoStep],
    ) -> CaseDocument:
        """The case that undoes is in the journal before anything of it starts, and so is the event that records its
        steps."""
        flow = flow_of(mended.document.flow, steps)
        inputs: dict[str, Value] = {f"given_{each.number}": given for each, _, given in steps}
        document = CaseDocument(
            id=id,
            flow=flow.name,
            digest=self._flows.digest(flow),
            inputs={
                **inputs,
                NUMBERS: [each.number for each, _, _ in steps],
                UNDONE: [str(each.item) for each, _, _ in steps],
            },
            parent=exlet.id,
            parent_serial=serial,
            owner=exlet.document.owner,
            project=exlet.document.project,
        )
        await self._manager.begin(document, flow, [], later=True)
        return document


def flow_of(name: str, steps: list[UndoStep]) -> Flow:
    """One call after another. Flows are told apart by the number of the step that they undo."""
    calls: list[Flow] = []
    body: list[Activity] = []
    for each, flow, given in steps:
        called = msgspec.structs.replace(flow, name=FlowName(f"{flow.name}.{each.number}"))
        calls.append(called)
        inputs = {key: f"${{{{ inputs.given_{each.number}[{quoted(key)}] }}}}" for key in given}
        body.append(Call(name=f"undo-{each.number}", label=label_of(each.item), flow=called.name, inputs=inputs))
    declared = {f"given_{each.number}": Input(type="map") for each, _, _ in steps}
    return Flow(
        name=FlowName(f"{name}.unwind"),
        body=Sequence(name="unwind", body=tuple(body)),
        inputs={**declared, NUMBERS: Input(type="list"), UNDONE: Input(type="list")},
        calls=tuple(calls),
        description=f"undoes what a case of {name} has completed, the last first",
    )


def label_of(item: ItemId) -> str:
    """The name of an undone item for people. Brackets would look like iterations of a loop."""
    name, _, turns = item.removesuffix("]").partition("[")
    return f"undo {name} {turns.replace(',', '.')}".strip()[:LABEL_CHARS_MAX]


def inputs_of(flow: Flow, case: CaseId, done: CompensationStep) -> dict[str, Value]:
    """The inputs of a compensation of the library: the task's inputs and results, as far as the flow has inputs for
    them."""
    left = done.outputs if isinstance(done.outputs, dict) else {}
    known = {"case": case, "item": done.item, "data": done.data, "outputs": done.outputs, **done.data, **left}
    return {name: known[name] for name in flow.inputs if name in known}


def quoted(text: str) -> str:
    """A text as a CEL literal."""
    return msgspec.json.encode(text).decode()
