"""What comes for a flow is heard by cases of its project."""

import asyncio
from pathlib import Path

from mendflow.core.model.flow import Call, Flow
from mendflow.core.model.ids import CaseId, FlowName
from mendflow.services.api.domain import Domain
from mendflow.stores.memory import MemoryStore
from tests.core.engine.xml.conversations import process, receive, reply, said, sequence
from tests.patience import PATIENCE_S
from tests.services.conftest import server_on
from tests.services.messaging.test_message_router import QUESTIONS, Post


async def test_se_1_a_case_hears_nothing_of_what_comes_for_a_flow_of_another_project(tmp_path: Path) -> None:
    """A flow that is sent along may be called as that one is."""
    server = server_on(MemoryStore(), tmp_path)
    await server.open()
    domain = Domain(server)
    await domain.deploy(QUESTIONS, who="ann", project="red")
    spies = process(sequence("s", receive("asked", "ask"), reply("told")))
    outer = Flow(name=FlowName("outer"), body=Call(name="inner", flow=QUESTIONS.name), calls=(spies,))
    spy = (await domain.start_with_flow(outer, {}, who="bob", project="blue")).id
    post = Post(server, QUESTIONS, tmp_path)
    async with asyncio.timeout(PATIENCE_S):
        while not any(live.case.listeners for live in server.runtime.manager.live.values()):
            await asyncio.sleep(0)
    early = await post.send("ask", said(9))
    await post.ask("begin", said(9))
    assert (await post.answer(early)).case == CaseId("talks-soap.1")
    assert (await domain.case(spy)).status == "running"
    await server.close()
