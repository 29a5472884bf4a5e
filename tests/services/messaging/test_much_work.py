"""A process that works long on its data leaves room for others, and a restart does not do all of it again."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from mendflow.core.engine import evolve
from mendflow.core.engine.messages import Event
from mendflow.core.engine.state import Case
from mendflow.core.model.expr import XPATH, Expr
from mendflow.core.model.flow import Assign, Flow, While
from mendflow.core.model.ids import CaseId
from mendflow.services.cases import event_recorder, journals
from mendflow.services.cases.live_case import SNAPSHOT_KIND, journal_of
from mendflow.stores.contract import Put, Write, WriteConflict, WriteDone
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
    monkeypatch.setattr(event_recorder, "SNAPSHOT_EVERY_WORK", 100_000)
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


async def test_a_large_state_is_kept_less_often_than_a_small_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody's commits wait while a state is written."""
    monkeypatch.setattr(event_recorder, "SNAPSHOT_EVERY_WORK", 100_000)
    kept: list[int] = []

    class WatchedStore(MemoryStore):
        async def write(self, writes: Sequence[Write]) -> list[WriteDone | WriteConflict]:
            kept.extend(len(each.body) for each in writes if isinstance(each, Put) and each.kind == SNAPSHOT_KIND)
            return await super().write(writes)

    counts = list[int]()
    for number, text in enumerate(("small", "large" * 100_000)):
        kept.clear()
        post = await opened(WatchedStore(), tmp_path / str(number), COUNTING)
        answer = await post.ask("begin", said(1, text))
        assert answer.value == {"id": 3000, "text": "yes"}
        counts.append(len(kept))
        await post.server.close()
    assert counts[0] >= 3 and counts[1] == 1, counts
