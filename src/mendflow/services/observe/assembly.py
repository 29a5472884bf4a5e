"""Puts together the monitor and the notifier. They learn through the hub of lost pilots and of cases and jobs that end.

An alert that the monitor raises becomes a notice and a notification, and a notification that cannot be delivered
becomes an alert."""

import random
import secrets
from collections.abc import Collection

from mendflow.core.model.ids import CaseId
from mendflow.services.base.alerts import AlertChanged, AlertDocument, AlertRaised
from mendflow.services.base.contracts import Clock
from mendflow.services.base.homes import HomeRegistry
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.membership import OwnMembership
from mendflow.services.base.notices import ALERT_RAISED, Notices
from mendflow.services.base.poster import Poster
from mendflow.services.base.watched_files import WatchedFileStore
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.observe.monitor import LevelCounts, Monitor
from mendflow.services.observe.monitor_settings import MonitorSettings
from mendflow.services.observe.notifications.notifier import Notifier
from mendflow.services.observe.notifications.webhooks import WebhookStore
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.stores.contract import Store


class ObservabilityServices:
    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        rules: MonitorSettings,
        poster: Poster,
        membership: OwnMembership,
        homes: HomeRegistry,
        notices: Notices,
        manager: FlowManager,
        meta: PilotScheduler,
        levels: LevelCounts,
        hub: Hub,
        files: WatchedFileStore,
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
            hub=hub,
            files=files,
        )
        self.notifier = Notifier(
            store=store,
            ledger=ledger,
            clock=clock,
            homes=homes,
            poster=poster,
            webhooks=WebhookStore(store, ledger, clock, secrets.token_hex),
            chance=random.random,
            hub=hub,
        )
        hub.subscribe(AlertRaised, lambda raised: self._post(raised.alert))
        hub.subscribe(AlertChanged, lambda changed: self._tell_changed(changed.alert))

    def _post(self, alert: AlertDocument) -> None:
        self._notices.post(
            f"alert: {alert.sentence}",
            case=alert.case,
            item=alert.item,
            state=ALERT_RAISED,
            is_told=not alert.is_of_some_project,
        )

    def _tell_changed(self, alert: AlertDocument) -> None:
        self._notices.tell_changed(alert.id, is_open=alert.open, case=alert.case, item=alert.item)

    async def read_shared(self) -> None:
        await self.notifier.webhooks.start()

    async def load(self, roots: Collection[CaseId]) -> None:
        """Before the cases of these trees are loaded."""
        await self.notifier.load(roots)

    def start(self) -> None:
        self.notifier.start()
        self.monitor.start()

    async def stop(self) -> None:
        await self.monitor.stop()
        await self.notifier.stop()
