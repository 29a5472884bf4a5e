"""The ports of a server, put together: each does what it is asked as a case of its own, and tells who wants to hear."""

import random
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Protocol

from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId
from mendflow.core.model.problems import Invalid
from mendflow.services.base.contracts import Clock
from mendflow.services.base.counters import Counts
from mendflow.services.base.hub import Hub
from mendflow.services.base.notices import Notices
from mendflow.services.base.poster import Poster
from mendflow.services.cases.facts import CaseEnded
from mendflow.services.cases.live_case import CaseDocument, LiveCase
from mendflow.services.cases.partners import MessageBoard, PartnerCalls, StyleSheetRuns
from mendflow.services.cases.starting import Beginning, Begins
from mendflow.services.messaging.callbacks import Callbacks
from mendflow.services.messaging.calls import Finished, Partners
from mendflow.services.messaging.contracts import Caller, Port
from mendflow.services.messaging.message_router import Mailroom
from mendflow.services.messaging.ports.cases import PortCases
from mendflow.services.messaging.ports.jobs import JobReader, JobsPort
from mendflow.services.messaging.ports.proxy import ProxyPort
from mendflow.services.messaging.style_sheets import Transformer
from mendflow.services.messaging.transforms import Transforms
from mendflow.stores.contract import Store


class Around(Begins, Protocol):
    """The services that ports make use of."""

    notices: Notices
    counts: Counts
    hub: Hub


class Ground(Protocol):
    """What they stand on. `read_job` makes the flow of a job description."""

    store: Store
    clock: Clock
    poster: Poster
    chance: Callable[[int], str]
    read_job: JobReader
    caller: Caller
    transformer: Transformer
    url: str


class Ports:
    """`table` are the ports by their names, `mailroom` is where messages for flows come in, `partners` calls those
    whom flows call, and `transforms` runs their style sheets."""

    def __init__(self, services: Around, ground: Ground, finished: Finished) -> None:
        self.mailroom = Mailroom(
            store=ground.store,
            ledger=services.ledger,
            clock=ground.clock,
            manager=services.manager,
            flows=services.flows,
            homes=services.homes,
        )
        beginning = Beginning(services, ground.store, ground.clock, ground.chance)
        self._cases = PortCases(services.manager, services.flows, beginning, services.ledger, ground.clock)
        self.callbacks = Callbacks(
            store=ground.store,
            ledger=services.ledger,
            clock=ground.clock,
            homes=services.homes,
            notices=services.notices,
            poster=ground.poster,
            find=self._cases.find,
            mail=self.mailroom,
            chance=random.random,
        )
        self.table: dict[str, Port] = {
            "jobs": JobsPort(self._cases, self.callbacks, ground.read_job),
            "proxy": ProxyPort(self._cases),
        }

        self.partners = Partners(
            caller=ground.caller,
            ports=self.table,
            ledger=services.ledger,
            finished=finished,
            url=lambda: ground.url,
            mail=self.mailroom,
            counts=services.counts.partner_calls,
        )
        self.transforms = Transforms(ground.transformer, services.ledger, finished)
        hub = services.hub
        hub.provide(PartnerCalls, self.partners)
        hub.provide(StyleSheetRuns, self.transforms)
        hub.provide(MessageBoard, self.mailroom)
        hub.subscribe(CaseEnded, lambda end: self._case_ended(end.document))

    async def load(self, roots: Collection[CaseId]) -> None:
        """Before the cases of these trees are taken up."""
        await self.callbacks.load(roots)
        await self.mailroom.load(roots)

    async def resume(self, roots: Collection[CaseId], cases: Iterable[LiveCase]) -> None:
        """After the cases of these trees were taken up."""
        await self.mailroom.resume(roots, cases)
        await self.callbacks.resume(roots)

    async def stop(self) -> None:
        await self.partners.running.stop()
        await self.transforms.running.stop()
        await self.mailroom.stop()
        await self.callbacks.stop()
        await self._cases.stop()

    def _case_ended(self, document: CaseDocument) -> None:
        self.mailroom.case_ended(document)
        for each in (self.partners, self.transforms):
            each.running.case_ended(document.id)
        self.callbacks.ended(document)
        self._cases.ended(document)


def reads_no_jobs(_description: str, _folder: Path | None, /) -> Flow:
    raise Invalid("this server reads no job descriptions")
