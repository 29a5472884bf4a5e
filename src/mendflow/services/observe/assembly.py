"""The wing of the house from where it is watched, and from where clients are told: the monitor and the notifier, put
together.

It hangs on the rest in few places. The exchange tells it of pilots that are gone, the flow manager and the desk of
ends. An alert that the monitor raises becomes a notice and a notification, and a notification that cannot be brought to
its address becomes an alert."""

import random
import secrets
from collections.abc import Collection

from mendflow.core.model.ids import CaseId
from mendflow.services.base.alerts import AlertDocument
from mendflow.services.base.contracts import Clock
from mendflow.services.base.homes import HomeBook
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.notices import Notices
from mendflow.services.base.poster import Poster
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.order_dispatcher import OrderDesk
from mendflow.services.cluster.membership import OwnMembership
from mendflow.services.observe.monitor import LevelCounts, Monitor
from mendflow.services.observe.monitor_settings import MonitorRules
from mendflow.services.observe.notifications.notifier import Notifier
from mendflow.services.observe.notifications.webhooks import WebhookBook
from mendflow.services.scheduling.exchange import Exchange
from mendflow.services.scheduling.pilot_scheduler import QueueAndPilots
from mendflow.stores.contract import Store


class WatchWing:
    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        rules: MonitorRules,
        poster: Poster,
        membership: OwnMembership,
        homes: HomeBook,
        notices: Notices,
        manager: FlowManager,
        meta: QueueAndPilots,
        levels: LevelCounts,
    ) -> None:
        self._notices = notices
        self.monitor = Monitor(
            store=store,
            ledger=ledger,
            clock=clock,
            rules=rules,
            membership=membership,
            manager=manager,
            meta=meta,
            levels=levels,
        )
        self.notifier = Notifier(
            store=store,
            ledger=ledger,
            clock=clock,
            homes=homes,
            poster=poster,
            hooks=WebhookBook(store, ledger, clock, secrets.token_hex),
            chance=random.random,
        )
        self.monitor.tell = self._tell
        self.notifier.not_delivered = self.monitor.not_delivered

    def connect(self, manager: FlowManager, desk: OrderDesk, exchange: Exchange) -> None:
        """Let the rest of the house tell it what it wants to know."""
        manager.ended = self.notifier.case_ended
        desk.failed = self.notifier.item_failed
        exchange.gone = self.monitor.pilot_gone

    def _tell(self, alert: AlertDocument) -> None:
        self._notices.post(f"alert: {alert.sentence}", case=alert.case, item=alert.item)
        but = alert.subject if alert.kind == "not-delivered" else ""
        self.notifier.alert(alert.id, alert.sentence, at=alert.raised_at, case=alert.case, item=alert.item, but=but)

    async def read_shared(self) -> None:
        await self.notifier.hooks.start()

    async def load(self, roots: Collection[CaseId]) -> None:
        """Before the cases of these trees are taken up."""
        await self.notifier.load(roots)

    def start(self) -> None:
        self.notifier.start()
        self.monitor.start()

    async def stop(self) -> None:
        await self.monitor.stop()
        await self.notifier.stop()
