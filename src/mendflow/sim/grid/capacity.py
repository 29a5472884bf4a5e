"""Whether any pilot of a grid could run a job, and an explanation if none can.

The product's own matching decides, on empty pilots. This module asks it and words the result."""

from collections.abc import Iterable, Mapping, Sequence

from mendflow.core.model.containers import RUNTIMES
from mendflow.core.model.ids import PilotId
from mendflow.core.model.jobs import Resources
from mendflow.core.model.sync import Capacity
from mendflow.core.scheduling.offer import IdleResources, Offer
from mendflow.pages.formatting import count_text, duration_text, size_text
from mendflow.sim.grid.scene import SiteScene

TOLD_MAX = 5


def capacity_of(site: SiteScene) -> Capacity:
    """The resources of each pilot of a site. All can run containers."""
    cpus, memory_bytes, disk_bytes = site.cpus or float(site.slots), site.memory_bytes, site.disk_bytes
    return Capacity(slots=site.slots, cpus=cpus, memory_bytes=memory_bytes, disk_bytes=disk_bytes, runtime=RUNTIMES[0])


def can_some_pilot_take(needs: Resources, sites: Iterable[SiteScene]) -> bool:
    """Whether the product would assign such a job to a new, empty pilot of one of the sites."""
    return IdleResources(map(_offer, sites)).any_fits(needs)


def _offer(site: SiteScene) -> Offer:
    has = capacity_of(site)
    return Offer(
        cpus=has.cpus,
        memory_bytes=has.memory_bytes,
        disk_bytes=has.disk_bytes,
        ttl_ms=round(site.life_s * 1000),
        site=site.name,
        pilot=PilotId(site.name),
        whole=has,
    )


def waiting_text(names: Mapping[str, int], wanted: Sequence[Resources], pilots: int, sites: Sequence[SiteScene]) -> str:
    """Why jobs wait: `names` has the number per job name, `pilots` how many are left."""
    if not names:
        return "no job waits"
    text = ", ".join(f"{count:,} of {name}" for name, count in list(names.items())[:TOLD_MAX])
    waits = f"{count_text(sum(names.values()), 'job waits', 'jobs wait')} that no pilot takes: {text}"
    never = next((needs for needs in wanted if not can_some_pilot_take(needs, sites)), None)
    if never is not None:
        return f"{waits}; {misfit_text(never, sites)}"
    if pilots:
        return f"{waits}; {pilots_text(sites)}; see what the jobs need in the flow"
    name = sites[0].name
    advice = f"let them live longer, with --site {name}:life=..., or replace them, with --site {name}:max=..."
    return f"{waits}; {pilots_text(sites)}, and none is left; {advice}"


def misfit_text(needs: Resources, sites: Sequence[SiteScene]) -> str:
    """What is wanted, what there is, and what to change."""
    named = [site for site in sites if needs.site in ("", site.name)]
    if not named:
        return f"it wants the site {needs.site}; add it with --site {needs.site}:pilots=8"
    more = [text for text in _missing(needs, named[0]) if text]
    advice = (
        f"give them more, with --site {named[0].name}:{','.join(more)}"
        if more
        else "simulated pilots have none of that; leave it out of the flow that you simulate"
    )
    return f"it wants {needs_text(needs)}; {pilots_text(named)}; {advice}"


def _missing(needs: Resources, site: SiteScene) -> Iterable[str]:
    """In the syntax of --site."""
    has = capacity_of(site)
    yield f"cpus={needs.cpus:g}" if needs.cpus > has.cpus else ""
    yield f"memory={needs.memory_bytes}" if needs.memory_bytes > has.memory_bytes else ""
    yield f"disk={needs.disk_bytes}" if needs.disk_bytes > has.disk_bytes else ""
    yield f"life={needs.wall_ms / 1000:g}" if site.life_s and needs.wall_ms > site.life_s * 1000 else ""


def needs_text(needs: Resources) -> str:
    return _and(
        [
            _cpus(needs.cpus),
            f"{size_text(needs.memory_bytes)} of memory" if needs.memory_bytes else "",
            f"{size_text(needs.disk_bytes)} of disk" if needs.disk_bytes else "",
            count_text(needs.gpus, "GPU") if needs.gpus else "",
            f"{duration_text(needs.wall_ms)} of time" if needs.wall_ms else "",
            f"the host {' or '.join(needs.hosts)}" if needs.hosts else "",
            needs.system,
            f"a machine of the kind {needs.machine}" if needs.machine else "",
        ]
    )


def pilots_text(sites: Sequence[SiteScene]) -> str:
    return "; ".join(f"each pilot of {site.name} has {_has(site)}" for site in sites[:TOLD_MAX])


def _has(site: SiteScene) -> str:
    has = capacity_of(site)
    life = f"{duration_text(site.life_s * 1000)} to live" if site.life_s else ""
    memory, disk = size_text(has.memory_bytes), size_text(has.disk_bytes)
    return _and([_cpus(has.cpus), f"{memory} of memory", f"{disk} of disk", life])


def _cpus(number: float) -> str:
    return f"{number:,g} {'CPU' if number == 1 else 'CPUs'}"


def _and(parts: Iterable[str]) -> str:
    *first, last = [part for part in parts if part]
    return f"{', '.join(first)} and {last}" if first else last
