"""What a pilot offers, and whether a job fits.

A pilot that prefetches short jobs runs them one after another, so they share the same resources: each must fit into
what is free, and all together into that times the pilot's `rounds`."""

from collections.abc import Hashable, Iterable, Iterator
from typing import TypeVar

import msgspec

from mendflow.core.model.ids import PilotId
from mendflow.core.model.jobs import Resources
from mendflow.core.model.platforms import suits
from mendflow.core.model.sync import Capacity
from mendflow.core.scheduling.limit_levels import LimitRoom

CPU_GRAIN = 1e-6
"""Tolerance: ten tenths of a cpu fit into one despite floating point."""

FOREVER_MS = 1 << 62

Kind = TypeVar("Kind", bound=Hashable)


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """What is free in a pilot now. `ttl_ms` is how long it will still live, 0: no limit. `whole` is everything that it
    has when empty; with it and the pilot's name, the queue can keep the pilot free for a large job. `host` is where the
    pilot runs: jobs may avoid it. `idle_ms` is how long it counts as idle when it gets less than it would take.
    `limits` is what is free of named limits; None: they do not count, as in a question about pilots alone.
    `projects` are those that it works for; None: all."""

    cpus: float
    memory_bytes: int
    disk_bytes: int
    gpus: int = 0
    ttl_ms: int = 0
    site: str = ""
    host: str = ""
    rounds: int = 1
    pilot: PilotId = PilotId("")
    whole: Capacity | None = None
    idle_ms: int = 0
    limits: LimitRoom | None = None
    projects: frozenset[str] | None = None


def is_picky(needs: Resources) -> bool:
    """Whether more matters to a job than amounts: the machine, what runs containers there, or named limits."""
    return bool(
        needs.avoid_hosts or needs.hosts or needs.system or needs.machine or needs.runtimes or needs.named_limits
    )


def why_unsuitable(needs: Resources, host: str, system: str, machine: str, runtime: str) -> str:
    """Why a job may not go to such a machine; empty if it may. An unknown host, as of a pilot that a batch system is
    still to start, counts as permitted."""
    if host in needs.avoid_hosts:
        return f"it avoids {host}"
    if needs.hosts and host and host not in needs.hosts:
        return f"it is bound to {', '.join(needs.hosts)}"
    if needs.system and system != needs.system:
        return f"it needs {needs.system}"
    if needs.machine and not suits(machine, needs.machine):
        return f"it needs a machine of the kind {needs.machine}"
    if needs.runtimes and runtime not in needs.runtimes:
        return f"its container needs {' or '.join(needs.runtimes)}"
    return ""


class FreeResources:
    """What is left of an offer while jobs are taken for it. `whole` has its platform, if known."""

    __slots__ = ("cpus", "disk", "gpus", "host", "limits", "machine", "memory", "projects", "runtime", "system", "ttl")

    def __init__(
        self,
        cpus: float,
        memory: int,
        disk: int,
        gpus: int,
        ttl: int,
        host: str,
        whole: Capacity | None = None,
        limits: LimitRoom | None = None,
        projects: frozenset[str] | None = None,
    ) -> None:
        self.cpus = cpus + CPU_GRAIN
        self.memory = memory
        self.disk = disk
        self.gpus = gpus
        self.ttl = ttl or FOREVER_MS
        self.host = host
        self.system = whole.system if whole is not None else ""
        self.machine = whole.machine if whole is not None else ""
        self.limits = limits
        self.projects = projects
        self.runtime = whole.runtime if whole is not None else ""

    def fits(self, needs: Resources) -> bool:
        return (
            needs.cpus <= self.cpus
            and needs.memory_bytes <= self.memory
            and needs.disk_bytes <= self.disk
            and needs.gpus <= self.gpus
            and needs.wall_ms <= self.ttl
            and (self.projects is None or needs.project in self.projects)
            and (not is_picky(needs) or self.suits(needs))
        )

    def suits(self, needs: Resources) -> bool:
        """Whether a job may go to this machine, however much is free on it, and has what it uses of named limits."""
        if needs.named_limits and self.limits is not None and not self.limits.fits(needs.named_limits):
            return False
        return not why_unsuitable(needs, self.host, self.system, self.machine, self.runtime)

    def shrink(self, needs: Resources) -> None:
        self.cpus -= needs.cpus
        self.memory -= needs.memory_bytes
        self.disk -= needs.disk_bytes
        self.gpus -= needs.gpus
        if needs.named_limits and self.limits is not None:
            self.limits.take(needs.named_limits)


def free_for_one(offer: Offer) -> FreeResources:
    """What one job may use at most."""
    return FreeResources(
        offer.cpus,
        offer.memory_bytes,
        offer.disk_bytes,
        offer.gpus,
        offer.ttl_ms,
        offer.host,
        offer.whole,
        offer.limits,
        offer.projects,
    )


def free_in_total(offer: Offer) -> FreeResources:
    """What all jobs of one match may use together."""
    n, ttl, host, limits = offer.rounds, offer.ttl_ms, offer.host, offer.limits
    cpus, memory, disk, gpus = offer.cpus * n, offer.memory_bytes * n, offer.disk_bytes * n, offer.gpus * n
    return FreeResources(cpus, memory, disk, gpus, ttl, host, offer.whole, limits, offer.projects)


def free_when_empty(offer: Offer) -> FreeResources | None:
    """What one job may use when everything that runs in the pilot now has ended."""
    whole = offer.whole
    if whole is None or not offer.pilot:
        return None
    return FreeResources(
        whole.cpus,
        whole.memory_bytes,
        whole.disk_bytes,
        whole.gpus,
        offer.ttl_ms,
        offer.host,
        whole,
        offer.limits,
        offer.projects,
    )


_Kind = tuple[Capacity, frozenset[str] | None]


class IdleResources:
    """The resources of all pilots when empty, by site; equal ones count as one. A pilot's host matters only for jobs
    that avoid hosts. Pilots are examined only until one fits, so that with very many of them a question costs as much
    as with few."""

    def __init__(self, offers: Iterable[Offer]) -> None:
        self._offers = iter(offers)
        self._by_size: dict[str, dict[_Kind, FreeResources]] = {}
        self._by_host: dict[str, dict[tuple[str, _Kind], FreeResources]] = {}

    def any_fits(self, needs: Resources) -> bool:
        """Whether some pilot could ever take such a job."""
        if any(room.fits(needs) for room in self._known(needs)):
            return True
        return any(needs.site in ("", site) and room.fits(needs) for site, room in self._further())

    def _known(self, needs: Resources) -> Iterable[FreeResources]:
        if needs.avoid_hosts or needs.hosts:
            return self._by_host.get(needs.site, {}).values()
        return self._by_size.get(needs.site, {}).values()

    def _further(self) -> Iterator[tuple[str, FreeResources]]:
        """Pilots that were not examined yet, with their sites."""
        for offer in self._offers:
            room = free_when_empty(offer)
            if room is None or offer.whole is None:
                continue
            for site in {"", offer.site}:
                kind = (offer.whole, offer.projects)
                _keep_longest_lived(self._by_size.setdefault(site, {}), kind, room)
                _keep_longest_lived(self._by_host.setdefault(site, {}), (offer.host, kind), room)
            yield offer.site, room


def _keep_longest_lived(rooms: dict[Kind, FreeResources], kind: Kind, room: FreeResources) -> None:
    """Of equal pilots, the one that lives longest can take whatever the others can."""
    known = rooms.get(kind)
    if known is None or known.ttl < room.ttl:
        rooms[kind] = room
