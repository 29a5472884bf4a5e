"""Messages reach flows of the sender's own projects alone."""

from pathlib import Path

import pytest

from mendflow.core.model.errors import NotFound
from mendflow.core.model.principals import Sight
from mendflow.services.api.domain import Domain
from mendflow.stores.memory import MemoryStore
from tests.services.conftest import server_on
from tests.services.messaging.test_message_router import QUESTIONS, YES


async def test_a_flow_of_another_project_is_as_unknown_as_one_that_is_not_there(tmp_path: Path) -> None:  # SE-2
    server = server_on(MemoryStore(), tmp_path)
    await server.open()
    try:
        await Domain(server).deploy(QUESTIONS, project="red")
        router, sentences = server.runtime.message_router, list[str]()
        for flow in (QUESTIONS.name, "nobody"):
            with pytest.raises(NotFound) as refused:
                await router.post(flow, "link.begin", YES, id="m", who="eve", sight=Sight(frozenset({"blue"})))
            sentences.append(refused.value.message.replace(QUESTIONS.name, "nobody"))
        assert sentences[0] == sentences[1]
        assert not await Domain(server).cases()
        await router.post(QUESTIONS.name, "link.begin", YES, id="m", who="vic", sight=Sight(frozenset({"red"})))
        assert [each.project for each in await Domain(server).cases()] == ["red"]
    finally:
        await server.close()
