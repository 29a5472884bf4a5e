"""Whether a site's pilots could take a job when empty.

A site's settings say some of it. The rest is learnt: each pilot reports what it has when it registers, and the site's
document keeps the last reports. A job that none of these pilots could have taken causes no submission. What was learnt
expires after a day, since disks get free and machines change, and when somebody resumes the site."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mendflow.core.model.jobs import Resources
from mendflow.core.model.sites import PilotOffer, Site
from mendflow.core.scheduling.amounts import duration, size
from mendflow.core.scheduling.offer import CPU_GRAIN, FOREVER_MS, FreeResources, why_unsuitable

ENDS_BEFORE_MS = 60_000
"""A pilot leaves this long before it would be killed; if that is too little, after nine tenths of its time."""


def life_ms(site: Site) -> int:
    """A pilot's lifetime, so that it leaves by itself before it is killed; 0: no limit."""
    wall_ms = site.batch.wall_ms
    return max(wall_ms - ENDS_BEFORE_MS, wall_ms * 9 // 10) if wall_ms else 0


def missing_for(site: Site, needs: Resources, offered: Sequence[PilotOffer] = ()) -> str:
    """What pilots of this site lack for such a job; empty if they could take it. What neither the site nor any of its
    pilots has reported counts as available."""
    if needs.site not in ("", site.name):
        return f"it is bound to site {needs.site}"
    amounts = _amounts(needs)
    lacking = [each for each in amounts if each.asked > each.settings(site) + CPU_GRAIN]
    if lacking:
        return "; ".join(
            f"it asks for {each.tell(each.asked)}, and its pilots get {_amount_given(each, site)}" for each in lacking
        )
    if not offered or any(_site_resources(site, each).fits(needs) for each in offered):
        return ""
    return _not_offered(site, needs, amounts, offered)


class _Amount(NamedTuple):
    """One requirement of a job: what a site's settings give of it, and what a pilot had."""

    asked: float
    settings: Callable[[Site], float]
    had: Callable[[PilotOffer], float]
    tell: Callable[[float], str]


def _amounts(needs: Resources) -> list[_Amount]:
    return [
        _Amount(needs.cpus, lambda s: s.pilots.cpus, lambda o: o.capacity.cpus, lambda n: f"{n:g} cpus"),
        _Amount(needs.memory_bytes, lambda s: s.pilots.memory_bytes or FOREVER_MS,
                lambda o: o.capacity.memory_bytes, lambda n: f"{size(n)} of memory"),
        _Amount(needs.disk_bytes, lambda s: s.pilots.disk_bytes or FOREVER_MS,
                lambda o: o.capacity.disk_bytes, lambda n: f"{size(n)} of disk"),
        _Amount(needs.gpus, lambda s: s.pilots.gpus, lambda o: o.capacity.gpus, lambda n: f"{n:g} gpus"),
        _Amount(needs.wall_ms, lambda s: life_ms(s) or FOREVER_MS, lambda o: o.ttl_ms or FOREVER_MS,
                lambda n: f"{duration(n)} of time"),
    ]  # fmt: skip


def _amount_given(amount: _Amount, site: Site) -> str:
    return amount.tell(amount.settings(site))


def _not_offered(site: Site, needs: Resources, amounts: Sequence[_Amount], offered: Sequence[PilotOffer]) -> str:
    came = "the last pilot that came" if len(offered) == 1 else f"the largest of the last {len(offered)} pilots"
    lacks = []
    for each in amounts:
        most = max(map(each.had, offered))
        if each.asked > most + CPU_GRAIN:
            lacks.append(f"it asks for {each.tell(each.asked)}, and {came} had {each.tell(most)}")
    hosts = sorted({each.host for each in offered})
    if site.batch.kind == "local" and set(hosts) <= set(needs.avoid_hosts):
        lacks.append(f"it avoids {', '.join(hosts)}, where its pilots are")
    if not lacks and (why := _not_suitable(needs, offered)):
        lacks.append(why)
    return "; ".join(lacks) or f"none of the last {len(offered)} pilots that came had all that it asks for"


def _not_suitable(needs: Resources, offered: Sequence[PilotOffer]) -> str:
    why = {
        why_unsuitable(needs, each.host, has.system, has.machine, has.runtime)
        for each in offered
        for has in (each.capacity,)
    }
    return "" if "" in why else f"{'; '.join(sorted(why))}, and its pilots were on none"


def _site_resources(site: Site, offered: PilotOffer) -> FreeResources:
    """A batch system may start the next pilot on another host; if there is none, it makes no difference."""
    has = offered.capacity
    host = offered.host if site.batch.kind == "local" else ""
    return FreeResources(has.cpus, has.memory_bytes, has.disk_bytes, has.gpus, offered.ttl_ms, host, has)
