"""Jobs that use a named limit on three servers whose wall clocks jump by an hour, forward and back, while one of the
servers is killed: never more of them run than the limit allows, and all of them do."""

import asyncio

import pytest

from mendflow.core.model.errors import RequestError
from mendflow.core.model.flow import Flow, JobActivity, Parallel
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import Limits, Outcome
from mendflow.core.model.named_limits import LimitCount
from tests.services.cluster.kit import Cluster, pilot_of, run

NAMES = ("A", "B", "C")
LIMIT, JOBS = 2, 12
HOUR_MS = 3_600_000
TAKES_ROUNDS = 4
ROUNDS_MAX = 600


def licensed() -> Flow:
    limits = Limits(named=(("x", 1),))
    jobs = tuple(JobActivity(name=f"j{number}", command="true", limits=limits) for number in range(JOBS))
    return Flow(name=FlowName("licensed"), body=Parallel(name="all", branches=jobs))


@pytest.mark.parametrize("killed", NAMES)
def test_clocks_that_jump_and_a_killed_server_exceed_no_limit(killed: str) -> None:  # DU-6
    async def story(cluster: Cluster) -> None:
        servers = await cluster.start(*NAMES)
        first = servers[0]
        await first.do(first.domain.deploy(licensed()))
        await first.do(first.domain.set_limit("x", LimitCount(LIMIT), who="root"))
        case = (await first.do(first.domain.start("licensed", {}, who="me"))).id
        pilots = [
            pilot_of(cluster, *NAMES[number:], *NAMES[:number], pilot=f"p-{number}") for number in range(len(NAMES))
        ]
        most = 0
        for number in range(ROUNDS_MAX):
            if number == 6:
                cluster.servers[killed].kill()
            for server, direction in zip(servers, (1, -1, 1), strict=True):
                server.wall_shift_ms = direction * HOUR_MS * (number // 3 % 2)
            for pilot in pilots:
                over = [each.spec.item for each in pilot.held[:1]] if number % TAKES_ROUNDS == 0 else []
                try:
                    await pilot.exchange(dict.fromkeys(map(str, over), Outcome()), want=3)
                except RequestError:
                    pass  # its server has gone, and the next round finds another
                most = max(most, sum(len(each.held) for each in pilots))
            if (await cluster.document(case)).status != "running":
                break
            await asyncio.sleep(1)
        assert (await cluster.document(case)).status == "completed"
        assert most == LIMIT

    run(story)
