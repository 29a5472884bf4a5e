"""Cases that the ports of a server start, and the requests that wait for their ends.

Each request to a port becomes a case of its own: so it is durable, visible and mended like any other. A request over
the network gets a case with a name made from its key. A request of a case is named after its order: repeated after a
crash the order finds the case that it had started, and the two cases are shown together."""

import asyncio
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from mendflow.core.engine import StaleAnswer
from mendflow.core.engine.messages import Cancel
from mendflow.core.model.errors import Conflict, NotFound, StoreUnavailable
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId
from mendflow.core.model.values import Value
from mendflow.services.base.contracts import Clock
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.request_turns import end_turn
from mendflow.services.cases.called_cases import CalledCases
from mendflow.services.cases.case_starter import CaseStarter
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.flows import Flows
from mendflow.services.cases.live_case import CaseDocument, LiveCase
from mendflow.services.messaging.contracts import OWN_ONLY, CaseAccess

LOOK_EVERY_MS: Final = 1_000
"""How often to look for the end of a case that lives on another server."""


class Requester(NamedTuple):
    """Who sends a request to a port: `who` over the network, or an order of a case, identified by its serial and its
    partner link. A key belongs to the requester: the same key is the same request. `reach` is what it may do with cases
    of others; a case may do nothing with them, whoever wrote its flow."""

    who: str = ""
    key: str = ""
    live: LiveCase | None = None
    serial: int = 0
    link: str = ""
    port: str = ""
    reach: CaseAccess = OWN_ONLY

    @property
    def owner(self) -> str:
        return self.live.document.owner if self.live is not None else self.who

    @property
    def folder(self) -> Path | None:
        """The folder for relative paths."""
        return Path(self.live.flow.folder) if self.live is not None and self.live.flow.folder else None

    def with_key(self, port: str, key: str) -> "Requester":
        """The same with the key by which the case is found again. Keys of different ports and requesters do not
        collide."""
        key = key or self.key
        return self._replace(port=port, key=f"{port} {quote(self.who, safe='')} {key}" if key else "")

    def may_tell(self, project: str) -> bool:
        """Whether this requester may send messages to the flows of a project."""
        return project == self.live.document.project if self.live is not None else self.reach.can_end.sees(project)

    def owns(self, document: CaseDocument, port: str) -> bool:
        """Whether this requester has started the case at this port. Somebody may have tokens for several projects: what
        was started by one is not for those of other projects."""
        if document.port != port or document.owner != self.owner:
            return False
        own = self.live.document.project if self.live is not None else self.reach.project
        return document.project == own or self.reach.can_view.sees(document.project)


class PortCases:
    def __init__(
        self,
        manager: FlowManager,
        flows: Flows,
        beginning: CaseStarter,
        calls: CalledCases,
        ledger: Ledger,
        clock: Clock,
    ) -> None:
        self._manager = manager
        self._calls = calls
        self._flows = flows
        self._beginning = beginning
        self._ledger = ledger
        self._clock = clock
        self._waiting: dict[CaseId, asyncio.Future[CaseDocument]] = {}

    async def stop(self) -> None:
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(StoreUnavailable("the store is away; ask again"))
                future.exception()  # nobody may be waiting for it
        self._waiting.clear()

    # Beginning

    async def begin(self, flow: Flow, inputs: dict[str, Value], by: Requester) -> CaseDocument:
        """The case for this request; if it was requested before, the one that was started then. It is on disk then."""
        flow, inputs = await self._flows.sealed(flow), await self._flows.sealed_inputs(inputs)
        digest = self._flows.digest(flow)
        wanted = CaseDocument(
            id=CaseId(""),
            flow=flow.name,
            digest=digest,
            inputs=inputs,
            owner=by.owner,
            project=by.reach.project,
            key=by.key,
            port=by.port,
        )
        if by.live is None:
            earlier = await self._beginning.keyed(by.key, wanted.project) if by.key else None
            if earlier is not None:
                return _same(earlier, wanted)
            return _same(await self._beginning.begin(wanted, flow), wanted)
        if by.key and (earlier := await self._find_by_key(by.live.id, by.key)) is not None:
            return _same(earlier, wanted)
        wanted.id, wanted.parent = CaseId(f"{by.live.id}.{by.serial}"), by.live.id
        wanted.project = by.live.document.project
        if (earlier := await self._manager.document(wanted.id)) is not None:
            return earlier
        with self._calls.place(wanted.id, f"a request to the port {by.port}"):
            begun = await self._manager.begin(wanted, flow, [])
        await self._ledger.settled()
        return begun.document

    async def _find_by_key(self, caller: CaseId, key: str) -> CaseDocument | None:
        found = [each for each in await self._manager.reader.cases_begun_by(caller) if each.key == key]
        return found[0] if found else None

    # Looking, and waiting

    async def find(self, id: str) -> CaseDocument | None:
        """A case, if it has certainly begun."""
        case = CaseId(id)
        if case in self._manager.live:
            return self._manager.live[case].document
        return await self._manager.document(case)

    async def wait_for_end(self, document: CaseDocument) -> CaseDocument:
        """The case when it is over, and its end is on disk."""
        if document.live:
            await end_turn()
        while document.live:
            if document.id in self._manager.live:
                document = await self._wait_for_case(document.id)
            else:
                await self._clock.sleep(LOOK_EVERY_MS)
                found = await self.find(document.id)
                if found is None:
                    raise NotFound(f"case {document.id} is not there any more")
                document = found
        await self._ledger.settled()
        return document

    async def wait_briefly(self, document: CaseDocument, ms: int) -> CaseDocument:
        """The case when it is over, or as it is after this time."""
        ending = asyncio.ensure_future(self.wait_for_end(document))
        sleeping = asyncio.ensure_future(self._clock.sleep(ms))
        try:
            await asyncio.wait({ending, sleeping}, return_when=asyncio.FIRST_COMPLETED)
            return ending.result() if ending.done() else document
        finally:
            ending.cancel()
            sleeping.cancel()

    async def _wait_for_case(self, id: CaseId) -> CaseDocument:
        future = self._waiting.get(id)
        if future is None:
            future = self._waiting[id] = asyncio.get_running_loop().create_future()
        return await asyncio.shield(future)

    def ended(self, document: CaseDocument) -> None:
        """To be called in the same step as the end."""
        future = self._waiting.pop(document.id, None)
        if future is not None and not future.done():
            future.set_result(document)

    async def flow_of(self, document: CaseDocument) -> Flow:
        return await self._manager.flow_of(document.id)

    def age_ms(self, document: CaseDocument) -> int:
        return max(self._clock.now() - document.started_at, 0)

    async def cancel(self, id: CaseId, reason: str) -> None:
        """Cancel it; a case that is over stays as it is."""
        try:
            await self._manager.command(id, Cancel(reason=reason))
        except (NotFound, StaleAnswer):
            pass
        await self._ledger.settled()


def _same(found: CaseDocument, wanted: CaseDocument) -> CaseDocument:
    if (found.digest, found.inputs) != (wanted.digest, wanted.inputs):
        raise Conflict(f"this key was used for {found.id}, which is something else; take another")
    return found
