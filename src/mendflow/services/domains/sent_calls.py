"""Calls of flows that run in another domain: each is a piece of work there, and its end is the end of the call."""

from collections.abc import Callable, Coroutine
from typing import Any, Final

import msgspec

from mendflow.core.domains.domain_names import not_connected
from mendflow.core.engine import item_of
from mendflow.core.engine.elements import element_of
from mendflow.core.engine.messages import StartCalledCase
from mendflow.core.model.domains import NO_FLOW, SentWork, WorkStatus
from mendflow.core.model.errors import NotFound
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId, item_name
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.values import FileRef, Value
from mendflow.services.base.background_tasks import BackgroundTasks
from mendflow.services.base.contracts import Clock
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.facts import SuspensionChanged
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.interception_points import is_suspended
from mendflow.services.cases.live_case import ITEM_KIND, ItemDocument, LiveCase
from mendflow.services.domains.case_files import CaseFiles
from mendflow.services.domains.file_origins import FileOrigins
from mendflow.services.domains.flow_bundling import FlowCloser
from mendflow.services.domains.sent_work import SentWorks
from mendflow.services.domains.work_documents import SentDocument
from mendflow.services.domains.work_files import files_in_flow, once

Finished = Callable[[CaseId, int, Outcome], Coroutine[Any, Any, None]]
_encode: Final = msgspec.json.Encoder().encode


class SentCalls:
    def __init__(
        self,
        *,
        ledger: Ledger,
        clock: Clock,
        manager: FlowManager,
        sent: SentWorks,
        closer: FlowCloser,
        way: Callable[[CaseId], tuple[str, ...]],
        finished: Finished,
        hub: Hub,
    ) -> None:
        self._hub = hub
        self._ledger = ledger
        self._clock = clock
        self._manager = manager
        self._sent = sent
        self._closer = closer
        self._way = way
        self._finished = finished
        self._background = BackgroundTasks(ledger)
        self._progress: dict[str, str] = {}
        sent.own("call", self)
        hub.subscribe(SuspensionChanged, lambda fact: self._suspension_changed(fact.live))

    async def stop(self) -> None:
        await self._background.stop()

    async def take_up(self, key: str) -> bool:
        """Whether the call was sent before; if it is over, the case is told again."""
        before = await self._sent.take_up(key)
        if before is None:
            return False
        if before.outcome is not None:
            self._background.start(self._tell_again(before, before.outcome))
        return True

    async def _tell_again(self, document: SentDocument, outcome: Outcome) -> None:
        await self._finished(document.case, document.serial, outcome)
        await self._sent.forget(document)

    async def send(self, live: LiveCase, order: StartCalledCase, domain: str, flow: Flow | None) -> None:
        """Send the flow of a call, or, if there is none here, the name of one of that domain."""
        if not self._sent.is_reachable(domain):
            raise NotFound(not_connected(domain))
        project = live.document.project
        closed = await self._closer.closed(flow, project) if flow is not None else None
        inputs = await self._closer.closed_inputs(flow, order.inputs, project)
        if (hosted := self._hub.provider(CaseFiles)) is not None:
            await hosted.demand_value(live.id, [closed, inputs])
        if (origins := self._hub.provider(FileOrigins)) is not None:
            await origins.demand_value(live.id, order.inputs)
        files = [*(files_in_flow(closed) if closed is not None else []), *_files_in(inputs)]
        key = f"{live.id}.{order.serial}"
        work = SentWork(
            key=key,
            fence=1,
            name=closed.name if closed is not None else order.name,
            flow=msgspec.Raw(_encode(closed)) if closed is not None else NO_FLOW,
            inputs=inputs,
            files=tuple(once(files)),
            owner=live.document.owner,
            way=self._way(live.id),
        )
        if live.id not in self._manager.live or order.serial not in live.case.index.serials:
            return  # the case has gone on without it
        self._sent.send(SentDocument(key=key, domain=domain, case=live.id, serial=order.serial, kind="call", work=work))

    def withdraw(self, live: LiveCase, serial: int, reason: str) -> bool:
        """Whether the call is in another domain; it is stopped there."""
        key = f"{live.id}.{serial}"
        if self._sent.open_work(key) is None:
            return False
        self._progress.pop(key, None)
        self._sent.withdraw(key, reason)
        return True

    def _suspension_changed(self, live: LiveCase) -> None:
        """Whoever suspends a call, or the case that it is in, suspends it there; so with resuming."""
        for serial in live.case.index.serials:
            key = f"{live.id}.{serial}"
            if self._sent.open_work(key) is None:
                continue
            item = item_of(live.case, serial)
            held = is_suspended(live, item.item if item is not None else None)
            self._sent.control(key, "suspend" if held else "run")

    def progress_of(self, case: CaseId, serial: int) -> str:
        """What the other domain last said of a call; empty if it is in none, or nothing was said yet."""
        return self._progress.get(f"{case}.{serial}", "")

    # The owner of sent work

    def work_moved(self, document: SentDocument, status: WorkStatus) -> None:
        self._progress[document.key] = status.progress or status.state

    async def work_ended(self, document: SentDocument) -> None:
        outcome, live = document.outcome, self._manager.live.get(document.case)
        self._progress.pop(document.key, None)
        if outcome is None or live is None:
            return
        self._note(live, document, outcome)
        await self._finished(document.case, document.serial, outcome)

    async def may_ask(self, document: SentDocument) -> bool:
        """As long as the call is open in a case that is not over, it may be begun again."""
        live = self._manager.live.get(document.case)
        if live is not None:
            return document.serial in live.case.index.serials
        case = await self._manager.document(document.case)
        return case is not None and case.live

    def _note(self, live: LiveCase, document: SentDocument, outcome: Outcome) -> None:
        """Nothing else records a call whose case is in another domain."""
        instance = item_of(live.case, document.serial)
        if instance is None:
            return
        item = instance.item
        where = f"case {document.there} in the domain {document.domain}"
        noted = ItemDocument(
            case=live.id,
            item=item,
            name=item_name(item),
            kind="call",
            serial=document.serial,
            state="completed" if outcome.ok else "failed",
            place=live.place,
            created_at=document.sent_at,
            ended_at=self._clock.now(),
            fault=outcome.fault,
            outputs=outcome.outputs,
            reason=where if document.there else f"in the domain {document.domain}",
            element=element_of(live.case, document.serial),
        )
        id = f"{live.id}/{item}"
        live.noted.add(id)
        self._ledger.touch(ITEM_KIND, id, noted, from_outside=True)


def _files_in(inputs: dict[str, Value]) -> list[FileRef]:
    return files_in_flow(inputs)
