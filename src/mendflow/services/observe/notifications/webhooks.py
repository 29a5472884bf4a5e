"""Webhooks: which address gets which notifications.

They are documents that all servers share, each with its secret, which is never shown again."""

from collections.abc import Callable
from typing import Final

import msgspec

from mendflow.core.data.set_specs import check_name
from mendflow.core.model.alerts import MessageFormat, Notification, NotificationKind, WebhookSpec, WebhookView
from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound
from mendflow.core.model.ids import Instant
from mendflow.services.base.contracts import Clock
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.readable_documents import readable_by_id
from mendflow.services.base.receivers import address_of, is_mail
from mendflow.services.observe.notifications.messages import format_of
from mendflow.stores.contract import Store

WEBHOOK_KIND: Final = "webhook"
HOOKS_MAX: Final = 1_000
SECRET_CHARS_MAX: Final = 1_000


class Webhook(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    url: str
    on: list[NotificationKind]
    format: MessageFormat = "json"
    flow: str = ""
    owner: str = ""
    secret: str = ""
    made_at: Instant = 0
    made_by: str = ""

    def __repr__(self) -> str:
        return f"Webhook({self.id!r}, {self.url!r})"  # keeps the secret out of logs

    def wants(self, notification: Notification) -> bool:
        about_flow = not self.flow or notification.flow == self.flow
        return notification.kind in self.on and about_flow and (not self.owner or notification.owner == self.owner)

    def view(self) -> WebhookView:
        return WebhookView(
            id=self.id,
            url=self.url,
            on=self.on,
            format=self.format,
            flow=self.flow,
            owner=self.owner,
            signed=bool(self.secret),
            made_at=self.made_at,
            made_by=self.made_by,
        )


_decode = msgspec.json.Decoder(Webhook).decode


class WebhookStore:
    def __init__(self, store: Store, ledger: Ledger, clock: Clock, chance: Callable[[int], str]) -> None:
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._chance = chance
        self._webhooks: dict[str, Webhook] = {}
        self._kinds: frozenset[str] = frozenset()

    async def start(self) -> None:
        """Read all webhooks; other servers may have added and removed some."""
        self._set(await readable_by_id(self._store.scan(WEBHOOK_KIND), _decode))

    def _set(self, webhooks: dict[str, Webhook]) -> None:
        self._webhooks = webhooks
        self._kinds = frozenset(kind for hook in webhooks.values() for kind in hook.on)

    def has_subscriber(self, kind: NotificationKind) -> bool:
        return kind in self._kinds

    def subscribers_of(self, notification: Notification) -> list[Webhook]:
        return (
            [hook for hook in self._webhooks.values() if hook.wants(notification)]
            if notification.kind in self._kinds
            else []
        )

    def find(self, id: str) -> Webhook | None:
        return self._webhooks.get(id)

    async def get(self, id: str) -> Webhook:
        """Read it from the store: another server may have added it just now."""
        found = await self._store.get(WEBHOOK_KIND, id)
        if found is None:
            raise NotFound(f"there is no webhook {id!r}; `mendflow admin webhooks` lists them")
        return _decode(found.body)

    async def all(self) -> list[WebhookView]:
        await self.start()
        return [hook.view() for hook in sorted(self._webhooks.values(), key=lambda hook: (hook.made_at, hook.id))]

    async def add(self, wish: WebhookSpec, *, who: str) -> WebhookView:
        if not wish.on and not wish.name:
            raise InvalidRequest(
                "a webhook needs at least one kind of event, named with `on`, or a name by which flows tell it",
                field="on",
            )
        if wish.name:
            check_name(wish.name, "webhook")
        if len(wish.secret) > SECRET_CHARS_MAX:
            raise InvalidRequest(f"a secret has at most {SECRET_CHARS_MAX} characters", field="secret")
        if len(self._webhooks) >= HOOKS_MAX:
            raise InvalidRequest(f"there are {HOOKS_MAX} webhooks already; remove some")
        url = address_of(wish.url)
        format = wish.format or format_of(url)
        if (format == "mail") != is_mail(url):
            raise InvalidRequest(f"{wish.url[:100]} cannot get {format}; leave the format out", field="format")
        if format == "mail" and wish.secret:
            raise InvalidRequest("a mail is not signed; leave the secret out", field="secret")
        hook = Webhook(
            id=wish.name or f"hook-{self._chance(4)}",
            url=url,
            on=list(dict.fromkeys(wish.on)),
            format=format,
            flow=wish.flow,
            owner=wish.owner,
            secret=wish.secret,
            made_at=self._clock.now(),
            made_by=who,
        )
        if await self._ledger.put_now(WEBHOOK_KIND, hook.id, hook, 0) is None:
            raise Conflict(f"there is a webhook {hook.id} already; remove it first, or take another name")
        self._set({**self._webhooks, hook.id: hook})
        return hook.view()

    async def remove(self, id: str) -> WebhookView:
        hook, found = await self.get(id), await self._store.get(WEBHOOK_KIND, id)
        if found is not None:
            await self._ledger.put_now(WEBHOOK_KIND, id, None, found.version)
        self._set({each: known for each, known in self._webhooks.items() if each != id})
        return hook.view()
