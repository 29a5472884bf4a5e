"""Runs the transformations that assigns of flows order: started when the order is on disk, and reported to the case.

A result is an event in the case's journal. So a style sheet runs again only if the server stopped before its result was
recorded, and the case continues with the recorded result."""

from collections.abc import Awaitable, Callable

from mendflow.core.engine.messages import RunStyleSheet
from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.faults import Fault
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Outcome
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.live_case import LiveCase
from mendflow.services.messaging.running_calls import CaseTasks
from mendflow.services.messaging.style_sheets import Transformer

Finished = Callable[[CaseId, int, Outcome], Awaitable[None]]


class TransformRunner:
    def __init__(self, transformer: Transformer, ledger: Ledger, finished: Finished) -> None:
        self._transformer, self._ledger, self._finished = transformer, ledger, finished
        self.running = CaseTasks()

    def begin(self, live: LiveCase, order: RunStyleSheet) -> None:
        """Begin a transformation; its end is reported later."""
        self.running.begin(live.id, self._run_transform(live, order))

    async def _run_transform(self, live: LiveCase, order: RunStyleSheet) -> None:
        world = live.flow.xml
        assert world is not None, "only flows that speak XML have style sheets"
        try:
            await self._ledger.settled()
        except StoreUnavailable:
            return  # the order is repeated after the services were rebuilt
        made = await self._transformer.transform(world.sheets, order.sheet, order.source, order.params)
        outcome = Outcome(fault=made) if isinstance(made, Fault) else Outcome(outputs={"result": made})
        await self._finished(live.id, order.serial, outcome)
