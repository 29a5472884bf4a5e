"""Where a long event was cut stands in its journal entry, so replay cuts it there, whatever work counts for by then."""

from collections.abc import Callable

import msgspec
import pytest

from mendflow.core.engine import run, snapshot
from mendflow.core.engine.messages import NOT_CUT, Event, Proceed
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Flow, ForEach, JobActivity, Sequence
from mendflow.core.model.ids import FlowName
from tests.core.engine.world import Play
from tests.core.engine.xml.papers import assign, copy, order, process

LINES = order("".join(f'<o:item sku="{at}">{"abc" * (at % 7)}</o:item>' for at in range(200)) + "<o:note>n</o:note>")
SEARCH = "count($order/o:item[. = following-sibling::o:item[1]])"


def long_search() -> Play:
    """Ten copies, each of which looks at the order for long."""
    copies = tuple(assign(copy(SEARCH, "$text"), name=f"copy-{at}") for at in range(10))
    return Play(process(Sequence(name="copies", body=copies), order=LINES))


def many_jobs() -> Play:
    each = ForEach(name="each", first=1, last=Expr("1200"), body=JobActivity(name="one", command="true"))
    return Play(Flow(name=FlowName("many"), body=each))


@pytest.fixture(params=[long_search, many_jobs])
def play(request: pytest.FixtureRequest) -> Play:
    begin: Callable[[], Play] = request.param
    begun = begin()
    while serial := begun.case.continuation:
        begun.proceed(serial)
    return begun


def test_a_long_event_says_in_the_journal_where_it_was_cut(play: Play) -> None:
    cuts = [event.cut for event in play.journal]
    assert sum(isinstance(event.fact, Proceed) for event in play.journal) >= 1
    assert all(cut > 0 for cut in cuts[:-1]) and cuts[-1] == NOT_CUT
    assert msgspec.json.decode(msgspec.json.encode(play.journal), type=list[Event]) == play.journal


@pytest.mark.parametrize(("starts", "work"), [(1, 1), (50, 20_000), (10**9, 10**9)])
def test_replay_cuts_where_it_was_cut_whatever_the_bounds_are(
    play: Play, starts: int, work: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "STARTS_MAX", starts)
    monkeypatch.setattr(run, "WORK_MAX", work)
    assert snapshot(play.replayed()) == snapshot(play.case)
