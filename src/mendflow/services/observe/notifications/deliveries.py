"""Delivers a notification to a webhook: in the form that its receiver reads, signed if the webhook has a secret, and
retried until it is accepted."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from mendflow.core.model.alerts import MessageFormat, Notification
from mendflow.services.base.contracts import Clock
from mendflow.services.base.delivery import PATIENCE_MS, RetryingSender
from mendflow.services.base.poster import Poster
from mendflow.services.observe.notifications.messages import body_of, mail_of
from mendflow.services.observe.notifications.signing import EVENT_HEADER, KIND_HEADER, SIGNATURE_HEADER, signature


class SendingForm(NamedTuple):
    format: MessageFormat
    secret: str


class WebhookSender:
    def __init__(self, *, clock: Clock, poster: Poster, chance: Callable[[], float]) -> None:
        self._clock = clock
        self._poster = poster
        self._sender = RetryingSender(clock, chance)
        self.patience_ms = PATIENCE_MS

    async def try_once(self, url: str, form: SendingForm, notification: Notification) -> str:
        """One try; empty if it was accepted."""
        if form.format == "mail":
            return await self._poster.mail(mail_of(url, notification))
        body = body_of(notification, form.format)
        headers = {"Content-Type": "application/json", EVENT_HEADER: notification.id, KIND_HEADER: notification.kind}
        if form.secret:
            headers[SIGNATURE_HEADER] = signature(form.secret, body, self._clock.now())
        return await self._poster.post(url, body, headers)

    async def deliver(
        self,
        url: str,
        notification: Notification,
        *,
        tries: int,
        form: Callable[[], SendingForm | None],
        failed: Callable[[int], Awaitable[None]],
    ) -> str:
        """Retry until it is accepted, nobody wants it any more (`form` returns None), or the time is over: then
        return why it last failed."""

        async def attempt() -> str | None:
            known = form()
            return None if known is None else await self.try_once(url, known, notification)

        until = notification.at + self.patience_ms
        return await self._sender.deliver(url, attempt, tries=tries, until=until, failed=failed)
