"""Each request that changes something is on record once before it is answered, whoever sent it and whatever became of
it. SE-4"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import cast

import aiohttp
import msgspec
import pytest
import yarl
from litestar.types import HTTPScope
from multidict import CIMultiDict

from mendflow.client import Client
from mendflow.core.model.access_tokens import TokenRequest
from mendflow.core.model.alerts import WebhookSpec
from mendflow.core.model.audit import AuditEntry, AuditQuery, RequestRecord
from mendflow.core.model.errors import Forbidden, NotFound, StoreUnavailable, Unauthorized
from mendflow.core.model.named_limits import LimitCount
from mendflow.core.model.principals import ADMIN, PILOT, READER, USER, Principal
from mendflow.core.model.retention import PruneRequest, PruneRule
from mendflow.core.model.secrets import SecretValue
from mendflow.core.model.views import CaseQuery, UserTaskView
from mendflow.formats import load
from mendflow.operations.table import OPERATIONS
from mendflow.server import request_audit
from mendflow.server.access import AccessControl, AccessToken, token_hash
from mendflow.server.app import create_app
from mendflow.server.audited_objects import OBJECTS
from mendflow.server.failed_attempts import AttemptThrottle
from mendflow.server.runner import HttpServer, serve
from mendflow.services.audit import audit_service
from mendflow.services.audit.audit_log import AuditLog
from mendflow.services.audit.chain_store import ChainStore
from mendflow.services.audit.unrecorded_acts import UnrecordedActs
from mendflow.stores.contract import Append, RemoveStream
from mendflow.stores.memory import MemoryStore
from tests.patience import until
from tests.server.conftest import DomainUnderTest, opened

SERVERS = "what servers show each other"
TOKENS = [
    AccessToken(name, frozenset({role}), token_hash(f"token of {name}"))
    for name, role in (("ann", ADMIN), ("bob", USER), ("eve", READER), ("p-1", PILOT))
]
FLOW = "name: greet\njobs:\n  hello: {run: echo hello}\n"


class Desk:
    """A server with its audit log, and a client for each token."""

    def __init__(self, domain: DomainUnderTest, served: HttpServer, log: AuditLog, refused: list[str]) -> None:
        self.domain, self.served, self.log, self.refused = domain, served, log, refused
        self.clients = {each.name: Client(served.url, f"token of {each.name}") for each in TOKENS}

    async def entries(self) -> list[AuditEntry]:
        return (await self.domain.find_audit(AuditQuery(limit=1000))).rows[::-1]

    async def told(self) -> list[tuple[str, str, str, str, str]]:
        return [(each.who, each.operation, each.object, each.outcome, each.code) for each in await self.entries()]


@asynccontextmanager
async def desk_of(domain: DomainUnderTest) -> AsyncIterator[Desk]:
    server = domain._server
    log = AuditLog(server.store, lambda: "alone", server.clock.now)
    refused: list[str] = []
    access = AccessControl(TOKENS, servers_token=SERVERS, failures=AttemptThrottle(refused.append))
    served = await serve(create_app(domain, access=access, let_go=domain.let_go, audit=log))
    log.start()
    desk = Desk(domain, served, log, refused)
    try:
        yield desk
    finally:
        for client in desk.clients.values():
            await client.close()
        await served.stop()
        await log.stop()


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with AsyncExitStack() as stack:
        yield await stack.enter_async_context(desk_of(await stack.enter_async_context(opened(tmp_path))))


async def test_what_changes_something_is_on_record_with_who_and_what(desk: Desk, tmp_path: Path) -> None:  # SE-4
    bob, ann = desk.clients["bob"], desk.clients["ann"]
    (tmp_path / "greet.yaml").write_text(FLOW)
    await bob.deploy(load(tmp_path / "greet.yaml"))
    case = await bob.start("greet", {})
    await ann.set_secret("api-token", SecretValue("very secret indeed"))
    await ann.cancel(case.id)
    with pytest.raises(NotFound):
        await ann.cancel("nothing")
    assert await desk.told() == [
        ("bob", "deploy", "greet", "done", ""),
        ("bob", "start", "greet", "done", ""),
        ("ann", "set_secret", "api-token", "done", ""),
        ("ann", "cancel", case.id, "done", ""),
        ("ann", "cancel", "nothing", "refused", "not-found"),
    ]
    entries = await desk.entries()
    assert entries[1].made == case.id
    assert [entry.project for entry in entries] == [*["default"] * 4, ""]
    assert {entry.source for entry in entries} == {"127.0.0.1"}
    assert len({entry.request for entry in entries}) == 5
    stored = b"".join([line async for line in desk.domain.export_audit()])
    assert b"very secret" not in stored
    assert b"echo hello" not in stored


async def test_reads_are_not_on_record_but_what_takes_much_out_is(desk: Desk, tmp_path: Path) -> None:  # SE-4
    ann = desk.clients["ann"]
    await ann.find_cases(CaseQuery())
    await ann.health()
    assert await desk.told() == []
    await ann.export(tmp_path / "all.archive", everything=True)
    await ann.export_audit(tmp_path / "audit.jsonl")
    assert [each[1] for each in await desk.told()] == ["export", "export_audit"]
    assert (tmp_path / "audit.jsonl").read_bytes().count(b"\n") == 2


async def test_what_was_refused_is_on_record_in_bounded_number(  # SE-4
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_audit, "REFUSALS_PER_S", 0.0)
    async with Client(desk.served.url, "a guess") as stranger:
        with pytest.raises(Unauthorized):
            await stranger.find_cases(CaseQuery())
    for _ in range(request_audit.REFUSALS_MAX + 20):
        with pytest.raises(Forbidden):
            await desk.clients["eve"].set_limit("x", LimitCount(1))
    told = await desk.told()
    assert told[0][1:] == ("find_cases", "", "refused", "unauthorized")
    assert set(told[1:]) == {("eve", "set_limit", "x", "refused", "forbidden")}
    assert len(told) == 1 + request_audit.REFUSALS_MAX, "who is not known is counted apart"
    await desk.clients["ann"].set_limit("x", LimitCount(1))
    assert (await desk.told())[-1][:2] == ("ann", "set_limit")


async def test_who_shows_no_token_and_only_reads_is_counted_and_not_on_record(  # SE-4
    desk: Desk, http: aiohttp.ClientSession
) -> None:
    api = f"{desk.served.url}/api/v1"
    session = {"Cookie": "mendflow_session=made-up"}
    for method, path, headers in (
        ("GET", "cases", {}),
        ("GET", "nothing/there", {}),
        ("GET", "audit/export", {}),
        ("PUT", "limits/x", {}),
        ("GET", "jobs", {"Authorization": "Bearer a guess"}),
        ("GET", "jobs", session),
    ):
        async with http.request(method, f"{api}/{path}", headers=headers) as answer:
            assert answer.status == 401, path
    assert [each[1] for each in await desk.told()] == ["export_audit", "set_limit", "find_jobs", "find_jobs"]
    assert desk.refused == ["none", "none", "none", "none", "unknown", "none", "session"]


async def test_a_file_that_was_sent_is_on_record_with_its_name(desk: Desk, tmp_path: Path) -> None:  # SE-4
    (tmp_path / "night09.csv").write_text("enough")
    await desk.clients["bob"].upload(tmp_path / "night09.csv")
    sent = hashlib.sha256(b"enough").hexdigest()
    assert await desk.told() == [("bob", "store_file", f"{sent} night09.csv", "done", "")]


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("limits/%FF", []),
        ("limits/x", [("Origin", "http://a"), ("Origin", "http://b")]),
        ("limits/x", [("Authorization", "Bearer a guess")]),
    ],
    ids=["no text", "a doubled header", "throttled"],
)
async def test_whatever_is_refused_before_it_is_let_in_is_bounded(  # SE-4
    desk: Desk, monkeypatch: pytest.MonkeyPatch, path: str, headers: list[tuple[str, str]]
) -> None:
    monkeypatch.setattr(request_audit, "REFUSALS_PER_S", 0.0)
    url = yarl.URL(f"{desk.served.url}/api/v1/{path}", encoded=True)
    async with aiohttp.ClientSession() as http:
        for _ in range(request_audit.REFUSALS_MAX + 20):
            async with http.put(url, json={"count": 1}, headers=CIMultiDict(headers)) as response:
                assert 400 <= response.status < 500
    told = await desk.told()
    assert len(told) == request_audit.REFUSALS_MAX
    assert {each[1] for each in told} == {"set_limit"}


async def test_what_a_pilot_exchanges_is_not_on_record(desk: Desk) -> None:  # SE-4
    content = b"an output"
    digest = hashlib.sha256(content).hexdigest()
    async with (
        aiohttp.ClientSession(headers={"Authorization": "Bearer token of p-1"}) as http,
        http.put(f"{desk.served.url}/api/v1/files/{digest}", data=content) as response,
    ):
        assert response.status < 300
    assert await desk.told() == []


async def test_a_request_that_a_server_forwarded_is_on_record_where_it_was_asked(desk: Desk) -> None:  # SE-4
    url = f"{desk.served.url}/api/v1/limits/x"
    async with aiohttp.ClientSession(headers={"Authorization": "Bearer token of ann"}) as http:
        for by, shown in (("server", SERVERS), ("stranger", "a guess")):
            headers = {"x-mendflow-passed-on": f"Bearer {shown}", "x-request-id": by}
            async with http.put(url, json={"count": 1}, headers=headers) as response:
                assert response.status == 200
    assert [(each.who, each.request.partition(".")[0]) for each in await desk.entries()] == [("ann", "stranger")]


async def test_who_names_a_request_gets_that_name_back_and_no_other_request_has_it(desk: Desk) -> None:  # SE-4
    url = f"{desk.served.url}/api/v1/limits/x"
    async with aiohttp.ClientSession(headers={"Authorization": "Bearer token of ann"}) as http:
        for sent in ("trace-7", "trace-7", "no\tid " + "x" * 100):
            async with http.put(url, json={"count": 1}, headers={"x-request-id": sent}) as response:
                assert response.status == 200
                given = response.headers["x-request-id"]
            assert (await desk.entries())[-1].request == given
            assert given.startswith(f"{sent}.") is (sent == "trace-7")
    assert len({each.request for each in await desk.entries()}) == 3


async def test_no_answer_says_done_if_the_record_could_not_be_written(  # SE-4
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(_: object) -> None:
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(desk.log, "_write", away)
    with pytest.raises(StoreUnavailable, match="may have been done"):
        await desk.clients["ann"].set_limit("x", LimitCount(1))


async def test_a_record_that_is_being_written_is_written_before_the_log_stops(  # SE-4
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, write = asyncio.Event(), asyncio.Event(), desk.log._write

    async def slowly(records: Sequence[RequestRecord]) -> None:
        begun.set()
        await go_on.wait()
        await write(records)

    monkeypatch.setattr(desk.log, "_write", slowly)
    done = desk.log.put(RequestRecord(who="ann", source="", operation="start", object="x"))
    await begun.wait()
    stopping = asyncio.create_task(desk.log.stop())
    await asyncio.sleep(0)
    go_on.set()
    await stopping
    assert done.done() and done.exception() is None
    assert [each.object for each in await desk.entries()] == ["x"]


async def test_a_damaged_entry_is_exported_as_it_is_and_cuts_nothing(desk: Desk) -> None:  # SE-4
    for number in range(3):
        await desk.clients["ann"].set_limit(f"limit-{number}", LimitCount(1))
    store, damaged = desk.domain._server.store, b'{"at": \xff'
    whole = await store.read("audit/alone/1", 0, 3)
    await store.write([RemoveStream("audit/alone/1"), Append("audit/alone/1", [whole[0], damaged, whole[2]], 0)])
    lines = [line async for line in ChainStore(store).export(1, 2**62)]
    assert lines == [each + b"\n" for each in (whole[0], damaged, whole[2])]
    assert [each.object for each in await desk.entries()] == ["limit-0", "limit-2"]


async def test_a_chain_that_cannot_be_read_does_not_end_the_removal_of_what_is_old(  # SE-4
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0

    async def cut() -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise msgspec.ValidationError("this is no segment")

    monkeypatch.setattr(audit_service, "CUT_EVERY_S", 0.001)
    service = audit_service.AuditService(desk.domain._server.store, lambda: "alone", lambda: 0, days=1)
    monkeypatch.setattr(service, "cut", cut)
    service.start()
    await until(lambda: calls > 1)
    await service.stop()


async def test_names_of_any_length_and_kind_stay_bounded(desk: Desk) -> None:  # SE-4
    async with (
        aiohttp.ClientSession(headers={"Authorization": "Bearer token of ann"}) as http,
        http.delete(f"{desk.served.url}/api/v1/limits/{'x' * 100}%0A{'y' * 3000}") as response,
    ):
        assert response.status >= 400
    [entry] = await desk.entries()
    assert len(entry.object) == 200
    assert entry.object.isprintable()


async def test_many_requests_at_once_are_each_there_once(desk: Desk) -> None:  # SE-4
    ann = desk.clients["ann"]
    await asyncio.gather(*(ann.set_limit(f"limit-{number}", LimitCount(1)) for number in range(100)))
    assert sorted(each.object for each in await desk.entries()) == sorted(f"limit-{number}" for number in range(100))
    [chain] = await desk.domain.verify_audit()
    assert (chain.entries, chain.problem) == (100, "")


def test_every_operation_that_changes_something_is_audited() -> None:  # SE-4
    changing = {each.name for each in OPERATIONS.values() if each.method not in ("GET", "HEAD")}
    audited = {each.name for each in OPERATIONS.values() if each.audited}
    assert changing - audited == {
        *("sync", "locate", "place", "keep_many"),  # what pilots exchange
        *(
            "forecast_results",
            "try_rule",
            "evaluate_rules",
            "replay_rules",
            "check_rules",
            "read_xrs",
            "check_flow",
        ),  # looks
        "engine_orders",
    }
    assert audited - changing == {"export", "export_audit"}


def test_every_audited_operation_names_what_it_is_about() -> None:  # SE-4
    for each in OPERATIONS.values():
        named = "{" in each.path or each.name in OBJECTS or (each.subject is not None and each.subject.is_single)
        assert named or not each.audited, each.name


async def test_entries_name_tokens_webhooks_items_and_projects(desk: Desk, tmp_path: Path) -> None:  # SE-4
    ann, bob = desk.clients["ann"], desk.clients["bob"]
    made = await ann.create_token(TokenRequest(name="night", projects={"red": "operator"}))
    await ann.add_webhook(WebhookSpec(url="https://hooks.example.org/very/secret/path"))
    (tmp_path / "greet.yaml").write_text(FLOW)
    await ann.deploy(load(tmp_path / "greet.yaml"), project="red")
    case = (await ann.start("greet", {})).id
    await ann.suspend("last", "hello")
    await ann.prune(PruneRequest(rules=[PruneRule(flow="greet", keep=1)], dry_run=True))
    await ann.export(tmp_path / "one.archive", [case])
    with pytest.raises(Forbidden):
        await bob.deploy(load(tmp_path / "greet.yaml"))
    with pytest.raises(NotFound):
        await bob.cancel(case)
    told = [(each.operation, each.object, each.project, each.made, each.outcome) for each in await desk.entries()]
    webhook = told.pop(1)
    assert webhook[:2] == ("add_webhook", "hooks.example.org") and "secret" not in str(webhook)
    assert told == [
        ("create_token", "night", "", made.view.id, "done"),
        ("deploy", "greet", "red", "", "done"),
        ("start", "greet", "red", case, "done"),
        ("suspend", f"{case}:hello", "red", case, "done"),
        ("prune", "flow=greet", "", told[4][3], "done"),
        ("export", case, "", "", "done"),
        ("deploy", "greet", "red", "", "refused"),
        ("cancel", case, "red", "", "refused"),
    ]
    found = (await desk.domain.find_audit(AuditQuery(project="red", outcome="refused"))).rows
    assert {(each.who, each.operation) for each in found} == {("bob", "deploy"), ("bob", "cancel")}


async def test_what_is_below_a_case_is_found_by_the_case_and_stored_files_can_be_left_out(  # SE-4
    desk: Desk, tmp_path: Path
) -> None:
    ann = desk.clients["ann"]
    (tmp_path / "ask.yaml").write_text("name: ask\njobs:\n  sign: {user-task: Sign it, role: user}\n")
    (tmp_path / "notes.txt").write_text("enough")
    await ann.deploy(load(tmp_path / "ask.yaml"))
    case, other = [(await ann.start("ask", {})).id for _ in range(2)]
    await ann.upload(tmp_path / "notes.txt")
    tasks = [task for task in await until(lambda: _two_tasks(ann)) if task.case == case]
    await ann.suspend(case, "sign")
    await ann.resume(case, "sign")
    await ann.complete(tasks[0].id, {})
    await ann.cancel(other)
    about = (await desk.domain.find_audit(AuditQuery(object=case))).rows[::-1]
    assert [each.operation for each in about] == ["start", "suspend", "resume", "complete"]
    assert {each.object for each in about} == {"ask", f"{case}:sign", tasks[0].id}
    assert (await desk.domain.find_audit(AuditQuery(object=case[:-1]))).rows == [], "a part of a name is no name"
    kept = [each.operation for each in (await desk.domain.find_audit(AuditQuery(without="store_file"))).rows]
    assert "store_file" in [each.operation for each in await desk.entries()]
    assert "store_file" not in kept and len(kept) == len(await desk.entries()) - 1


async def _two_tasks(client: Client) -> list[UserTaskView]:
    found = await client.worklist()
    return found if len(found) == 2 else []


def test_refusals_are_counted_for_each_caller_and_bounded_for_all(monkeypatch: pytest.MonkeyPatch) -> None:  # SE-4
    monkeypatch.setattr(request_audit, "REFUSALS_PER_S", 0.0)
    monkeypatch.setattr(request_audit, "ALL_REFUSALS_PER_S", 0.0)
    refusals = request_audit.Refusals()
    written = [refusals.admit("eve") for _ in range(3 * request_audit.REFUSALS_MAX)]
    assert written.count(0) == request_audit.REFUSALS_MAX and written[-1] is None
    assert refusals.admit("ann") == 0, "who floods the record does not keep others out of it"
    made_up = [refusals.admit(f"name-{number}") for number in range(5 * request_audit.NAMES_MAX)]
    assert len(made_up) - made_up.count(None) < request_audit.ALL_REFUSALS_MAX
    assert len(refusals._by_name) <= request_audit.NAMES_MAX
    assert len(refusals._left_out) <= request_audit.NAMES_MAX


@pytest.mark.parametrize(("who", "most"), [("", request_audit.REFUSALS_MAX), ("ann", 150)])
async def test_what_nobody_was_answered_is_bounded_for_those_who_are_not_known(  # SE-4
    monkeypatch: pytest.MonkeyPatch, who: str, most: int
) -> None:
    monkeypatch.setattr(request_audit, "REFUSALS_PER_S", 0.0)

    async def no_answer(message: object) -> None: ...

    path, store = "/api/v1/cases", MemoryStore()
    await store.open()
    log = AuditLog(store, lambda: "alone", lambda: 1_000)
    log.start()
    scope = {"method": "POST", "path": path, "raw_path": path.encode(), "headers": [], "client": ("10.0.0.7", 1)}
    audit = request_audit.RequestAudit(log, UnrecordedActs(store, lambda: "alone", lambda: 1_000))
    caller = Principal(who, frozenset({USER})) if who else None
    for _ in range(150):
        answer = audit.watch(cast("HTTPScope", dict(scope)), no_answer, caller)
        assert answer is not None
        answer.close()
    await log.stop()
    assert len([line async for line in ChainStore(store).export(1, 2**62)]) == most


async def test_a_record_that_has_not_all_that_was_done_says_so(desk: Desk) -> None:  # SE-4
    """A server that keeps no record is used on the same store: reading there leaves out nothing, changing does."""
    domain = desk.domain
    await desk.clients["ann"].set_limit("licence-x", LimitCount(1))
    served = await serve(create_app(domain, access=AccessControl(TOKENS), let_go=domain.let_go))
    ann = Client(served.url, "token of ann")
    try:
        await ann.limits()
        [chain] = await ann.verify_audit()
        assert (chain.entries, chain.unrecorded, chain.problem) == (1, 0, "")
        await ann.set_limit("licence-x", LimitCount(2))
        await ann.set_limit("licence-x", LimitCount(3))
        [chain] = await ann.verify_audit()
        assert (chain.entries, chain.unrecorded, chain.problem) == (1, 1, "") and chain.unrecorded_at > 0
    finally:
        await ann.close()
        await served.stop()
