"""Puts together the ports of a server: each runs what it is asked for as a case of its own, and sends callbacks."""

import random
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Protocol

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId
from mendflow.services.base.contracts import Clock
from mendflow.services.base.counters import ServerMetrics
from mendflow.services.base.hub import Hub
from mendflow.services.base.long_reads import LongReads
from mendflow.services.base.notices import Notices
from mendflow.services.base.poster import Poster
from mendflow.services.cases.called_cases import CalledCases
from mendflow.services.cases.case_starter import CaseStartContext, CaseStarter
from mendflow.services.cases.facts import CaseEnded
from mendflow.services.cases.live_case import CaseDocument, LiveCase
from mendflow.services.cases.partners import MessageBoard, PartnerCalls, StyleSheetRuns
from mendflow.services.messaging.callbacks import Callbacks
from mendflow.services.messaging.calls import Finished, PartnerCaller
from mendflow.services.messaging.contracts import PartnerClient, ServerPort
from mendflow.services.messaging.message_router import MessageRouter
from mendflow.services.messaging.ports.cases import PortCases
from mendflow.services.messaging.ports.jobs import JobReader, JobsPort
from mendflow.services.messaging.ports.proxy import ProxyPort
from mendflow.services.messaging.style_sheets import Transformer
from mendflow.services.messaging.transforms import TransformRunner
from mendflow.stores.contract import Store


class PortServices(CaseStartContext, Protocol):
    """The services that ports use."""

    calls: CalledCases
    notices: Notices
    counts: ServerMetrics
    hub: Hub


class PortEnvironment(Protocol):
    """The server's parts that ports are built from. `read_job` makes the flow of a job description."""

    store: Store
    clock: Clock
    poster: Poster
    chance: Callable[[int], str]
    read_job: JobReader
    long_reads: LongReads
    caller: PartnerClient
    transformer: Transformer
    url: str


class MessagingServices:
    """`by_name` are the ports by their names, `message_router` takes the messages for flows, `partners` calls the
    partners of flows, and `transforms` runs their style sheets."""

    def __init__(self, runtime: PortServices, ground: PortEnvironment, finished: Finished) -> None:
        self.message_router = MessageRouter(
            store=ground.store,
            ledger=runtime.ledger,
            clock=ground.clock,
            manager=runtime.manager,
            flows=runtime.flows,
            homes=runtime.homes,
        )
        beginning = CaseStarter(runtime, ground.store, ground.clock, ground.chance)
        self._cases = PortCases(runtime.manager, runtime.flows, beginning, runtime.calls, runtime.ledger, ground.clock)
        self.callbacks = Callbacks(
            store=ground.store,
            ledger=runtime.ledger,
            clock=ground.clock,
            homes=runtime.homes,
            notices=runtime.notices,
            poster=ground.poster,
            find=self._cases.find,
            router=self.message_router,
            project_of=runtime.flows.project_of,
            chance=random.random,
        )
        self.by_name: dict[str, ServerPort] = {
            "jobs": JobsPort(self._cases, self.callbacks, ground.read_job, ground.long_reads),
            "proxy": ProxyPort(self._cases, ground.chance),
        }

        self.partners = PartnerCaller(
            caller=ground.caller,
            ports=self.by_name,
            ledger=runtime.ledger,
            finished=finished,
            url=lambda: ground.url,
            router=self.message_router,
            counts=runtime.counts.partner_calls,
            hub=runtime.hub,
        )
        self.transforms = TransformRunner(ground.transformer, runtime.ledger, finished)
        hub = runtime.hub
        hub.provide(PartnerCalls, self.partners)
        hub.provide(StyleSheetRuns, self.transforms)
        hub.provide(MessageBoard, self.message_router)
        hub.subscribe(CaseEnded, lambda end: self._case_ended(end.document))

    async def load(self, roots: Collection[CaseId]) -> None:
        """Before the cases of these trees are loaded."""
        await self.callbacks.load(roots)
        await self.message_router.load(roots)

    async def resume(self, roots: Collection[CaseId], cases: Iterable[LiveCase]) -> None:
        """After the cases of these trees were loaded."""
        await self.message_router.resume(roots, cases)
        await self.callbacks.resume(roots)

    async def stop(self) -> None:
        await self.partners.running.stop()
        await self.transforms.running.stop()
        await self.message_router.stop()
        await self.callbacks.stop()
        await self._cases.stop()

    def _case_ended(self, document: CaseDocument) -> None:
        self.message_router.case_ended(document)
        for each in (self.partners, self.transforms):
            each.running.case_ended(document.id)
        self.callbacks.ended(document)
        self._cases.ended(document)


def refuse_jobs(_description: str, _folder: Path | None, _elements_max: int | None, /) -> Flow:
    raise InvalidRequest("this server reads no job descriptions")
