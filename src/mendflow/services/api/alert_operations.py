"""The part of the domain that is about alerts, notifications and webhooks, and the requeueing of a job by a person.

Like the rest it answers only when what it says is on disk."""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from mendflow.core.model.alerts import (
    AlertedCase,
    AlertView,
    DeliveryResult,
    Notification,
    Severity,
    WebhookSpec,
    WebhookView,
)
from mendflow.core.model.errors import Conflict
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Job
from mendflow.core.model.principals import EVERYTHING, Sight, person_text
from mendflow.core.model.views import ChangeEvent
from mendflow.services.api.shared_lists import share_of, shared_out
from mendflow.services.api.view_operations import ViewOperations, without_large_values
from mendflow.services.base.cluster import CASE_KIND
from mendflow.services.base.loop_yielder import LoopYielder
from mendflow.services.base.receivers import address_of, check_address
from mendflow.services.cases.live_case import CaseDocument

ALERTS_READ = 10_000
"""How many of the newest are looked through for those that somebody may see."""
MESSAGES_READ = 20_000
"""And how many of the newest messages, for those of projects that have few."""
CASES_READ = 100
"""So many cases of alerts are read at a time."""
_decode_case = msgspec.json.Decoder(CaseDocument).decode


class AlertOperations(ViewOperations):
    async def alerts(
        self,
        *,
        severity: Severity = "warning",
        every: bool = False,
        limit: int = 100,
        sight: Sight = EVERYTHING,
    ) -> list[AlertView]:
        """The newest first, of this severity or a higher one; `every`: also those that are over. `info` has messages
        that need no action."""
        await self._settled()
        alerts = self._server.runtime.monitor.alerts
        read = limit if sight.projects is None else ALERTS_READ
        found = await alerts.list(every=every, limit=read, critical=severity == "critical")
        found = [each for each in found if await self._tells_of(each.id, each.case, sight)]
        if severity == "info":
            return await self._with_given(await self._with_messages(found, limit, sight))
        return await self._with_given(sorted(found, key=lambda alert: -alert.raised_at)[:limit])

    async def _with_messages(self, alerts: list[AlertView], limit: int, sight: Sight) -> list[AlertView]:
        """The newest of alerts and messages together, of which each project has its share."""
        of_alert = self.project_lookup.of_alert
        entries = [(await of_alert(each.id, each.case), each) for each in alerts]
        projects, counts, in_shares = dict[CaseId, str](), Counter[str](), 0
        yielder = LoopYielder()
        async for each in self._server.runtime.notices.messages(MESSAGES_READ):
            await yielder.pause()
            if each.case and each.case not in projects:
                projects[each.case] = await self.project_lookup.of_case(each.case) or ""
            # a message about no case and no project is about the installation: it is for administrators
            project = projects[each.case] if each.case else each.project
            if not sight.sees(project):
                continue
            counts[project] += 1
            if counts[project] <= limit:
                entries.append((project, _message(each)))
            in_shares += counts[project] <= share_of(limit)
            if in_shares >= limit:
                break
        return shared_out(sorted(entries, key=lambda entry: -entry[1].raised_at), limit)

    async def _with_given(self, alerts: Sequence[AlertView]) -> list[AlertView]:
        """With what their cases were given; a case that was removed has nothing any more."""
        given = await self._given({alert.case for alert in alerts if alert.case})
        return [msgspec.structs.replace(alert, given=given.get(alert.case)) for alert in alerts]

    async def _given(self, cases: Iterable[CaseId]) -> dict[CaseId, AlertedCase]:
        live, yielder = self._server.runtime.manager.live, LoopYielder()
        ids = list(cases)
        given = {id: self._alerted(found.document) for id in ids if (found := live.get(id)) is not None}
        others = [id for id in ids if id not in given]
        for at in range(0, len(others), CASES_READ):
            for stored in await self._server.store.get_many(CASE_KIND, others[at : at + CASES_READ]):
                await yielder.pause()
                given[CaseId(stored.id)] = self._alerted(_decode_case(stored.body))
        return given

    def _alerted(self, case: CaseDocument) -> AlertedCase:
        small = without_large_values(self._view(case))
        left_out = [name for name in small.left_out if name.startswith("inputs.")]
        return AlertedCase(flow=small.flow, inputs=small.inputs, defaults=small.defaults, left_out=left_out)

    async def _tells_of(self, alert: str, case: str, sight: Sight) -> bool:
        """Whether an alert may be seen, or a notification, also one of no alert."""
        return sight.projects is None or sight.sees(await self.project_lookup.of_alert(alert, case))

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
            told = f"job {id}: it was requeued by {person_text(who)}" + (f": {reason}" if reason else "")
            self._server.runtime.notices.post(told, case=known.case, item=known.spec.item)
        await self._settled()
        return await self.job(id)

    async def notifications(
        self, *, after: int | None = None, limit: int = 100, sight: Sight = EVERYTHING
    ) -> list[Notification]:
        """Those after a serial, the oldest first; without a serial, the newest."""
        await self._settled()
        feed = self._server.runtime.notifier.feed
        if sight.projects is None:
            return await feed.after(after, limit)
        found, place = list[Notification](), after if after is not None else max(0, await feed.length() - ALERTS_READ)
        while page := await feed.after(place, ALERTS_READ):
            found += [each for each in page if await self._tells_of(each.alert, each.case, sight)]
            place = page[-1].serial
            if after is not None and len(found) >= limit:
                return found[:limit]
        return found[:limit] if after is not None else found[-limit:]

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
        check_address(address_of(url), self._server.poster)


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
