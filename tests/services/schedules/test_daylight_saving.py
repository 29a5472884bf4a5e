"""Three servers through a night in which clocks are changed; the one that starts the first case of that hour is lost in
the middle of it. Every due time is started once."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from mendflow.core.model.schedules import ScheduleSpec
from mendflow.services.schedules.store import SCHEDULE_KIND
from mendflow.sim.machines import BEGINNING
from mendflow.stores.contract import Put, Write
from tests.services.cluster.kit import Cluster, ServerProcess, run
from tests.services.schedules.kit import EVERY_MINUTE, FLOW, cases_of

pytestmark = pytest.mark.full
NAMES = ("A", "B", "C")
LEASE_MS = 60_000


def berlin(cron: str) -> ScheduleSpec:
    return replace(EVERY_MINUTE, cron=cron, timezone="Europe/Berlin", catch_up="all", overlap="allow")


async def begin(cluster: Cluster, spec: ScheduleSpec, at: str) -> list[ServerProcess]:
    servers = await cluster.start(*NAMES, lease_ms=LEASE_MS)
    for server in servers:
        server.wall_shift_ms = int(datetime.fromisoformat(at).timestamp() * 1000) - BEGINNING
    first = servers[0]
    await first.do(first.domain.deploy(FLOW))
    await first.do(first.domain.put_schedule(spec, who="ann"))
    return servers


def lose_one(servers: Sequence[ServerProcess], lost: list[str]) -> None:
    """The first server that has decided to start a case is killed before anybody knows."""

    def trap(server: ServerProcess) -> None:
        async def dies(writes: Sequence[Write]) -> None:
            puts = [each for each in writes if isinstance(each, Put) and each.kind == SCHEDULE_KIND]
            if not lost and any(b'"starting"' in each.body for each in puts):
                lost.append(server.name)
                server.kill()
                await asyncio.sleep(1)

        server.line.before = dies

    for server in servers:
        trap(server)


@pytest.mark.parametrize(
    ("cron", "at", "minutes", "expected"),
    [
        ("30 2 * * *", "2026-03-29T00:55Z", 15, "01:00"),
        ("*/30 * * * *", "2026-03-29T00:55Z", 40, "01:00 01:30"),
        ("30 2 * * *", "2026-10-25T00:25Z", 75, "00:30"),
        ("*/30 * * * *", "2026-10-25T00:55Z", 40, "01:00 01:30"),
    ],
    ids=["daily in spring", "evenly in spring", "daily in autumn", "evenly in autumn"],
)
def test_a_night_with_a_changed_clock_and_a_lost_server_misses_nothing(
    cron: str, at: str, minutes: int, expected: str
) -> None:  # DU-6
    async def story(cluster: Cluster) -> None:
        lost: list[str] = []
        lose_one(await begin(cluster, berlin(cron), at), lost)
        await asyncio.sleep(minutes * 60)
        assert lost, "nobody was lost, so this shows nothing"
        found = [datetime.fromisoformat(str(case.inputs["at"])) for case in await cases_of(cluster.store)]
        assert sorted(f"{each.astimezone(UTC):%H:%M}" for each in found) == expected.split()

    run(story)
