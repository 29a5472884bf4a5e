"""Alerts about sites: one was paused because its pilots keep failing, or a batch system has not answered for long. Each
is closed when the site works again."""

from mendflow.core.model.ids import Instant
from mendflow.core.model.sites import SiteDocument
from mendflow.core.scheduling.amounts import duration
from mendflow.services.base.alerts import AlertFinding, AlertStore

PAUSED, AWAY = "site-paused", "site-away"
AWAY_MS = 600_000
"""A batch system that does not answer for this long raises an alert."""


class SiteAlerts:
    def __init__(self, alerts: AlertStore) -> None:
        self._alerts = alerts

    async def look(self, document: SiteDocument, now: Instant) -> None:
        """Raise the alerts that are due, and close those that are over."""
        found = [each for each in (_paused(document), _away(document, now)) if each is not None]
        for each in found:
            await self._alerts.raise_(each)
        ids = {each.id for each in found}
        for id, known in list(self._alerts.open.items()):
            about = known.alert.kind in (PAUSED, AWAY) and known.alert.subject == document.site.name
            if about and id not in ids:
                await self._alerts.close(known)


def _paused(document: SiteDocument) -> AlertFinding | None:
    paused, name = document.paused, document.site.name
    if paused is None or paused.by or document.removed:
        return None
    return AlertFinding(
        kind="site-paused",
        subject=name,
        episode=str(paused.at),
        sentence=f"site {name} gets no more pilots: {paused.why}. See `mendflow admin sites show {name}`, put it right,"
        f" and let it go on with `mendflow admin sites resume {name}`",
    )


def _away(document: SiteDocument, now: Instant) -> AlertFinding | None:
    since, name = document.unheard_since, document.site.name
    if not since or now - since < AWAY_MS or document.removed:
        return None
    return AlertFinding(
        kind="site-away",
        subject=name,
        episode=str(since),
        sentence=f"the batch system of site {name} has not answered for {duration(now - since)}, and gets no pilots"
        f" until it does: {document.trouble}",
    )
