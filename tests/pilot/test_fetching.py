"""Jobs that are fetched ahead because others were short, and turn out to be long."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mendflow.core.model.ids import JobId
from tests.pilot.conftest import Pilot, Server
from tests.pilot.test_survival import waiting_command

Hire = Callable[..., Pilot]


async def after_short_ones(server: Server, commands: list[str]) -> list[JobId]:
    """Submitted at once to a pilot that has just run many short jobs, which has them all."""
    for job in [await server.shell("true") for _ in range(30)]:
        assert (await server.outcome(job)).ok
    return [await server.shell(command) for command in commands]


@pytest.mark.full
async def test_what_was_fetched_ahead_of_a_long_job_is_given_back_and_another_pilot_has_it(
    server: Server, hire: Hire, tmp_path: Path
) -> None:
    hire(work=tmp_path / "one")
    jobs = await after_short_ones(server, [waiting_command(tmp_path, f"j{number}") for number in range(4)])
    first, *others = jobs
    await server.running(first)
    await server.until(lambda: all(job in server.ledger.waiting for job in others), "the others to be given back")
    assert server.ledger.waiting == others, "in their order"
    hire(work=tmp_path / "two")
    await server.running(others[0])
    (tmp_path / "go").touch()
    for job in jobs:
        assert (await server.outcome(job)).ok
        assert len(server.ledger.accepted_fences[job]) == 1
    assert all((tmp_path / f"j{number}.starts").read_text() == "start\n" for number in range(4)), "each began once"


async def test_jobs_are_run_in_the_order_in_which_they_came(server: Server, hire: Hire, tmp_path: Path) -> None:
    hire()
    commands = [f"echo {number} >> {tmp_path}/order; sleep 0.15" for number in range(7)]
    for job in await after_short_ones(server, commands):
        assert (await server.outcome(job)).ok
    assert (tmp_path / "order").read_text().split() == [str(number) for number in range(7)]
