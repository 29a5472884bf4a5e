"""The part of the domain that is about alerts, notifications and webhooks, and the requeueing of a job by a person.

Like the rest it answers only when what it says is on disk."""

from mendflow.core.model.alerts import (
    AlertView,
    DeliveryResult,
    Notification,
    Severity,
    WebhookSpec,
    WebhookView,
)
from mendflow.core.model.errors import Conflict
from mendflow.core.model.jobs import Job
from mendflow.core.model.views import ChangeEvent
from mendflow.services.api.view_operations import ViewOperations
from mendflow.services.base.addresses import check_url


class AlertOperations(ViewOperations):
    async def alerts(self, *, severity: Severity = "warning", every: bool = False, limit: int = 100) -> list[AlertView]:
        """The newest first, of this severity or a higher one; `every`: also those that are over. `info` has messages
        that need no action."""
        await self._settled()
        alerts = self._server.runtime.monitor.alerts
        found = await alerts.list(every=every, limit=limit, critical=severity == "critical")
        if severity == "info":
            found += [_message(each) for each in await self._server.runtime.notices.latest_messages(limit)]
        return sorted(found, key=lambda alert: -alert.raised_at)[:limit]

    async def acknowledge(self, alert: str, *, who: str) -> AlertView:
        await self._settled()
        return await self._server.runtime.monitor.acknowledge(alert, who=who)

    async def requeue(self, job: str, *, who: str, reason: str = "") -> Job:
        """Take a job's attempt from its pilot. The job is given to a pilot again when the attempt is certain to have
        ended."""
        id = await self._job_id(job)
        known = await self.job(id)
        if known.requeued is None and self._server.runtime.meta.requeue(id, by=who, reason=reason) is None:
            state = "over" if known.finished else "waiting, and will be given to the next pilot that fits"
            raise Conflict(f"no pilot has job {id}: it is {state}; only a running job can be requeued")
        if known.requeued is None:
            told = f"job {id}: it was requeued by {who}" + (f": {reason}" if reason else "")
            self._server.runtime.notices.post(told, case=known.case, item=known.spec.item)
        await self._settled()
        return await self.job(id)

    async def notifications(self, *, after: int | None = None, limit: int = 100) -> list[Notification]:
        """Those after a serial, the oldest first; without a serial, the newest."""
        await self._settled()
        return await self._server.runtime.notifier.feed.after(after, limit)

    async def webhooks(self) -> list[WebhookView]:
        await self._settled()
        return await self._server.runtime.notifier.webhooks.all()

    async def add_webhook(self, wish: WebhookSpec, *, who: str) -> WebhookView:
        self._check(wish.url)
        return await self._server.runtime.notifier.webhooks.add(wish, who=who)

    async def remove_webhook(self, webhook: str, *, who: str) -> WebhookView:
        if flow := self._server.runtime.triggers.flow_telling(webhook):
            raise Conflict(f"flow {flow} tells webhook {webhook} of its ends: change its `on:` first, and deploy it")
        return await self._server.runtime.notifier.webhooks.remove(webhook)

    async def try_webhook(self, webhook: str, *, who: str) -> DeliveryResult:
        await self._settled()
        return await self._server.runtime.notifier.send_test(webhook)

    def _check(self, url: str) -> None:
        check_url(url, private=self._server.poster.private)


def _message(told: ChangeEvent) -> AlertView:
    """A message that only informs, as an alert that nobody has to acknowledge."""
    return AlertView(
        id=f"message/{told.serial}",
        kind="message",
        subject=str(told.item or told.case),
        sentence=told.message,
        raised_at=told.at,
        raised_by="",
        severity="info",
        case=told.case,
        item=told.item,
        closed_at=told.at,
    )
