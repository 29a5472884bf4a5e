"""Many messages that wait for nobody are in nobody's way."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from mendflow.core.engine.xml.properties import properties_of
from mendflow.core.model.errors import TemporarilyUnavailable
from mendflow.services.messaging import listeners as listening
from mendflow.services.messaging import message_router as mailroom
from mendflow.stores.memory import MemoryStore
from tests.core.engine.xml.conversations import said
from tests.services.messaging.test_message_router import YES, Post, opened

FULL = 3


@pytest.fixture
async def post(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Post]:
    """A mailroom in which as many messages wait as are kept, for cases that are not there."""
    monkeypatch.setattr(mailroom, "WAITING_MAX", FULL)
    made = await opened(MemoryStore(), tmp_path)
    for id in range(FULL):
        await made.send("ask", said(100 + id))
    yield made
    await made.server.close()


async def test_a_message_that_somebody_listens_for_is_taken_however_many_wait(post: Post) -> None:
    with pytest.raises(TemporarilyUnavailable, match=r"3 messages on link\.ask wait"):
        await post.send("ask", said(7))
    await post.ask("begin", said(7))
    assert (await post.ask("ask", said(7))).value == YES


async def test_those_that_have_waited_very_long_give_way(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailroom, "WAITING_MS_MAX", -1)
    early = await post.send("ask", said(7))
    await post.ask("begin", said(7))
    assert (await post.answer(early)).value == YES


async def test_what_a_waiting_message_says_is_looked_up_once_however_many_cases_begin(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Any] = []

    def watched(*given: Any) -> Any:
        looked.append(given)
        return properties_of(*given)

    monkeypatch.setattr(listening, "properties_of", watched)
    for id in range(5):
        await post.ask("begin", said(id))
    of_waiting = [given for given in looked if given[3]["id"] >= 100]
    assert len(of_waiting) == FULL
    assert (await post.ask("begin", said(101))).value == YES
    assert (await post.cases())["talks-soap.6"] == "completed"
