"""Alerts, notifications and webhooks of the domain in memory."""

from mendflow.core.model.alerts import AlertView, Delivered, Notification, Severity, WebhookView, WebhookWish
from mendflow.core.model.jobs import Job
from mendflow.core.model.problems import NotFound


class MemoryWatch:
    def __init__(self) -> None:
        self._alerts: dict[str, AlertView] = {}
        self._told: list[Notification] = []
        self._hooks: dict[str, WebhookView] = {}

    async def alerts(self, *, severity: Severity = "warning", every: bool = False, limit: int = 100) -> list[AlertView]:
        return [alert for alert in self._alerts.values() if every or not alert.closed_at][:limit]

    async def acknowledge(self, alert: str, *, who: str) -> AlertView:
        if alert not in self._alerts:
            raise NotFound(f"there is no alert {alert!r}")
        return self._alerts[alert]

    async def requeue(self, job: str, *, who: str, reason: str = "") -> Job:
        raise NotFound(f"there is no job {job!r}")

    async def notifications(self, *, after: int | None = None, limit: int = 100) -> list[Notification]:
        return self._told[after or 0 :][:limit]

    async def webhooks(self) -> list[WebhookView]:
        return list(self._hooks.values())

    async def add_webhook(self, wish: WebhookWish, *, who: str) -> WebhookView:
        id = f"hook-{len(self._hooks) + 1}"
        self._hooks[id] = WebhookView(id=id, url=wish.url, on=list(wish.on), signed=bool(wish.secret), made_by=who)
        return self._hooks[id]

    async def remove_webhook(self, webhook: str, *, who: str) -> WebhookView:
        return self._hook(webhook)

    async def try_webhook(self, webhook: str, *, who: str) -> Delivered:
        return Delivered(ok=True, message=f"{self._hook(webhook).url} has taken it")

    def _hook(self, id: str) -> WebhookView:
        if id not in self._hooks:
            raise NotFound(f"there is no webhook {id!r}")
        return self._hooks[id]
