"""The triggers that are in effect: one document for each flow that was deployed with some.

Nothing else is written when a flow gets triggers, but the definition of its data set, which is written again before its
folder is looked at: the watch, and who is told of ends, follow from the document. So a crash leaves the old triggers or
the new ones, and a flow without the document has none."""

from typing import Final

import msgspec

from mendflow.core.data.flow_triggers import FlowWatch, flow_watch, trigger_name
from mendflow.core.model.errors import Conflict
from mendflow.core.model.flow import FILES, Flow
from mendflow.core.model.flow_triggers import EndKind, FlowTriggers, ScheduleTrigger
from mendflow.core.model.ids import Instant
from mendflow.services.base.contracts import TRIES, Clock
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.readable_documents import readable_by_id
from mendflow.stores.contract import Store

TRIGGERS_KIND: Final = "flow-triggers"


class ActiveTriggers(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The triggers of a flow, and who deployed it with them. `takes_list`: the input for the file is a list."""

    flow: str
    triggers: FlowTriggers
    takes_list: bool = False
    by: str = ""
    at: Instant = 0


_decode = msgspec.json.Decoder(ActiveTriggers).decode


class FlowTriggerStore:
    def __init__(self, store: Store, ledger: Ledger, clock: Clock) -> None:
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._active: dict[str, ActiveTriggers] = {}

    async def start(self) -> None:
        """Read all triggers; other servers may have changed some."""
        self._active = await readable_by_id(self._store.scan(TRIGGERS_KIND), _decode)

    def of(self, flow: str) -> FlowTriggers | None:
        active = self._active.get(flow)
        return active.triggers if active is not None else None

    async def read(self, flow: str) -> ActiveTriggers | None:
        """The triggers of a flow as the store has them now."""
        found = await self._store.get(TRIGGERS_KIND, flow)
        return _decode(found.body) if found is not None else None

    def schedules(self) -> dict[str, ScheduleTrigger]:
        """The schedules of flows that have one, by the flow's name."""
        active = self._active.values()
        return {each.flow: each.triggers.schedule for each in active if each.triggers.schedule is not None}

    def watches(self) -> list[FlowWatch]:
        return [watch for active in self._active.values() if (watch := _watch_of(active)) is not None]

    def watch_of(self, flow: str) -> FlowWatch | None:
        active = self._active.get(flow)
        return _watch_of(active) if active is not None else None

    def receivers(self, flow: str, end: EndKind) -> list[str]:
        """Who is told that a case of the flow has ended so: URLs, or names of webhooks."""
        triggers = self.of(flow)
        notices = triggers.notices if triggers is not None else ()
        return list(dict.fromkeys(each for notice in notices if end in notice.on for each in notice.notify))

    def flow_with(self, name: str) -> str:
        """The flow whose watch and data set have this name, if there is one."""
        active = (each.flow for each in self._active.values() if each.triggers.files is not None)
        return next((flow for flow in active if trigger_name(flow) == name), "")

    def flow_telling(self, webhook: str) -> str:
        """A flow whose ends are told to this webhook, if there is one."""
        told = ((each.flow, notice.notify) for each in self._active.values() for notice in each.triggers.notices)
        return next((flow for flow, receivers in told if webhook in receivers), "")

    async def put(self, flow: Flow, *, who: str) -> None:
        """From now on the flow has the triggers that it says, or none."""
        files = flow.triggers.files if flow.triggers is not None else None
        wanted = (
            ActiveTriggers(
                flow=flow.name,
                triggers=flow.triggers,
                takes_list=files is not None and flow.inputs[files.input].type == FILES,
                by=who,
                at=self._clock.now(),
            )
            if flow.triggers is not None
            else None
        )
        await self._write(flow.name, wanted)

    async def remove(self, flow: str) -> None:
        await self._write(flow, None)

    async def _write(self, flow: str, wanted: ActiveTriggers | None) -> None:
        for _ in range(TRIES):
            found = await self._store.get(TRIGGERS_KIND, flow)
            if found is None and wanted is None:
                self._active.pop(flow, None)
                return
            version = found.version if found is not None else 0
            if await self._ledger.put_now(TRIGGERS_KIND, flow, wanted, version) is not None:
                self._active = {name: each for name, each in self._active.items() if name != flow}
                if wanted is not None:
                    self._active[flow] = wanted
                return
        raise Conflict(f"the triggers of flow {flow} are changed by several at once, again and again; deploy it again")


def _watch_of(active: ActiveTriggers) -> FlowWatch | None:
    files = active.triggers.files
    return flow_watch(active.flow, files, takes_list=active.takes_list, owner=active.by) if files is not None else None
