"""The capacity to run jobs, as contexts show it: the whole, one site, and the most that one pilot could give."""

from collections.abc import Collection, Iterable

from mendflow.core.model.values import Value
from mendflow.services.scheduling.pilot_records import PilotRecord
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler


class CapacityView:
    """`domains` are the names of the domains that jobs can be submitted to; our own has none. `levels` is the number of
    retry levels."""

    def __init__(self, meta: PilotScheduler, domains: Collection[str] = (), levels: int = 0) -> None:
        self._meta = meta
        self._domains = domains
        self._levels = levels

    def capacity(self) -> dict[str, Value]:
        pilots = self._known_pilots()
        return {
            **_capacity_of(pilots),
            "waiting": len(self._meta.queue),
            "running": sum(len(pilot.held) for pilot in pilots),
            "sites": sorted({pilot.site for pilot in pilots if pilot.site}),
            "hosts": len({pilot.host for pilot in pilots if pilot.host}),
            "container_hosts": len({pilot.host for pilot in pilots if pilot.host and pilot.capacity.runtime}),
            "domains": sorted(name for name in self._domains if name),
            "levels": self._levels,
        }

    def site(self, name: str) -> dict[str, Value]:
        """One site; all pilots together if the name is empty."""
        return {
            "name": name,
            **_capacity_of([pilot for pilot in self._known_pilots() if not name or pilot.site == name]),
        }

    def _known_pilots(self) -> list[PilotRecord]:
        return [pilot for pilot in self._meta.pilots.values() if pilot.seen_at]


def _capacity_of(pilots: Iterable[PilotRecord]) -> dict[str, Value]:
    found = list(pilots)
    return {
        "pilots": len(found),
        "slots": sum(pilot.capacity.slots for pilot in found),
        "slots_free": sum(pilot.free_slots for pilot in found),
        "cpus": sum(pilot.capacity.cpus for pilot in found),
        "memory_bytes": sum(pilot.capacity.memory_bytes for pilot in found),
        "gpus": sum(pilot.capacity.gpus for pilot in found),
        "largest": {
            "cpus": max((pilot.capacity.cpus for pilot in found), default=0.0),
            "memory_bytes": max((pilot.capacity.memory_bytes for pilot in found), default=0),
            "disk_bytes": max((pilot.capacity.disk_bytes for pilot in found), default=0),
            "gpus": max((pilot.capacity.gpus for pilot in found), default=0),
        },
    }
