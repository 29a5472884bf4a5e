"""Alerts, notifications, and the webhooks that these are sent to."""

from typing import Annotated

from msgspec import Meta

from mendflow.core.model.alerts import AlertView, DeliveryResult, Notification, Severity, WebhookSpec, WebhookView
from mendflow.core.model.parameters import NUMBER_MAX, Limit
from mendflow.operations.arguments import Body
from mendflow.operations.names import ClosedToo
from mendflow.operations.operation import Calls, operation
from mendflow.operations.roles import ADMINISTRATORS, VIEWERS
from mendflow.operations.subjects import INSTALLATION, LISTED

LeastSeverity = Annotated[Severity, Meta(description="This severity or a higher one.")]
AfterSerial = Annotated[
    Annotated[int, Meta(ge=0, le=NUMBER_MAX)] | None,
    Meta(description="Those after this serial, the oldest first; else the newest."),
]


class AlertCalls(Calls, tag="alerts"):
    @operation("GET", "/alerts", VIEWERS, LISTED)
    async def alerts(
        self, *, severity: LeastSeverity = "warning", every: ClosedToo = False, limit: Limit = 100
    ) -> list[AlertView]:
        """Alerts, the newest first."""

    @operation("POST", "/acknowledged/{alert:path}", ADMINISTRATORS, INSTALLATION, repeatable=True)
    async def acknowledge(self, alert: str) -> AlertView:
        """Say that somebody has seen an alert. An alert's id has slashes; percent-encode them."""


class NotificationCalls(Calls, tag="notifications"):
    @operation("GET", "/notifications", VIEWERS, LISTED)
    async def notifications(self, *, after: AfterSerial = None, limit: Limit = 100) -> list[Notification]:
        """The notifications that were sent. Those of all servers on the store, in one order. A client that continues
        after the last serial that it has read misses none."""

    @operation("GET", "/webhooks", ADMINISTRATORS, INSTALLATION)
    async def webhooks(self) -> list[WebhookView]:
        """Where notifications are sent. Secrets are not shown. For administrators, because an address may be a secret,
        too."""

    @operation("POST", "/webhooks", ADMINISTRATORS, INSTALLATION, status=201)
    async def add_webhook(self, wish: Body[WebhookSpec]) -> WebhookView:
        """Send notifications to an address."""

    @operation("DELETE", "/webhooks/{webhook}", ADMINISTRATORS, INSTALLATION)
    async def remove_webhook(self, webhook: str) -> WebhookView:
        """Send no more to an address."""

    @operation("POST", "/webhooks/{webhook}/test", ADMINISTRATORS, INSTALLATION)
    async def try_webhook(self, webhook: str) -> DeliveryResult:
        """Send something to a webhook now, to see whether it arrives."""
