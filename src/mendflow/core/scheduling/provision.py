"""How many pilots a site should have: the pilot monitor's calculation.

For each site, with what was submitted before (inactive: not heard yet; idle: without a job; busy):

    available = maxPilots - submitted; none: nothing is sent
    for each group of waiting jobs that could run there:
        those that inactive pilots are enough for are covered by them
        for the rest more pilots are sent, as far as there is room
    idle < minIdlePilots: more are sent
    submitted < minPilots: more are sent

Two things are settled here that the algorithm as published leaves open. An inactive pilot covers jobs once: what one
group takes of them, the next does not have. And a free slot of a pilot that is at work covers a job that has just come,
because that pilot is about to take it; a job that has waited for longer is evidently not to that pilot's taste. A job
that any site may run is covered once, by the first that has room for it."""

from collections.abc import Iterable, Sequence

import msgspec

from mendflow.core.model.jobs import Resources
from mendflow.core.model.sites import PILOTS_MAX, PilotOffer, Site
from mendflow.core.scheduling.site_fit import missing_for

SETTLE_MS = 15_000
"""A job that has waited this long will not be taken by an existing pilot."""


class JobGroup(msgspec.Struct, frozen=True):
    """Waiting jobs of similar needs, and how long the first of them has waited."""

    needs: Resources
    jobs: int
    waited_ms: int = 0


class SitePilots(msgspec.Struct, frozen=True, kw_only=True):
    """The pilots of a site. `free_slots` are those of registered pilots, busy ones included. `withdrawn` are being
    cancelled: they still exist, but no job may count on them."""

    inactive: int = 0
    idle: int = 0
    busy: int = 0
    free_slots: int = 0
    withdrawn: int = 0

    @property
    def submitted(self) -> int:
        return self.inactive + self.idle + self.busy + self.withdrawn


class ProvisionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How many pilots to submit for jobs, and how many to be ready; why; and the jobs that are still not covered."""

    for_jobs: int = 0
    ready: int = 0
    reasons: tuple[str, ...] = ()
    uncovered: tuple[JobGroup, ...] = ()

    @property
    def pilots(self) -> int:
        return self.for_jobs + self.ready


def plan(
    site: Site,
    standing: SitePilots,
    groups: Iterable[JobGroup],
    *,
    most: int = PILOTS_MAX,
    offered: Sequence[PilotOffer] = (),
) -> ProvisionPlan:
    """What to submit to a site; no more than `most`, whatever its thresholds. `offered` is what its last pilots had:
    jobs that none of them could have taken cause no submission."""
    room = site.max_pilots - standing.submitted
    cover = _Cover(site, standing, max(0, min(room, most)), offered)
    uncovered = [each for each in map(cover.group, groups) if each is not None]
    for_jobs = cover.sent
    ready = cover.to_be_idle()
    ready += cover.to_have_enough()
    if room <= 0:
        cover.reasons.append(f"{standing.submitted} of at most {site.max_pilots} pilots exist: no more are submitted")
    reasons = tuple(cover.reasons) or ("its pilots are enough for all waiting jobs",)
    return ProvisionPlan(for_jobs=for_jobs, ready=ready, reasons=reasons, uncovered=tuple(uncovered))


class _Cover:
    """What is left to cover jobs with."""

    def __init__(self, site: Site, standing: SitePilots, available: int, offered: Sequence[PilotOffer]) -> None:
        self._site = site
        self._offered = offered
        self._standing = standing
        self._slots = max(1, site.pilots.slots)
        self._free = standing.free_slots
        self._coming = standing.inactive * self._slots
        self.available = available
        self.sent = 0
        self.reasons: list[str] = []

    def group(self, group: JobGroup) -> JobGroup | None:
        """Cover a group; returns the rest of it."""
        if lacks := missing_for(self._site, group.needs, self._offered):
            if group.needs.site in ("", self._site.name):
                self.reasons.append(f"{_jobs(group.jobs)} that none of its pilots could take: {lacks}")
            return group
        left = group.jobs
        if group.waited_ms < SETTLE_MS:
            left, self._free = _less(left, self._free)
        left, self._coming = _less(left, self._coming)
        if not left:
            return None
        pilots = min(-(-left // self._slots), self.available)
        waits = f"{_jobs(left)} without a submitted pilot"
        if pilots:
            self._send(pilots, f"{waits}: {pilots} more for them")
        else:
            self.reasons.append(waits)
        left, spare = _less(left, pilots * self._slots)
        self._coming += spare
        return msgspec.structs.replace(group, jobs=left) if left else None

    def to_be_idle(self) -> int:
        """Those that are not needed for jobs will be idle."""
        will_be = self._standing.idle + self._coming // self._slots
        reason = f"{will_be} pilots are or will be idle; min_idle is {self._site.min_idle}"
        return self._send_up_to(self._site.min_idle - will_be, reason)

    def to_have_enough(self) -> int:
        there = self._standing.submitted + self.sent
        reason = f"{there} pilots exist or are submitted; min_pilots is {self._site.min_pilots}"
        return self._send_up_to(self._site.min_pilots - there, reason)

    def _send_up_to(self, wanted: int, reason: str) -> int:
        sent = max(0, min(wanted, self.available))
        if sent:
            self._send(sent, f"{reason}: {sent} more")
        elif wanted > 0:
            self.reasons.append(reason)
        return sent

    def _send(self, pilots: int, why: str) -> None:
        self.sent += pilots
        self.available -= pilots
        self.reasons.append(why)


def _jobs(count: int) -> str:
    return "1 job waits" if count == 1 else f"{count} jobs wait"


def _less(wanted: int, have: int) -> tuple[int, int]:
    """What is still wanted, and what is left, after taking as much as possible."""
    taken = min(wanted, have)
    return wanted - taken, have - taken
