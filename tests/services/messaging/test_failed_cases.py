"""What is done about failures of cases that messages began: they are not run again, nor do they go on."""

import asyncio
from pathlib import Path

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.jobs import Outcome
from mendflow.services.api.domain import Domain
from mendflow.stores.memory import MemoryStore
from tests.core.engine.xml.conversations import said, step
from tests.patience import PATIENCE_S
from tests.services.conftest import HandPilot
from tests.services.messaging.test_message_router import opened, talk


async def test_failures_of_a_case_that_a_message_began_are_refused_with_the_reason(tmp_path: Path) -> None:  # EX-7
    post = await opened(MemoryStore(), tmp_path, talk(step("work")))
    server = post.server
    await post.send("begin", said(1))
    fault = Fault(name="exit", category=Category.JOB, message="it ended with exit code 3", exit_code=3)
    await HandPilot(Domain(server)).run_all(lambda spec: Outcome(fault=fault))
    async with asyncio.timeout(PATIENCE_S):
        while await post.cases() != {"talks-soap.1": "failed"}:
            await asyncio.sleep(0.01)
    await server.runtime.ledger.settled()
    [group] = await Domain(server).failures()
    assert (group.unhandled, (await Domain(server).failure(group.id)).open_failed) == (1, 0)
    applied = await Domain(server).apply_rules(group.id, who="ada", retry=True)
    [(failure, reason)] = applied.refused.items()
    assert failure.startswith("talks-soap.1/") and "was begun by a message" in reason
    await server.close()
