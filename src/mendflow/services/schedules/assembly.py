"""Puts together the services of schedules."""

from collections.abc import Awaitable, Callable

from mendflow.core.model.ids import Instant
from mendflow.services.base.alerts import AlertStore
from mendflow.services.base.contracts import Clock
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.membership import OwnMembership
from mendflow.services.base.notices import Notices
from mendflow.services.cases.case_starter import CaseStarter
from mendflow.services.cases.facts import CaseEnded
from mendflow.services.data.flow_triggers import FlowTriggerStore
from mendflow.services.schedules.flow_schedules import FlowSchedules
from mendflow.services.schedules.service import Schedules
from mendflow.services.schedules.starter import CancelHere, DueStarter
from mendflow.services.schedules.store import ScheduleStore
from mendflow.stores.contract import Store


class ScheduleServices:
    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        wall: Callable[[], Instant],
        membership: OwnMembership,
        triggers: FlowTriggerStore,
        cases: CaseStarter,
        cancel_here: CancelHere,
        alerts: AlertStore,
        notices: Notices,
        hub: Hub,
        is_served: Callable[[], Awaitable[bool]],
    ) -> None:
        """`is_served`: whether a server starts cases at due times now, this one or another on the store."""
        schedules = ScheduleStore(store, ledger)
        self.of_flows = FlowSchedules(schedules, triggers, wall)
        self.starter = DueStarter(
            store=store,
            ledger=ledger,
            clock=clock,
            wall=wall,
            membership=membership,
            schedules=schedules,
            flow_schedules=self.of_flows,
            starter=cases,
            cancel_here=cancel_here,
            alerts=alerts,
            notices=notices,
        )
        self.service = Schedules(
            store=store, schedules=schedules, starter=self.starter, cases=cases, wall=wall, is_served=is_served
        )
        hub.subscribe(CaseEnded, lambda end: self.starter.case_ended(end.document))

    def start(self) -> None:
        """From now on cases are started here; before, schedules are only shown and changed."""
        self.starter.start()

    async def stop(self) -> None:
        await self.starter.stop()
