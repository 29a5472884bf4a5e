"""A process that works long on its data leaves room for others, and a restart does not do all of it again."""

from pathlib import Path

import pytest

from mendflow.core.engine import evolve
from mendflow.core.engine.messages import Event
from mendflow.core.engine.state import Case
from mendflow.core.model.expr import XPATH, Expr
from mendflow.core.model.flow import Assign, Flow, While
from mendflow.core.model.ids import CaseId
from mendflow.services.cases import flow_manager, journals
from mendflow.services.cases.live_case import SNAPSHOT_KIND, journal_of
from mendflow.stores.memory import MemoryStore
from tests.core.engine.xml.conversations import process, put, receive, reply, said, sequence
from tests.services.messaging.test_message_router import opened

LOOP = While(
    name="count",
    condition=Expr("$answer.id < 3000", language=XPATH),
    body=Assign(name="next", xml=(put("answer", "id", "$answer.id + 1"),)),
)
COUNTING: Flow = process(
    sequence(
        "s",
        receive("start", "begin", creates=True, talk="yes"),
        LOOP,
        reply("counted", "begin"),
        receive("asked", "ask", talk="no"),
        reply("told"),
    )
)


async def test_long_work_comes_in_pieces_and_is_kept_as_it_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow_manager, "SNAPSHOT_EVERY_WORK", 100_000)
    store = MemoryStore()
    post = await opened(store, tmp_path, COUNTING)
    assert (await post.ask("begin", said(1))).value == {"id": 3000, "text": "yes"}
    assert await store.get(SNAPSHOT_KIND, "talks-soap.1") is not None
    journal = await store.read(journal_of(CaseId("talks-soap.1")), 0)
    assert len(journal) > 5
    await post.server.close()

    done: list[int] = []

    def watched(case: Case, event: Event) -> object:
        orders = evolve(case, event)
        done.append(case.meter.work)
        return orders

    monkeypatch.setattr(journals, "evolve", watched)
    again = await opened(store, tmp_path, COUNTING)
    assert sum(done) < 200_000, "what was kept is not done again"
    assert (await again.ask("ask", said(1), "another")).value == {"id": 3000, "text": "yes"}
    await again.server.close()
