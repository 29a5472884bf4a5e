"""The notifier: records a notification together with what it reports, appends it to the feed, and delivers it to
webhooks.

A notification waits in an outbox, and is noted there before the document that says that the case is over."""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Collection
from functools import partial
from typing import Final, Protocol

import msgspec

from mendflow.core.engine import item_of
from mendflow.core.engine.elements import element_of
from mendflow.core.model.alerts import DeliveryResult, Notification, NotificationKind
from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.ids import CaseId, Instant, ItemId, item_text, without_item
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import Decision
from mendflow.services.base.alerts import AlertDocument, AlertRaised
from mendflow.services.base.background_tasks import cancel_tasks
from mendflow.services.base.cluster import CASE_KIND
from mendflow.services.base.contracts import Clock, EndReceivers
from mendflow.services.base.delivery import Outbox
from mendflow.services.base.homes import HomeRegistry
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.poster import Poster
from mendflow.services.base.receivers import address_of, is_address
from mendflow.services.cases.facts import CaseEnded, JobFailed
from mendflow.services.cases.live_case import CaseDocument, LiveCase
from mendflow.services.observe.notifications.deliveries import SendingForm, WebhookSender
from mendflow.services.observe.notifications.feed import NotificationLog
from mendflow.services.observe.notifications.messages import decision_text, format_of
from mendflow.services.observe.notifications.webhooks import WebhookStore
from mendflow.stores.contract import Store

log = logging.getLogger("mendflow.notifications")

PENDING_KIND: Final = "notification"
FEED_RETRY_MS: Final = 1_000
FAULTS_MAX: Final = 100
"""Of how many different faults of a case the item is kept in mind, until the case ends by one of them."""


class Recipient(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One receiver of a notification. `hook` is the webhook; none: the address was given with the case."""

    url: str
    hook: str = ""
    tries: int = 0


class PendingNotification(msgspec.Struct, kw_only=True):
    id: str
    notification: Notification
    published: bool = False
    recipients: list[Recipient] = []


class DeliveryFailures(Protocol):
    async def delivery_failed(self, to: str, notification: Notification, why: str) -> None:
        """A notification could not be delivered to a receiver in the time allowed."""
        ...


class Notifier:
    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        homes: HomeRegistry,
        poster: Poster,
        webhooks: WebhookStore,
        chance: Callable[[], float],
        hub: Hub,
    ) -> None:
        self._failures = hub.need(DeliveryFailures, self)
        self._end_receivers = hub.need(EndReceivers, self)
        hub.subscribe(CaseEnded, lambda end: self.case_ended(end.document))
        hub.subscribe(JobFailed, lambda failed: self.item_failed(failed.live, failed.serial, failed.outcome))
        hub.subscribe(AlertRaised, lambda raised: self._alert_raised(raised.alert))
        self._ledger = ledger
        self._clock = clock
        self._homes = homes
        self.webhooks = webhooks
        self.poster = poster
        self.feed = NotificationLog(store)
        self._deliveries = WebhookSender(clock=clock, poster=poster, chance=chance)
        self._outbox = Outbox(PENDING_KIND, PendingNotification, store, ledger, homes)
        self._to_publish: dict[str, PendingNotification] = {}
        self._failed_items: dict[CaseId, dict[str, tuple[ItemId, str]]] = {}  # by the message of the fault
        self._has_news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def load(self, roots: Collection[CaseId]) -> None:
        """Continue with the pending notifications of these trees. Before their cases: a case that ends again must find
        its notification."""
        async for pending in self._outbox.load(roots):
            self._queue(pending)

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="notifications")

    async def stop(self) -> None:
        await cancel_tasks(self._task)
        await self._outbox.stop()

    # What is notified

    def case_ended(self, document: CaseDocument) -> None:
        """To be called in the same step as the end, before its document is recorded. Cases that were called by others,
        or that mend others, are not notified."""
        status = document.status
        if document.parent is not None or document.mends is not None:
            return
        if status == "running" or status == "suspended":
            return
        message = document.fault.message if document.fault is not None else f"case {document.id} {status}"
        id = f"{document.id}:end{document.reopened or ''}"
        item, message = self._with_item(document.id, message)
        notification = self._about(document, status, id, document.ended_at, message, item)
        given = [document.notify] if document.notify else []
        receivers = dict.fromkeys((*given, *self._end_receivers().receivers(document.flow, status)))
        self._note(id, notification, [self._recipient(each) for each in receivers])
        self._ledger.defer(CASE_KIND, document.id)

    def _with_item(self, case: CaseId, message: str) -> tuple[ItemId | None, str]:
        """The item whose fault ended a case, if it failed here, and the message with its name, as `why` has it."""
        failed = self._failed_items.pop(case, {}).get(message)
        if failed is None:
            return None, message
        item, shown = failed
        return item, f"{shown}: {without_item(message, item)}"

    def _note_failed(self, live: LiveCase, serial: int, item: ItemId, message: str) -> None:
        known = self._failed_items.setdefault(live.id, {})
        if len(known) < FAULTS_MAX:
            known.setdefault(message, (item, item_text(item, element_of(live.case, serial))))

    def _recipient(self, receiver: str) -> Recipient:
        """An address, or a webhook by its name."""
        if is_address(receiver):
            return Recipient(url=address_of(receiver))
        hook = self.webhooks.find(receiver)
        return Recipient(url=hook.url if hook is not None else "", hook=receiver)

    def item_failed(self, live: LiveCase, serial: int, outcome: Outcome) -> None:
        """To be called before the flow is told."""
        if outcome.fault is None:
            return
        instance = item_of(live.case, serial)
        item = instance.item if instance is not None else None
        if item is not None and live.document.parent is None and live.document.mends is None:
            self._note_failed(live, serial, item, outcome.fault.message)
        if not self.webhooks.has_subscriber("item-failed"):
            return
        id = f"{live.id}:item-{serial}"
        notification = self._about(live.document, "item-failed", id, self._clock.now(), outcome.fault.message, item)
        if self.webhooks.subscribers_of(notification):
            self._note(id, notification, [])

    def decision_moved(self, decision: Decision, *, owner: str) -> None:
        """A decision was made, waits for a person, was taken up, or is over. To be called in the same step, before its
        document is recorded."""
        if not self.webhooks.has_subscriber("decision"):
            return
        id = f"{decision.id}:decision-{decision.state}{'-ended' if decision.ended_at else ''}"
        notification = Notification(
            id=id,
            kind="decision",
            at=self._clock.now(),
            message=decision_text(decision),
            case=CaseId(f"{decision.engine}:{decision.case}" if decision.engine else decision.case),
            flow=decision.flow,
            owner=owner,
            item=decision.item,
            decision=decision.id,
            state=decision.state,
            result=decision.result,
        )
        if self.webhooks.subscribers_of(notification):
            self._note(id, notification, [])

    def _alert_raised(self, alert: AlertDocument) -> None:
        but = alert.subject if alert.kind == "not-delivered" else ""
        self.alert(alert.id, alert.sentence, at=alert.raised_at, case=alert.case, item=alert.item, but=but)

    def alert(self, id: str, sentence: str, *, at: Instant, case: CaseId, item: ItemId | None, but: str = "") -> None:
        """Notify clients of an alert; `but` is a webhook that is left out. Another server may have begun to notify of
        the same alert: both have the same id, and each has a pending notification of its own."""
        event = f"alert@{hashlib.sha256(id.encode()).hexdigest()[:24]}"
        notification = Notification(id=event, kind="alert", at=at, message=sentence, case=case, item=item, alert=id)
        self._note(f"{event}@{self._homes.server}", notification, [], but=but)

    def _about(
        self,
        document: CaseDocument,
        kind: NotificationKind,
        id: str,
        at: Instant,
        message: str,
        item: ItemId | None = None,
    ) -> Notification:
        owner, flow = document.owner, document.flow
        return Notification(
            id=id, kind=kind, at=at, message=message, case=document.id, flow=flow, owner=owner, item=item
        )

    def _note(self, id: str, notification: Notification, extra: list[Recipient], *, but: str = "") -> None:
        if id in self._outbox.waiting:
            return
        webhooks = [
            Recipient(url=hook.url, hook=hook.id)
            for hook in self.webhooks.subscribers_of(notification)
            if hook.id != but
        ]
        also = [each for each in extra if not each.hook or each.hook not in {known.hook for known in webhooks}]
        pending = PendingNotification(id=id, notification=notification, recipients=[*webhooks, *also])
        self._outbox.add(pending)
        self._queue(pending)

    def _queue(self, pending: PendingNotification) -> None:
        if pending.published:
            self._deliver_all(pending)
        else:
            self._to_publish[pending.id] = pending
            self._has_news.set()

    # Into the feed

    async def _run(self) -> None:
        while True:
            await self._has_news.wait()
            self._has_news.clear()
            batch, self._to_publish = list(self._to_publish.values()), {}
            try:
                await self._ledger.settled()
                first = await self.feed.add([pending.notification for pending in batch])
            except Exception as error:  # whatever it was, notifications must go on when it is over
                if isinstance(error, StoreUnavailable):
                    log.warning("notifications wait until the store is reachable: %s", error.message)
                else:
                    log.exception("notifications could not be written; trying again")
                self._to_publish = {pending.id: pending for pending in batch} | self._to_publish
                self._has_news.set()
                await self._clock.sleep(FEED_RETRY_MS)
                continue
            for serial, pending in enumerate(batch, first):
                self._published(pending, serial)

    def _published(self, pending: PendingNotification, serial: int) -> None:
        pending.notification, pending.published = msgspec.structs.replace(pending.notification, serial=serial), True
        if pending.recipients:
            self._outbox.save(pending)
            self._deliver_all(pending)
        else:
            self._outbox.remove(pending)

    # To webhooks

    def _deliver_all(self, pending: PendingNotification) -> None:
        for address in list(pending.recipients):
            name = f"{pending.id} to {address.hook or address.url}"
            self._outbox.deliver(name, partial(self._deliver, pending, address))

    async def _deliver(self, pending: PendingNotification, address: Recipient) -> None:
        async def failed(tries: int) -> None:
            address.tries = tries
            self._outbox.save(pending)

        def form() -> SendingForm | None:
            if not address.hook:
                return SendingForm(format_of(address.url), "")
            hook = self.webhooks.find(address.hook)
            return SendingForm(hook.format, hook.secret) if hook is not None else None

        why = f"there is no webhook {address.hook}"
        if address.url:
            why = await self._deliveries.deliver(
                address.url, pending.notification, tries=address.tries, form=form, failed=failed
            )
        if why:
            await self._failures().delivery_failed(
                address.hook or address.url.partition("?")[0], pending.notification, why
            )
        pending.recipients.remove(address)
        if pending.recipients:
            self._outbox.save(pending)
        else:
            self._outbox.remove(pending)

    async def send_test(self, id: str) -> DeliveryResult:
        """Send a test to a webhook now, once."""
        hook, now = await self.webhooks.get(id), self._clock.now()
        notification = Notification(
            id=f"test@{hook.id}-{now}", kind="test", at=now, message=f"this is a test of webhook {id}"
        )
        why = await self._deliveries.try_once(hook.url, SendingForm(hook.format, hook.secret), notification)
        return DeliveryResult(ok=not why, message=why or f"{hook.url} has taken it")
