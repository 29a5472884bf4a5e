"""Delivers a notification to a webhook: signed if the webhook has a secret, and retried until it is accepted."""

from collections.abc import Awaitable, Callable

import msgspec

from mendflow.core.model.alerts import Notification
from mendflow.services.base.contracts import Clock
from mendflow.services.base.delivery import PATIENCE_MS, RetryingSender
from mendflow.services.base.poster import Poster
from mendflow.services.observe.notifications.signing import EVENT_HEADER, KIND_HEADER, SIGNATURE_HEADER, signature

_encode = msgspec.json.Encoder().encode


class WebhookSender:
    def __init__(self, *, clock: Clock, poster: Poster, chance: Callable[[], float]) -> None:
        self._clock = clock
        self._poster = poster
        self._sender = RetryingSender(clock, chance)
        self.patience_ms = PATIENCE_MS

    async def try_once(self, url: str, secret: str, notification: Notification) -> str:
        """One try; empty if it was accepted."""
        body = _encode(notification)
        headers = {"Content-Type": "application/json", EVENT_HEADER: notification.id, KIND_HEADER: notification.kind}
        if secret:
            headers[SIGNATURE_HEADER] = signature(secret, body, self._clock.now())
        return await self._poster.post(url, body, headers)

    async def deliver(
        self,
        url: str,
        notification: Notification,
        *,
        tries: int,
        secret: Callable[[], str | None],
        failed: Callable[[int], Awaitable[None]],
    ) -> str:
        """Retry until it is accepted, nobody wants it any more (`secret` returns None), or the time is over: then
        return why it last failed."""

        async def attempt() -> str | None:
            known = secret()
            return None if known is None else await self.try_once(url, known, notification)

        until = notification.at + self.patience_ms
        return await self._sender.deliver(url, attempt, tries=tries, until=until, failed=failed)
