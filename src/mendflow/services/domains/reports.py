"""What this domain says of itself to those that it is connected with. It is put together now and then, and only while
somebody is connected: reports age, and nothing depends on one but where work is sent next."""

from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from mendflow.core.model.domains import DomainReport
from mendflow.core.model.errors import Forbidden, RequestError
from mendflow.core.model.sites import PilotSettings
from mendflow.core.model.sync import Capacity
from mendflow.core.model.views import PilotView
from mendflow.services.base.clock import Meter
from mendflow.services.base.counters import Histogram
from mendflow.services.cases.flows import Flows
from mendflow.services.data.catalogue.catalogue import Catalogue
from mendflow.services.domains.connections import Connection, Connections
from mendflow.services.domains.peer_contacts import Contacts
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler

REPORT_MS: Final = 5_000
"""The least time between two reports to the same domain."""
FILES_MAX: Final = 1_000
FLOWS_MAX: Final = 1_000
SHAPES_MAX: Final = 20
LATELY_MS: Final = 600_000


class DomainLoad(msgspec.Struct, frozen=True, kw_only=True):
    """What the servers on the store have to do together, and which kinds of pilots sites can start."""

    waiting: int
    running: int
    startable: tuple[Capacity, ...] = ()


class RecentWaits:
    """How long jobs have waited of late, from a histogram that only grows."""

    def __init__(self, histogram: Histogram, meter: Meter) -> None:
        self._histogram = histogram
        self._meter = meter
        self._seen: deque[tuple[int, list[int]]] = deque()

    def median_ms(self) -> int:
        now, counts = self._meter(), list(self._histogram.counts)
        self._seen.append((now, counts))
        while len(self._seen) > 1 and now - self._seen[1][0] >= LATELY_MS:
            self._seen.popleft()
        before = self._seen[0][1] if len(self._seen) > 1 else [0] * len(counts)
        new = [count - earlier for count, earlier in zip(counts, before, strict=True)]
        half, passed = sum(new) / 2, 0
        if not half:
            return 0
        for count, bound in zip(new, (*self._histogram.bounds, self._histogram.bounds[-1] * 4), strict=True):
            passed += count
            if passed >= half:
                return round(bound * 1000)
        return 0


class DomainReporter:
    """`pilots` are all pilots of this domain, `load` what its servers have to do."""

    def __init__(
        self,
        *,
        connections: Connections,
        contacts: Contacts,
        catalogue: Catalogue,
        flows: Flows,
        meta: PilotScheduler,
        meter: Meter,
        version: str,
        pilots: Callable[[], Awaitable[Sequence[PilotView]]],
        load: Callable[[], Awaitable[DomainLoad]],
    ) -> None:
        self._connections = connections
        self._contacts = contacts
        self._catalogue = catalogue
        self._flows = flows
        self._meter = meter
        self._version = version
        self._pilots = pilots
        self._load = load
        self._waits = RecentWaits(meta.counts.queue_s, meter)
        self._own: DomainReport | None = None
        self.made_ms: int | None = None  # when it was put together
        self._told: dict[str, tuple[int, DomainReport]] = {}

    async def refresh(self) -> DomainReport:
        """Put the report together anew."""
        pilots = [each for each in await self._pilots() if each.state == "active"]
        load = await self._load()
        shapes = kinds_of([*(each.capacity for each in pilots), *load.startable])
        files = await self._catalogue.files.newest(FILES_MAX + 1)
        self._own = DomainReport(
            version=self._version,
            slots=sum(each.capacity.slots for each in pilots),
            slots_free=sum(each.free_slots for each in pilots),
            largest=shapes[0] if shapes else None,
            shapes=shapes,
            platforms=tuple(sorted({f"{each.system}/{each.machine}" for each in shapes if each.system})),
            elements=tuple(each.name for each in self._catalogue.elements.known()),
            logical_files=tuple(each.name for each in files[:FILES_MAX]),
            files_cut=len(files) > FILES_MAX,
            waiting=load.waiting,
            running=load.running,
            wait_ms=self._waits.median_ms(),
            charge=self._connections.own.charge,
        )
        self.made_ms = self._meter()
        return self._own

    async def current(self) -> DomainReport:
        """The report, put together anew if it is older than a few seconds."""
        if self._own is None or self.made_ms is None or self._meter() - self.made_ms >= 2 * REPORT_MS:
            return await self.refresh()
        return self._own

    def report_for(self, connection: Connection) -> DomainReport | None:
        """What this domain tells another: flows that it may start here, and whether it is about to be disconnected."""
        if self._own is None:
            return None
        return replace(
            self._own,
            flows=offered_flows((each.name for each in self._flows.all()), connection.rights.flows),
            draining=connection.draining,
        )

    # What exchanges ask and tell

    def own_report(self, domain: str) -> DomainReport | None:
        """What the other domain is told now; None if there is nothing new."""
        connection, now = self._connections.find(domain), self._meter()
        at, before = self._told.get(domain, (0, None))
        if connection is None:
            return None
        if before is not None and now - at < REPORT_MS and before.draining == connection.draining:
            return None
        report = self.report_for(connection)
        if report is not None:
            self._told[domain] = (now, report)
        return report

    def report_heard(self, domain: str, report: DomainReport | None, latency_ms: float) -> None:
        self._contacts.record_contact(domain, report, latency_ms=latency_ms)

    def exchange_failed(self, domain: str, error: RequestError) -> None:
        if isinstance(error, Forbidden):
            self._contacts.refused(domain, error.message)
        else:
            self._contacts.unreachable(domain, error.message)


def startable(pilots: PilotSettings) -> Capacity:
    """What a pilot of a site has, as far as its settings say; what they do not say counts as enough."""
    enough = 1 << 50
    return Capacity(
        slots=pilots.slots,
        cpus=pilots.cpus,
        memory_bytes=pilots.memory_bytes or enough,
        disk_bytes=pilots.disk_bytes or enough,
        gpus=pilots.gpus,
    )


def kinds_of(capacities: Iterable[Capacity]) -> tuple[Capacity, ...]:
    """The different kinds, without those that are in all respects smaller than another, the largest first."""
    different = sorted({replace(each, slots=1) for each in capacities}, key=_rank, reverse=True)
    kept: list[Capacity] = []
    for each in different:
        if not any(_covers(other, each) for other in kept):
            kept.append(each)
    return tuple(kept[:SHAPES_MAX])


def _rank(shape: Capacity) -> tuple[float, int, int, int, str, str, str]:
    return (
        shape.cpus,
        shape.memory_bytes,
        shape.gpus,
        shape.disk_bytes,
        shape.system,
        shape.machine,
        shape.runtime,
    )


def _covers(one: Capacity, other: Capacity) -> bool:
    same = (one.system, one.machine, one.runtime) == (other.system, other.machine, other.runtime)
    return (
        same
        and one.cpus >= other.cpus
        and one.memory_bytes >= other.memory_bytes
        and one.disk_bytes >= other.disk_bytes
        and one.gpus >= other.gpus
    )


def offered_flows(deployed: Iterable[str], allowed: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted(name for name in deployed if "*" in allowed or name in allowed)[:FLOWS_MAX])
