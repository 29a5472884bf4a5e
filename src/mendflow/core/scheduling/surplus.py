"""Pilots that a site has too many of: after its settings were changed, or when it was paused or removed.

A submission that has not started is cancelled. A working pilot is not ended: one that was to be ready now serves jobs,
and leaves by itself when there are none."""

from collections.abc import Collection

import msgspec

from mendflow.core.model.sites import SiteDocument

REMOVED_IDLE_MS = 1_000
"""A pilot of a site that is being removed leaves after so long without a job."""


def reassign_ready(document: SiteDocument, busy: Collection[str]) -> SiteDocument:
    """Reassign surplus ready pilots to jobs. `busy` are those that have one: they do not count as ready."""
    site = document.site
    ready = [each for each in document.open.values() if each.purpose == "ready"]
    keep = 0 if document.removed else max(site.min_pilots, site.min_idle + sum(each.name in busy for each in ready))
    many = ready[keep:]
    if not many:
        return document
    changed = {each.name: msgspec.structs.replace(each, purpose="jobs") for each in many}
    return msgspec.structs.replace(document, open={**document.open, **changed})


def submissions_to_withdraw(document: SiteDocument) -> list[str]:
    """What to cancel in the batch system: surplus submissions that have not started; everything if the site is to be
    emptied."""
    inactive = [each.name for each in document.open.values() if each.inactive]
    if document.emptied:
        return list(document.open)
    if document.paused is not None or document.removed:
        return inactive
    beyond = len(document.open) - document.site.max_pilots
    return inactive[-beyond:] if beyond > 0 else []


def idle_exit_ms(document: SiteDocument, name: str) -> int:
    """After how long without a job this pilot leaves; 0: as in its options."""
    if document.removed:
        return REMOVED_IDLE_MS
    known = document.open.get(name)
    return document.site.pilots.idle_exit_ms if known is not None and known.purpose == "jobs" else 0
