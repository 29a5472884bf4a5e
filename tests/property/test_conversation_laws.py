"""Conversations with BPEL cases, whatever is said in whichever order, and whoever dies meanwhile. FM-2"""

import asyncio
import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.engine.messages import Resume, SetTimer, SubmitJob, Suspend
from mendflow.core.engine.xml.listeners import match_kind
from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.flow import Catch, Empty, Flow, ForEach, OnAlarm, Parallel, Pick, Scope
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.values import Value
from mendflow.core.model.xml import Initiate, ScopeDeclarations, XmlType
from mendflow.services.base.cluster import ServerDocument
from tests.core.engine.world import Play
from tests.core.engine.xml.conversations import (
    ID,
    QUESTION,
    answered,
    deep,
    on_message,
    process,
    receive,
    reply,
    said,
    sequence,
    step,
)
from tests.patience import PATIENCE_S
from tests.services.messaging.test_message_router import Dying, DyingBetween, Post, opened

initiates: st.SearchStrategy[Initiate] = st.sampled_from(["yes", "join", "no"])
OWN = ScopeDeclarations(
    types={"question": XmlType(message=QUESTION)}, correlation_sets={"own": (ID,)}, exchanges=("inner",)
)


@st.composite
def processes(draw: st.DrawFn) -> Flow:
    """A process that many messages may go to at once, some of them by several ways."""
    sets = [draw(initiates) for _ in range(4)]
    turns = ForEach(
        name="turns",
        first=1,
        last=draw(st.integers(0, 3)),
        parallel=draw(st.booleans()),
        body=Scope(
            name="turn", body=sequence("t", receive("asked", "ask", talk=sets[0]), step("think"), reply("told"))
        ),
    )
    pick = Pick(
        name="pick",
        messages=(
            on_message("tell", step("b"), aside=sets[1]),
            on_message("tellDeep", step("c"), talk=sets[2]),
        ),
        alarms=(OnAlarm(duration=1_000, body=step("late")),),
    )
    handler = on_message(
        "begin",
        sequence("h", step("e"), reply("r", "begin", exchange="inner")),
        declared=OWN,
        exchange="inner",
        own="yes",
    )
    guarded = Scope(
        name="guarded",
        body=Parallel(name="p", branches=(turns, pick) if draw(st.booleans()) else (pick, turns)),
        messages=(handler,),
        catches=(Catch(fault=None, body=Empty(name="e0")),) if draw(st.booleans()) else (),
    )
    start = receive("start", "tell", creates=True, talk="yes", aside=sets[3] if sets[3] != "no" else "yes")
    return process(sequence("s", start, guarded))


messages = st.tuples(st.sampled_from(["tell", "ask", "begin", "tellDeep"]), st.integers(1, 2))
actions = st.lists(
    st.one_of(messages, st.sampled_from(["done", "ring", "hold", "go", "crash", "snapshot"])), max_size=30
)


def spoken(operation: str, id: int) -> dict[str, Value]:
    return deep(id) if operation == "tellDeep" else said(id)


def say(play: Play, operation: str, id: int, name: str) -> None:
    channel, message = f"link.{operation}", spoken(operation, id)
    expected = match_kind(play.case, channel, message)
    running = play.status == "running"
    play.send(channel, message, id=name)
    if running and not play.case.over:
        waits = name in play.case.messages_waiting()
        assert waits == (expected == "no"), (
            f"{operation} {id}: {expected}, and then it {'waits' if waits else 'is taken'}"
        )


def act(play: Play, action: str) -> None:
    jobs = [order.serial for order in play.out.values() if isinstance(order, SubmitJob)]
    if action == "done" and jobs and play.status == "running":
        play.finish(jobs[0], Outcome())
    elif (
        action == "ring" and play.status == "running" and any(isinstance(each, SetTimer) for each in play.out.values())
    ):
        play.ring()
    elif action == "hold" and play.status == "running":
        play.do(Suspend())
    elif action == "go" and play.status == "suspended":
        play.do(Resume())
    elif action in ("crash", "snapshot"):
        play.crash(with_snapshot=action == "snapshot")


@given(processes(), actions)
def test_a_message_is_taken_exactly_where_somebody_was_said_to_take_it(
    flow: Flow, script: list[tuple[str, int] | str]
) -> None:
    play = Play(flow)
    for place, each in enumerate(script):
        if play.case.over:
            break
        if isinstance(each, tuple):
            say(play, *each, name=f"m{place}")
        else:
            act(play, each)
    play.crash(with_snapshot=False)
    assert max(Counter(answered(play)).values(), default=1) == 1, "no message is answered twice"


async def converse(
    post: Post, script: list[tuple[str, int]], dies: list[int], store: Dying, server: ServerDocument | None
) -> Post:
    """Say all that is to be said, each thing until it is known to be on disk, to a server that dies now and then."""
    for place, (operation, id) in enumerate(script):
        store.left = dies[place % len(dies)] if dies else store.left
        while True:
            try:
                await post.send(operation, said(id), f"message {place}")
                break
            except StoreUnavailable:
                store.left = 1_000_000
                await post.server.close()
                post = await opened(store, post.folder, server=again(server))
    return post


def again(server: ServerDocument | None) -> ServerDocument | None:
    """The same server, in its next life."""
    return ServerDocument(id=server.id, url="") if server is not None else None


@given(
    st.lists(st.tuples(st.sampled_from(["begin", "ask"]), st.integers(1, 2)), max_size=12),
    st.lists(st.integers(1, 12), max_size=4),
    st.booleans(),
)
def test_every_message_that_begins_a_case_begins_one_and_every_other_goes_to_one(
    script: list[tuple[str, int]], dies: list[int], shared: bool
) -> None:
    """A store that others may open is used so that it may die anywhere; one that a server has for itself takes what is
    given at once whole, or not at all."""

    async def story(folder: str) -> None:
        store = Dying() if shared else DyingBetween()
        server = ServerDocument(id="one", url="") if shared else None
        post = await opened(store, Path(folder), server=server)
        post = await converse(post, script, dies, store, server)
        store.left = 1_000_000
        await post.server.close()
        post = await opened(store, Path(folder), server=again(server))
        await asyncio.sleep(0)
        said_so = Counter(script)
        ended = sum(min(said_so["begin", id], said_so["ask", id]) for id in (1, 2))
        begun = said_so["begin", 1] + said_so["begin", 2]
        async with asyncio.timeout(PATIENCE_S):
            while Counter((await post.cases()).values())["completed"] < ended:
                await asyncio.sleep(0.01)
        assert Counter((await post.cases()).values()) == +Counter({"completed": ended, "running": begun - ended})
        await post.server.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(story(folder))
