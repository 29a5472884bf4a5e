"""Processes that do tasks beside the server."""

import os
from pathlib import Path

from mendflow.services.base.module_processes import NICENESS
from mendflow.services.cases.long_steps import ProcessStepRunner, StepTask


async def test_the_process_gives_way_to_all_others() -> None:  # SE-3
    runner = ProcessStepRunner()
    assert not (await runner.run(StepTask(b""))).problem
    assert runner.pid is not None
    assert os.getpriority(os.PRIO_PROCESS, runner.pid) == os.getpriority(os.PRIO_PROCESS, 0) + NICENESS
    assert session_niceness(runner.pid) in (str(NICENESS), "")
    await runner.stop()


def session_niceness(pid: int) -> str:
    """Linux counts niceness only within a session, and the process has one of its own. Empty if it counts for all."""
    found = Path(f"/proc/{pid}/autogroup")
    return found.read_text().split()[-1] if found.exists() else ""
