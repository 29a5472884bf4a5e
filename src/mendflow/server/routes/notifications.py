"""Notifications, and the webhooks that they are sent to."""

from typing import Annotated

from litestar import Router, delete, get, post
from litestar.params import FromPath, JSONBody, QueryParameter

from mendflow.core.model.alerts import DeliveryResult, Notification, WebhookSpec, WebhookView
from mendflow.server.routes.parameters import Limit, TheCaller, TheDomain

AfterSerial = Annotated[
    int | None,
    QueryParameter(ge=0, le=2**53, description="Those after this serial, the oldest first; else the newest."),
]


@get("/notifications", summary="What clients were told")
async def notifications(domain: TheDomain, after: AfterSerial = None, limit: Limit = 100) -> list[Notification]:
    """The notifications of all servers on the store, in one order. A client that continues after the last serial that
    it has read misses none."""
    return await domain.notifications(after=after, limit=limit)


@get("/webhooks", summary="Where notifications are sent")
async def webhooks(domain: TheDomain) -> list[WebhookView]:
    """Secrets are not shown. For administrators, because an address may be a secret, too."""
    return await domain.webhooks()


@post("/webhooks", status_code=201, summary="Send notifications to an address")
async def add_webhook(domain: TheDomain, caller: TheCaller, data: JSONBody[WebhookSpec]) -> WebhookView:
    return await domain.add_webhook(data, who=caller.name)


@delete("/webhooks/{webhook:str}", status_code=200, summary="Send no more to an address")
async def remove_webhook(domain: TheDomain, caller: TheCaller, webhook: FromPath[str]) -> WebhookView:
    return await domain.remove_webhook(webhook, who=caller.name)


@post(
    "/webhooks/{webhook:str}/test",
    status_code=200,
    summary="Send something to a webhook now, to see whether it arrives",
)
async def try_webhook(domain: TheDomain, caller: TheCaller, webhook: FromPath[str]) -> DeliveryResult:
    return await domain.try_webhook(webhook, who=caller.name)


ROUTES = Router(
    "/", route_handlers=[notifications, webhooks, add_webhook, remove_webhook, try_webhook], tags=["notifications"]
)
