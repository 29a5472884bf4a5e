"""Processes that do tasks beside the server."""

import asyncio
import os
from pathlib import Path

import pytest

from mendflow.services.base import module_processes
from mendflow.services.base.module_processes import NICENESS
from mendflow.services.cases.long_steps import ProcessStepRunner, StepTask
from tests.patience import until


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


async def test_a_session_that_may_not_be_told_now_is_told_later(monkeypatch: pytest.MonkeyPatch) -> None:  # SE-3
    told = list[str]()

    def write(path: Path, text: str) -> int:
        told.append(f"{path} {text}")
        if len(told) < 3:
            raise BlockingIOError
        return len(text)

    monkeypatch.setattr(Path, "write_text", write)
    monkeypatch.setattr(module_processes, "BETWEEN_SESSIONS_S", 0.0)
    module_processes._let_session_give_way(os.getpid())
    await until(lambda: len(told) == 3)
    await asyncio.sleep(0)
    assert told == [f"/proc/{os.getpid()}/autogroup {NICENESS}"] * 3
