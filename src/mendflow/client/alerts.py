"""The client's calls about alerts, notifications and webhooks."""

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import quote

import msgspec

from mendflow.client.transport import Transport
from mendflow.core.model.alerts import AlertView, DeliveryResult, Notification, Severity, WebhookSpec, WebhookView

FOLLOW_EVERY_S = 1.0


class AlertCalls:
    _transport: Transport

    async def alerts(self, *, severity: Severity = "warning", every: bool = False, limit: int = 100) -> list[AlertView]:
        """The newest first, of this severity or a higher one; `every`: those that are over too."""
        query: dict[str, str | int] = {"severity": severity, "all": "true" if every else "false", "limit": limit}
        return await self._transport.ask("GET", "/alerts", list[AlertView], query=query)

    async def acknowledge(self, alert: str) -> AlertView:
        return await self._transport.ask("POST", f"/acknowledged/{quote(alert, safe='')}", AlertView, repeatable=True)

    async def notifications(self, *, after: int | None = None, limit: int = 100) -> list[Notification]:
        query: dict[str, str | int] = {"limit": limit} if after is None else {"limit": limit, "after": after}
        return await self._transport.ask("GET", "/notifications", list[Notification], query=query)

    async def follow_notifications(self, after: int) -> AsyncIterator[Notification]:
        """Those after a serial, and then as they come."""
        while True:
            found = await self.notifications(after=after)
            for told in found:
                after = told.serial
                yield told
            if not found:
                await asyncio.sleep(FOLLOW_EVERY_S)

    async def webhooks(self) -> list[WebhookView]:
        return await self._transport.ask("GET", "/webhooks", list[WebhookView])

    async def add_webhook(self, wish: WebhookSpec) -> WebhookView:
        return await self._transport.ask("POST", "/webhooks", WebhookView, body=msgspec.to_builtins(wish))

    async def remove_webhook(self, webhook: str) -> WebhookView:
        return await self._transport.ask("DELETE", f"/webhooks/{quote(webhook, safe='')}", WebhookView)

    async def try_webhook(self, webhook: str) -> DeliveryResult:
        return await self._transport.ask("POST", f"/webhooks/{quote(webhook, safe='')}/test", DeliveryResult)
