"""Messages from outside find their cases, survive everything, and are answered once. FM-2"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from mendflow.client.files import cases_begun_by_messages
from mendflow.core.engine.messages import Cancel
from mendflow.core.model.errors import Conflict, NotFound, RequestError, StoreUnavailable, TemporarilyUnavailable
from mendflow.core.model.flow import Activity, Call, Exit, Flow, Parallel, Scope, Throw
from mendflow.core.model.ids import CaseId, FlowName
from mendflow.core.model.principals import EVERYTHING
from mendflow.core.model.values import Value
from mendflow.services.api.domain import Domain
from mendflow.services.base.cluster import ServerDocument
from mendflow.services.cases.facts import CaseAdmission
from mendflow.services.messaging import message_router as mailroom
from mendflow.services.messaging import message_store as mail_book
from mendflow.services.messaging.message_router import MessageReply, PostReceipt
from mendflow.services.runtime.server import Server
from mendflow.stores.contract import Store, Write, WriteConflict, WriteDone
from mendflow.stores.memory import MemoryStore
from tests.core.engine.xml.conversations import on_message, process, receive, reply, said, sequence, step
from tests.patience import PATIENCE_S
from tests.services.conftest import server_on

YES = said(1, "yes")
"""What every reply here says."""


def talk(*steps: Activity) -> Flow:
    """A process that a request `begin` begins, which it answers."""
    start = receive("start", "begin", creates=True, talk="yes")
    return process(sequence("s", start, reply("welcome", "begin"), *steps))


QUESTIONS = talk(receive("asked", "ask", talk="no"), reply("told"))


class Post:
    """A mailroom in use."""

    def __init__(self, server: Server, flow: Flow, folder: Path) -> None:
        self.server = server
        self.flow = flow
        self.folder = folder

    async def send(self, operation: str, message: dict[str, Value], id: str = "") -> PostReceipt:
        self.sent = getattr(self, "sent", 0) + 1
        channel, name, router = f"link.{operation}", id or f"message {self.sent}", self.server.runtime.message_router
        return await router.post(self.flow.name, channel, message, id=name, who="ada", sight=EVERYTHING)

    async def answer(self, posted: PostReceipt) -> MessageReply:
        async with asyncio.timeout(PATIENCE_S):
            return await self.server.runtime.message_router.answer(posted.id)

    async def ask(self, operation: str, message: dict[str, Value], id: str = "") -> MessageReply:
        return await self.answer(await self.send(operation, message, id))

    async def cases(self) -> dict[str, str]:
        found = await Domain(self.server).cases(flow=self.flow.name)
        return {each.id: each.status for each in found}


async def opened(store: Store, folder: Path, flow: Flow = QUESTIONS, *, server: ServerDocument | None = None) -> Post:
    opened_server = server_on(store, folder, server=server)
    await opened_server.open()
    await Domain(opened_server).deploy(flow)
    return Post(opened_server, flow, folder)


@pytest.fixture
async def post(tmp_path: Path) -> AsyncIterator[Post]:
    made = await opened(MemoryStore(), tmp_path)
    yield made
    await made.server.close()


async def test_a_message_begins_a_case_and_is_answered_by_it(post: Post) -> None:
    answer = await post.ask("begin", said(4))
    assert answer == MessageReply(value=YES, case=CaseId("talks-soap.1"))
    assert await post.cases() == {"talks-soap.1": "running"}
    assert (await Domain(post.server).case("talks-soap.1")).owner == "ada"


async def test_a_message_goes_to_the_case_of_its_conversation(post: Post) -> None:
    for id in (4, 5, 6):
        await post.ask("begin", said(id))
    assert (await post.ask("ask", said(5))).case == "talks-soap.2"
    assert await post.cases() == {"talks-soap.1": "running", "talks-soap.2": "completed", "talks-soap.3": "running"}


async def test_a_message_that_came_too_early_waits_for_its_case(post: Post) -> None:
    early = await post.send("ask", said(9))
    other = await post.send("ask", said(8))
    await post.ask("begin", said(9))
    assert (await post.answer(early)).case == "talks-soap.1"
    waiting = asyncio.ensure_future(post.answer(other))
    await asyncio.sleep(0)
    assert not waiting.done()
    await post.ask("begin", said(8))
    assert (await waiting).case == "talks-soap.2"


async def test_a_case_that_has_heard_enough_keeps_no_message_from_the_others(tmp_path: Path) -> None:
    """It is offered the next one while it works, and listens no longer."""
    post = await opened(MemoryStore(), tmp_path, talk(receive("asked", "ask", talk="no"), reply("told"), step("work")))
    early, other = await post.send("ask", said(9)), await post.send("ask", said(8))
    await post.ask("begin", said(9))
    assert (await post.answer(early)).case == "talks-soap.1"
    await post.ask("begin", said(8))
    assert (await post.answer(other)).case == "talks-soap.2"
    await post.server.close()


async def test_the_same_message_twice_is_one_message(post: Post) -> None:
    first = await post.send("begin", said(1), "m")
    again = await post.send("begin", said(1), "m")
    assert (first.repeated, again.repeated, first.id) == (False, True, again.id)
    assert await post.answer(first) == await post.answer(again)
    assert list(await post.cases()) == ["talks-soap.1"]


async def test_the_same_message_twice_at_once_is_one_message(post: Post) -> None:
    await asyncio.gather(*(post.send("begin", said(1), "m") for _ in range(5)))
    assert list(await post.cases()) == ["talks-soap.1"]


async def test_what_nobody_ever_hears_is_refused(post: Post) -> None:
    with pytest.raises(NotFound, match=r"takes no messages on link\.tell; it has link\.ask, link\.begin"):
        await post.send("tell", said(1))
    post.flow = process(step("x"))
    with pytest.raises(NotFound, match="there is no flow 'other'"):
        await post.server.runtime.message_router.post("other", "link.tell", {}, id="m", who="ada", sight=EVERYTHING)
    with pytest.raises(NotFound, match="nothing is known of this message"):
        await post.server.runtime.message_router.answer("talks-soap/none")


async def test_what_is_no_message_of_the_flow_is_refused_before_anything_is_written(post: Post) -> None:
    with pytest.raises(RequestError, match="has no part other; it has id, text"):
        await post.send("begin", {"other": 1})
    assert await post.cases() == {}
    assert [found.id async for found in post.server.store.scan("message")] == []


async def test_what_a_case_of_an_earlier_version_refuses_is_told_and_forgotten(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    await post.ask("begin", said(1))
    monkeypatch.setattr("mendflow.services.messaging.message_router.demand_message", lambda plan, message: None)
    answer = await post.ask("ask", {"id": 1, "other": 2})
    assert answer.fault is not None and answer.fault.name == "messageRefused"
    assert await post.cases() == {"talks-soap.1": "running"}


async def test_only_so_many_messages_wait(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailroom, "WAITING_MAX", 2)
    for id in (1, 2):
        await post.send("ask", said(id), str(id))
    with pytest.raises(TemporarilyUnavailable, match=r"2 messages on link\.ask wait"):
        await post.send("ask", said(3), "3")
    assert (await post.send("ask", said(1), "1")).repeated
    await post.ask("begin", said(2))
    await post.send("ask", said(3), "3")


async def test_a_request_whose_case_fails_is_answered_with_its_fault(tmp_path: Path) -> None:
    start = receive("start", "begin", creates=True)
    post = await opened(
        MemoryStore(), tmp_path, process(sequence("s", start, Throw(name="t", fault="{urn:t}oops", message="ouch")))
    )
    answer = await post.ask("begin", said(1))
    assert answer.fault is not None and (answer.fault.name, answer.fault.message) == ("{urn:t}oops", "ouch")
    await post.server.close()


async def test_a_message_that_violates_its_set_is_answered_with_that(tmp_path: Path) -> None:
    post = await opened(MemoryStore(), tmp_path, talk(receive("again", "begin", talk="yes"), reply("r", "begin")))
    await post.ask("begin", said(1))
    answer = await post.ask("begin", said(1))
    assert answer.fault is not None and answer.fault.name == "correlationViolation"
    assert answer.case == "talks-soap.1", "it was of that case's conversation, so it began none of its own"
    await post.server.close()


async def test_a_request_whose_case_exits_or_is_removed_hears_that_the_process_was_terminated(tmp_path: Path) -> None:
    start = receive("start", "begin", creates=True, talk="yes")
    post = await opened(MemoryStore(), tmp_path, process(sequence("s", start, Exit(name="e"))))
    assert await post.ask("begin", said(1)) == MessageReply(end_fault="processTerminated", case=CaseId("talks-soap.1"))
    post.flow = process(sequence("s", start, step("a")))
    await Domain(post.server).deploy(post.flow)
    posted = await post.send("begin", said(1))
    await post.server.runtime.manager.command(CaseId("talks-soap.2"), Cancel())
    assert (await post.answer(posted)).end_fault == "processTerminated"
    await post.server.close()


async def test_a_request_that_its_case_forgot_hears_of_the_missing_reply(tmp_path: Path) -> None:
    from_inside = Scope(name="inner", body=sequence("t", receive("start", "begin", creates=True, exchange="x")))
    flow = process(sequence("s", from_inside), exchanges=("x",))
    post = await opened(MemoryStore(), tmp_path, flow)
    answer = await post.ask("begin", said(1))
    assert answer.fault is not None and answer.fault.name == "missingReply"
    await post.server.close()


async def test_one_way_messages_are_over_when_they_are_heard(tmp_path: Path) -> None:
    post = await opened(MemoryStore(), tmp_path, process(receive("start", "tell", creates=True)))
    posted = await post.send("tell", said(1))
    assert await post.answer(posted) == MessageReply(case=CaseId("talks-soap.1"))
    assert await post.cases() == {"talks-soap.1": "completed"}
    await post.server.close()


async def test_several_messages_that_begin_a_case_together_join_in_one(tmp_path: Path) -> None:
    branches = (
        sequence("s1", receive("one", "begin", creates=True, talk="join"), reply("r1", "begin")),
        sequence("s2", receive("two", "ask", creates=True, talk="join"), reply("r2")),
    )
    post = await opened(MemoryStore(), tmp_path, process(Parallel(name="p", branches=branches)))
    for operation, id in (("begin", 1), ("ask", 2), ("ask", 1), ("begin", 2)):
        assert (await post.ask(operation, said(id))).case == f"talks-soap.{id}"
    assert await post.cases() == {"talks-soap.1": "completed", "talks-soap.2": "completed"}
    await post.server.close()


async def test_a_message_without_a_conversation_goes_to_the_oldest_case_that_waits_for_any(tmp_path: Path) -> None:
    post = await opened(MemoryStore(), tmp_path, talk(receive("asked", "ask"), reply("told")))
    for id in (1, 2):
        await post.ask("begin", said(id))
    assert [(await post.ask("ask", said(7))).case for _ in range(2)] == ["talks-soap.1", "talks-soap.2"]
    await post.server.close()


async def test_a_message_that_came_while_its_case_was_suspended_and_never_heard_goes_elsewhere(tmp_path: Path) -> None:
    post = await opened(MemoryStore(), tmp_path, talk(receive("asked", "ask"), reply("told")))
    domain = Domain(post.server)
    await post.ask("begin", said(1))
    await domain.suspend("talks-soap.1", who="ada")
    posted = await post.send("ask", said(1))
    await domain.cancel("talks-soap.1", who="ada")
    await post.ask("begin", said(2))
    assert (await post.answer(posted)).case == "talks-soap.2"
    await post.server.close()


async def test_a_message_whose_case_ends_before_it_is_heard_begins_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Scope(name="inner", body=receive("start", "begin", creates=True), variables={"x": "${{ nowhere }}"})
    post = await opened(MemoryStore(), tmp_path, process(sequence("s", broken)))
    manager = post.server.runtime.manager
    monkeypatch.setattr(manager, "begin", partial(manager.begin, later=True))  # as where rules are asked first
    answer = await post.ask("begin", said(1))
    assert answer.fault is not None and answer.fault.name == "scopeInitializationFailure"
    assert await post.cases() == {"talks-soap.1": "failed"}
    await post.server.close()


async def test_a_case_that_a_message_began_is_run_again_by_a_message_alone(post: Post) -> None:
    await post.ask("begin", said(1))
    await post.ask("ask", said(1))
    with pytest.raises(Conflict, match="begins with a message: send one to /soap/flows/talks"):
        await Domain(post.server).rerun("talks-soap.1", who="ada")
    assert list(await post.cases()) == ["talks-soap.1"]


async def test_a_flow_that_begins_with_a_message_is_not_called(post: Post) -> None:
    domain = Domain(post.server)
    await domain.deploy(Flow(name=FlowName("caller"), body=Call(name="call", flow="talks")))
    case = (await domain.start("caller", {}, who="ada")).id
    async with asyncio.timeout(PATIENCE_S):
        while (ended := await domain.case(case)).status == "running":
            await asyncio.sleep(0.01)
    assert ended.fault is not None and "begins with a message" in ended.fault.message


async def test_an_event_handler_of_a_live_case_answers(tmp_path: Path) -> None:
    start = receive("start", "begin", creates=True, talk="yes")
    handlers = Scope(
        name="x", body=step("x"), messages=(on_message("ask", reply("told"), variable="question", talk="no"),)
    )
    flow = process(sequence("s", start, reply("welcome", "begin"), step("a")), scope=handlers)
    post = await opened(MemoryStore(), tmp_path, flow)
    await post.ask("begin", said(3))
    for _ in range(3):
        assert await post.ask("ask", said(3)) == MessageReply(value=YES, case=CaseId("talks-soap.1"))
    await post.server.close()


async def test_an_answer_is_found_after_a_restart_and_forgotten_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore()
    post = await opened(store, tmp_path)
    posted = await post.send("begin", said(1), "m")
    await post.answer(posted)
    await post.server.close()
    post = await opened(store, tmp_path)
    assert (await post.answer(posted)).value == YES
    assert (await post.send("begin", said(1), "m")).repeated
    monkeypatch.setattr(mail_book, "REPLIES_KEPT_MAX", 0)
    await post.ask("begin", said(2))
    with pytest.raises(NotFound):
        await post.answer(posted)
    kept = [found.id for kind in ("message", "answer") async for found in store.scan(kind)]
    assert posted.id not in kept
    await post.server.close()


async def test_whoever_waits_is_told_to_ask_again_when_everything_is_read_again(post: Post) -> None:
    early = await post.send("ask", said(1))
    waiting = asyncio.ensure_future(post.answer(early))
    await asyncio.sleep(0)
    old = post.server.runtime
    old.ledger.give_up("the disk is full")
    with pytest.raises(StoreUnavailable):
        await waiting
    async with asyncio.timeout(PATIENCE_S):
        while post.server.present is None:
            await asyncio.sleep(0.01)
    await post.ask("begin", said(1))
    assert (await post.answer(early)).case == "talks-soap.1"


async def test_conversations_go_on_where_an_archive_of_them_is_taken_in(tmp_path: Path) -> None:
    there = await opened(MemoryStore(), tmp_path / "there")
    await there.ask("begin", said(1))
    early = await there.send("ask", said(7))
    archive = await Domain(there.server).export(["talks-soap.1"], who="ada")
    here = await opened(MemoryStore(), tmp_path / "here")
    report = await Domain(here.server).import_archive(archive, resume=True, who="ada")
    assert report.imported == ["talks-soap.1"]
    assert (await here.ask("ask", said(1), "new")).case == "talks-soap.1"
    assert (await here.ask("begin", said(7), "newer")).case == "talks-soap.2"
    assert (await here.answer(early)).case == "talks-soap.2", "it came before the archive was made"
    again = await Domain(there.server).export(["talks-soap.1"], who="ada")
    with pytest.raises(Conflict, match=r"^what messages to talks began \(talks-soap.1\) is here already, with other"):
        await Domain(here.server).import_archive(again, who="ada")
    await there.server.close()
    await here.server.close()


async def test_an_archive_of_one_case_that_a_message_began_says_that_it_has_all_of_them(tmp_path: Path) -> None:
    there = await opened(MemoryStore(), tmp_path / "there")
    for id in range(12):
        await there.ask("begin", said(id))
    all_of_them = [f"talks-soap.{number}" for number in range(1, 13)]

    async def exported() -> bytes:
        return b"".join([each async for each in await Domain(there.server).export(["talks-soap.4"], who="ada")])

    async def given(content: bytes) -> AsyncIterator[bytes]:
        yield content

    archive = await exported()
    (tmp_path / "one.archive").write_bytes(archive)
    together = cases_begun_by_messages(tmp_path / "one.archive")
    assert {flow: set(cases) for flow, cases in together.items()} == {"talks": set(all_of_them)}
    here = await opened(MemoryStore(), tmp_path / "here")
    domain = Domain(here.server)
    report = await domain.import_archive(given(archive), who="ada")
    assert (report.imported, report.cases) == (all_of_them, 12)
    assert {view.id for view in await domain.cases()} == set(all_of_them)
    assert (await domain.import_archive(given(archive), who="ada")).present == all_of_them
    await there.ask("ask", said(3))
    later = await exported()
    with pytest.raises(Conflict, match=r"\(talks-soap.1, talks-soap.2, talks-soap.3 and 9 more\) is here already"):
        await domain.import_archive(given(later), who="ada")
    assert (await domain.import_archive(given(later), skip_existing=True, who="ada")).skipped == all_of_them
    await there.server.close()
    await here.server.close()


class Dying(MemoryStore):
    """Takes so many writes, and then no more: what comes after is never written. Each write counts, so that it also
    dies in the middle of what is given at once."""

    left = 1_000_000

    async def write(self, writes: Sequence[Write]) -> list[WriteDone | WriteConflict]:
        done = await super().write(writes[: self.left])
        self.left -= len(done)
        if len(done) < len(writes):
            raise StoreUnavailable("it is gone")
        return done


class DyingBetween(Dying):
    """Takes what is given at once whole or not at all, as SQLite does, which a server has for itself."""

    async def write(self, writes: Sequence[Write]) -> list[WriteDone | WriteConflict]:
        if len(writes) > self.left:
            self.left = 0
            raise StoreUnavailable("it is gone")
        return await super().write(writes)


async def converse(post: Post) -> None:
    """A whole conversation, with a message that comes too early. Who sends says the same again if unsure."""
    early = await post.send("ask", said(1), "early")
    first = await post.ask("begin", said(1), "first")
    second = await post.answer(early)
    assert first == second and first.value == YES


async def test_a_conversation_survives_a_death_between_any_two_writes(tmp_path: Path) -> None:
    deaths = 0
    for writes in range(60):
        store = Dying()
        post = await opened(store, tmp_path)
        store.left = writes
        try:
            await converse(post)
        except StoreUnavailable:
            deaths += 1
        await post.server.close()
        store.left = 1_000_000
        post = await opened(store, tmp_path)
        await converse(post)
        assert list((await post.cases()).values()) == ["completed"], f"after {writes} writes"
        await post.server.close()
    assert 5 < deaths < 60, "it died in the middle, and also not at all"


async def test_a_sender_that_leaves_while_its_case_is_admitted_leaves_no_message_behind(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a quota of cases the admission writes to the store, and takes its time."""
    admission, reached = post.server.runtime.hub.provider(CaseAdmission), asyncio.Event()
    go_on = asyncio.Event()
    assert admission is not None

    async def slowly(*_: object) -> None:
        reached.set()
        await go_on.wait()

    monkeypatch.setattr(admission, "admit", slowly)
    sending = asyncio.create_task(post.send("begin", said(1), "mine"))
    await reached.wait()
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
    go_on.set()
    again = await post.send("begin", said(1), "mine")
    assert again.repeated
    assert (await post.answer(again)).value == YES
    assert list((await post.cases()).values()) == ["running"]
