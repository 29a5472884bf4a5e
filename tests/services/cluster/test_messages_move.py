"""The messages of a flow have one home among several servers, and move with it. FM-2"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import pytest

from mendflow.core.model.errors import WrongServer
from mendflow.core.model.ids import CaseId
from mendflow.core.model.principals import EVERYTHING
from mendflow.services.base.cluster import SERVER_KIND
from mendflow.services.messaging.message_router import MessageReply, PostReceipt
from mendflow.stores.contract import Write
from tests.core.engine.xml.conversations import said
from tests.services.cluster.kit import Cluster, ServerProcess, run
from tests.services.messaging.test_message_router import QUESTIONS, YES

HOME = "talks-soap"


async def post(server: ServerProcess, operation: str, id: int, name: str) -> PostReceipt:
    room = server.runtime.message_router
    return await server.do(room.post("talks", f"link.{operation}", said(id), id=name, who="ada", sight=EVERYTHING))


def test_of_several_servers_one_takes_the_messages_of_a_flow() -> None:
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        await one.do(one.domain.deploy(QUESTIONS))
        posted = await post(one, "begin", 1, "m")
        assert await cluster.home(CaseId(HOME)) == "one"
        with pytest.raises(WrongServer, match="another server takes the messages of flow talks"):
            await post(two, "ask", 1, "n")
        assert (await one.do(one.runtime.message_router.answer(posted.id))).value == YES

    run(story)


def test_of_several_servers_that_are_asked_at_once_one_begins_a_case() -> None:
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        await one.do(one.domain.deploy(QUESTIONS))
        found = await asyncio.gather(post(one, "begin", 1, "m"), post(two, "begin", 1, "m"), return_exceptions=True)
        assert sorted(type(each).__name__ for each in found) == ["PostReceipt", "WrongServer"]
        cases = await one.do(one.domain.cases(flow="talks"))
        assert [case.id for case in cases] == ["talks-soap.1"]

    run(story)


def test_messages_and_conversations_go_on_where_the_home_moves_to() -> None:
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        await one.do(one.domain.deploy(QUESTIONS))
        begun = await post(one, "begin", 1, "begin")
        early = await post(one, "ask", 2, "early")
        one.kill()
        await cluster.until_home(CaseId(HOME), "two")
        room = two.runtime.message_router
        assert (await two.do(room.answer(begun.id))).value == YES
        assert (await post(two, "begin", 1, "begin")).repeated
        told = await post(two, "ask", 1, "ask")
        assert await two.do(room.answer(told.id)) == MessageReply(value=YES, case=CaseId("talks-soap.1"))
        await post(two, "begin", 2, "other")
        assert (await two.do(room.answer(early.id))).case == "talks-soap.2"

    run(story)


async def converse(server: ServerProcess) -> None:
    """A whole conversation. Who sends says the same again if unsure."""
    early = await post(server, "ask", 1, "early")
    begun = await post(server, "begin", 1, "begin")
    answers = [await server.do(server.runtime.message_router.answer(each.id)) for each in (begun, early)]
    assert [each.value for each in answers] == [YES, YES] and answers[0].case == answers[1].case


@pytest.mark.parametrize("calls", range(12))
def test_a_server_that_dies_in_the_middle_of_a_conversation_leaves_it_whole(calls: int) -> None:
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        await one.do(one.domain.deploy(QUESTIONS))
        told = 0

        async def dies(writes: Sequence[Write]) -> None:
            nonlocal told
            told += any(getattr(each, "kind", "") != SERVER_KIND for each in writes)
            if told > calls:
                one.kill()

        one.line.before = dies
        with suppress(TimeoutError):
            await asyncio.wait_for(converse(one), 3)
        one.kill()
        await asyncio.sleep(30)
        await converse(two)
        cases = await two.do(two.domain.cases(flow="talks"))
        assert [case.status for case in cases] == ["completed"]

    run(story)
