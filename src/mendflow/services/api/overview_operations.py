"""The part of the domain that shows everything at a glance."""

from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from mendflow.core.model.errors import NotFound
from mendflow.core.model.ids import PilotId
from mendflow.core.model.overview import CasesPerHour, FailureTrend, OverviewView, Recoveries, WaitingReason
from mendflow.core.model.principals import EVERYTHING, Sight
from mendflow.core.model.views import PilotView
from mendflow.lazy import LazyModule
from mendflow.services.api.alert_operations import AlertOperations
from mendflow.services.api.paced_answers import PacedAnswers
from mendflow.services.cluster.overview import ClusterOverview
from mendflow.services.runtime.server import Server

if TYPE_CHECKING:
    from mendflow.services.api import overview
else:
    overview = LazyModule("mendflow.services.api.overview")

ALERTS_SHOWN: Final = 20


class _Stored(NamedTuple):
    """What the store says, which all servers on it would say alike."""

    cases: dict[str, int]
    inner: dict[str, int]
    per_hour: CasesPerHour
    failures: list[FailureTrend]
    recovered: Recoveries
    waiting: list[WaitingReason]


class OverviewOperations(AlertOperations):
    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self._stored: PacedAnswers[_Stored] = PacedAnswers(server.meter)
        self._overviews: PacedAnswers[OverviewView] = PacedAnswers(server.meter)

    async def overview(self, *, sight: Sight = EVERYTHING) -> OverviewView:
        """What the queue and the pilots of this server do, and what the store says of all."""
        return await self._overviews.get(sight, lambda: self._overview_of(sight))

    # Pilots that are to become empty

    async def drain_pilot(self, pilot: str, *, who: str, reason: str = "") -> PilotView:
        await self._known_pilot(pilot)
        await self._server.runtime.drains.drain(PilotId(pilot), by=who, reason=reason)
        return await self._known_pilot(pilot)

    async def resume_pilot(self, pilot: str, *, who: str) -> PilotView:
        await self._known_pilot(pilot)
        await self._server.runtime.drains.resume(PilotId(pilot))
        return await self._known_pilot(pilot)

    async def _known_pilot(self, pilot: str) -> PilotView:
        """As it is here, whichever server it talks to."""
        everywhere = ClusterOverview(self._server.membership, self._server.peers, self._server.meter)
        for each in await everywhere.pilots(self._server.runtime.meta.pilot_views()):
            if each.id == pilot:
                return replace(each, drained=self._server.runtime.drains.sentence(each.id))
        raise NotFound(f"there is no pilot {pilot!r:.80}; `mendflow pilots` lists them")

    async def _overview_of(self, sight: Sight) -> OverviewView:
        since = overview.first_hour(self._server.clock.now())
        stored = await self._stored.get((sight, since), lambda: self._count(sight, since))
        runtime, now = self._server.runtime, self._server.clock.now()
        queue = overview.QueueOverview(runtime, sight, now)
        return OverviewView(
            since=since,
            cases=stored.cases,
            inner=stored.inner,
            jobs=queue.counts(),
            waiting=[*queue.reasons(), *stored.waiting],
            failures=stored.failures,
            recovered=stored.recovered,
            pilots=overview.pilot_totals(runtime),
            sites=await overview.site_totals(runtime),
            alerts=await self.alerts(limit=ALERTS_SHOWN, sight=sight),
            per_hour=stored.per_hour,
        )

    async def _count(self, sight: Sight, since: int) -> _Stored:
        store, failures = await self._read(), overview.RecentFailures(since, self._server.runtime.manager)
        await failures.read(store, sight)
        cases, inner = await overview.count_cases_by_status(store, sight)
        return _Stored(
            cases=cases,
            inner=inner,
            per_hour=await overview.count_cases_per_hour(store, sight, since),
            failures=failures.causes(),
            recovered=failures.recoveries(),
            waiting=await overview.waiting_for_people(store, sight),
        )
