"""How many live cases one start may have: what is refused, with what advice, and what is counted when."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mendflow.core.model.errors import QuotaExceeded, RequestError
from mendflow.core.model.flow import Activity, Call, Flow, ForEach, JobActivity
from mendflow.core.model.flow import Sequence as Chain
from mendflow.core.model.ids import CaseId, FlowName, JobId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.named_limits import LimitDocument
from mendflow.core.model.projects import ProjectSettings, Quotas, quota_name
from mendflow.core.model.views import CaseView
from mendflow.core.scheduling.limit_decisions import Grantor
from mendflow.services.api.domain import Domain
from mendflow.services.base.case_trees import LiveCaseTable
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.cases.unstarted_cases import has_begun
from mendflow.services.messaging.ports.cases import Requester
from mendflow.services.runtime.server import Server
from mendflow.services.scheduling import case_quota
from mendflow.services.scheduling.case_quota import EndedCases
from mendflow.services.scheduling.limit_store import LIMIT_KIND
from mendflow.stores.contract import StoredDocument, Write, WriteConflict, WriteDone
from mendflow.stores.memory import MemoryStore
from tests.patience import until
from tests.services.conftest import HandPilot, server_on

WAITS = Flow(name=FlowName("waits"), body=JobActivity(name="j", command="true"))


def calls(name: str, times: int) -> ForEach:
    return ForEach(name="each", first=1, last=times, body=Call(name="call", flow=name))


async def started(domain: Domain, body: Activity, project: str = "red") -> CaseId:
    await domain.deploy(WAITS, project=project)
    await domain.deploy(Flow(name=FlowName("caller"), body=body), project=project)
    return CaseId((await domain.start("caller", {}, who="ann")).id)


async def ended(domain: Domain, case: CaseId) -> CaseView:
    async def is_over() -> bool:
        return (await domain.case(case)).status not in ("running", "suspended")

    await until(is_over, f"{case} has ended")
    return await domain.case(case)


async def bound(domain: Domain, cases: int) -> None:
    await domain.set_project("red", ProjectSettings(quotas=Quotas(cases=cases)), who="root")


async def until_cases(domain: Domain, cases: int) -> None:
    async def reached() -> bool:
        return (await domain.project("red")).used.cases == cases

    await until(reached, f"{cases} cases are counted")


# One start


@pytest.fixture
async def small(tmp_path: Path) -> Any:
    server = server_on(MemoryStore(), tmp_path, cases_per_start=12)
    await server.open()
    yield server
    await server.close()


async def test_a_flow_that_calls_itself_many_times_at_once_fails_within_the_bound(
    small: Server, monkeypatch: pytest.MonkeyPatch
) -> None:  # SE-3
    counts, put = [0], LiveCaseTable.__setitem__

    def counted(table: Any, id: CaseId, case: Any) -> None:
        put(table, id, case)
        counts.append(len(table))

    monkeypatch.setattr(LiveCaseTable, "__setitem__", counted)
    domain = Domain(small)
    case = await started(domain, calls("caller", 3))
    view = await ended(domain, case)
    assert view.status == "failed" and view.fault is not None and view.fault.name == "callFailed"
    assert f"more than the 12 that {case} may have at once" in view.fault.message
    for advice in ("does a flow call itself without end?", "max-parallel", "mendflow serve --cases-per-start N"):
        assert advice in view.fault.message
    await until(lambda: not small.runtime.manager.live, "nothing of it is live")
    assert max(counts) == 12
    for each in await domain.cases():
        assert await has_begun(small.store, CaseId(each.id)), "a call that was refused leaves no trace"
    assert small.health().status == "ok"


async def test_the_bound_is_of_live_cases_and_of_one_start(small: Server) -> None:  # SE-3
    domain, pilot = Domain(small), HandPilot(Domain(small))
    cases = [await started(domain, calls("waits", 11)) for _ in range(2)]
    await until(lambda: len(small.runtime.manager.live) == 24, "both have all that they may have")
    await pilot.run_all(lambda _: Outcome())
    assert [(await ended(domain, case)).status for case in cases] == ["completed", "completed"]
    each = ForEach(name="each", first=1, last=30, max_parallel=4, body=Call(name="call", flow="waits"))
    many = await started(domain, each)
    await pilot.run_all(lambda _: Outcome())
    assert (await ended(domain, many)).status == "completed", "those that have ended do not count"


async def test_a_tree_that_was_full_before_a_restart_goes_on_after_it(tmp_path: Path) -> None:  # SE-3
    store = MemoryStore()
    first = server_on(store, tmp_path, cases_per_start=12)
    await first.open()
    case = await started(Domain(first), calls("waits", 11))
    await until(lambda: len(first.runtime.manager.live) == 12, "it has all that it may have")
    await first.close()
    await store.open()
    second = server_on(store, tmp_path, cases_per_start=5)  # what has begun goes on, also beyond a smaller bound
    await second.open()
    await HandPilot(Domain(second)).run_all(lambda _: Outcome())
    assert (await ended(Domain(second), case)).status == "completed"
    await second.close()


async def test_what_a_case_starts_at_a_port_of_the_server_is_bound_too(tmp_path: Path) -> None:  # SE-3
    server = server_on(MemoryStore(), tmp_path, cases_per_start=3)
    await server.open()
    case = await started(Domain(server), WAITS.body)
    live, ports = server.runtime.manager.live[case], server.runtime.messaging._cases

    def request(serial: int) -> Awaitable[CaseDocument]:
        return ports.begin(WAITS, {}, Requester(live=live, serial=serial, link="l", port="jobs"))

    done = await asyncio.gather(*(request(serial) for serial in range(100, 110)), return_exceptions=True)
    refused = [each for each in done if isinstance(each, RequestError)]
    assert len(refused) == 8 and len(server.runtime.manager.live) == 3
    assert f"a request to the port jobs would be one case more than the 3 that {case} may have" in refused[0].message
    begun = next(each for each in done if isinstance(each, CaseDocument))
    assert await request(int(begun.id.rpartition(".")[2])) == begun, "one that has begun is found again"
    await server.close()


# The quota of the project


async def test_called_cases_count_in_the_quota_of_cases(domain: Domain, pilot: HandPilot) -> None:  # SE-6
    await bound(domain, 3)
    case = await started(domain, calls("waits", 2))
    await until_cases(domain, 3)
    with pytest.raises(QuotaExceeded, match=f"no case is started: .* 3 of 3 are in use .by {case}"):
        await domain.start("waits", {}, who="ann")
    await pilot.run_all(lambda _: Outcome())
    assert (await ended(domain, case)).status == "completed"
    await until_cases(domain, 0)


async def test_a_call_beyond_the_quota_fails_with_what_to_do_and_leaves_no_trace(
    server: Server, domain: Domain
) -> None:  # SE-6
    await bound(domain, 3)
    case = await started(domain, calls("waits", 5))
    view = await ended(domain, case)
    assert view.status == "failed" and view.fault is not None
    assert "no case is called: the quota of project red for cases: " in view.fault.message
    assert "max-parallel" in view.fault.message
    assert "an administrator raises it: mendflow admin projects set red --cases N" in view.fault.message
    assert len(await domain.cases()) <= 3
    await until_cases(domain, 0)


async def test_what_is_counted_of_called_cases_survives_a_restart(
    server: Server, domain: Domain, restart: Callable[[Server], Awaitable[None]]
) -> None:  # SE-6
    await bound(domain, 10)
    case = await started(domain, calls("waits", 4))
    await until_cases(domain, 5)
    await restart(server)
    await until_cases(domain, 5)
    await domain.cancel(case, who="ann")
    await until_cases(domain, 0)


class DiskLikeStore(MemoryStore):
    """Others have the loop while it writes, as with a disk; limits are listed when `lists` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.lists = asyncio.Event()
        self.lists.set()

    async def write(self, writes: Sequence[Write]) -> list[WriteDone | WriteConflict]:
        await asyncio.sleep(0)
        return await super().write(writes)

    async def scan(self, kind: str, prefix: str = "") -> AsyncIterator[StoredDocument]:
        if kind == LIMIT_KIND:
            await self.lists.wait()
        async for each in super().scan(kind, prefix):
            yield each


async def test_calls_at_once_are_not_a_write_each(tmp_path: Path) -> None:  # SE-6
    server = server_on(DiskLikeStore(), tmp_path)
    await server.open()
    domain = Domain(server)
    await bound(domain, 100)
    before = await server.store.get(LIMIT_KIND, quota_name("red", "cases"))
    await started(domain, calls("waits", 60))
    await until_cases(domain, 61)
    after = await server.store.get(LIMIT_KIND, quota_name("red", "cases"))
    assert before is not None and after is not None and after.version - before.version < 20
    await server.close()


async def test_a_look_gives_no_place_to_calls_that_are_not_admitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # SE-6
    counts, put = [0], LiveCaseTable.__setitem__

    def counted(table: Any, id: CaseId, case: Any) -> None:
        put(table, id, case)
        counts.append(len(table))

    monkeypatch.setattr(LiveCaseTable, "__setitem__", counted)
    store = DiskLikeStore()
    server = server_on(store, tmp_path)
    await server.open()
    domain, pilot = Domain(server), HandPilot(Domain(server))
    await bound(domain, 3)
    each = ForEach(name="each", first=1, last=60, tolerate=60, body=Call(name="call", flow="waits"))
    case = await started(domain, Chain(name="s", body=(JobActivity(name="first", command="true"), each)))
    store.lists.clear()
    looking = asyncio.create_task(server.runtime.limits._look())
    await pilot.run_all(lambda _: Outcome())
    await until(lambda: server.runtime.limits._live.in_tree(case) == 61, "all calls ask for their places")
    store.lists.set()
    await looking

    async def all_asked() -> bool:
        return server.runtime.limits._live.in_tree(case) == server.runtime.limits._live.begun_in_tree(case)

    await until(all_asked, "each was admitted or refused")
    assert max(counts) == 3
    held = server.runtime.limits.store.documents[quota_name("red", "cases")]
    assert sum(hold.amount for hold in held.holds.values()) <= 3
    await domain.cancel(case, who="ann")
    await until_cases(domain, 0)
    await server.close()


def test_what_many_trees_have_is_one_change_of_the_quota(monkeypatch: pytest.MonkeyPatch) -> None:  # SE-6
    changes = [0]

    def counted(*args: Any, **fields: Any) -> Any:
        changes[0] += 1
        return replace(*args, **fields)

    monkeypatch.setattr(case_quota, "replace", counted)
    grantor, trees = Grantor("s", 1_000), {CaseId(f"f-{number}"): number for number in range(50)}
    first = case_quota.with_trees(LimitDocument(name="q", count=9), trees, grantor, 5)
    assert changes == [1] and {id: hold.amount for id, hold in first.holds.items()} == {
        JobId(id): cases for id, cases in trees.items() if cases
    }
    assert case_quota.with_trees(first, trees, grantor, 6) is first and first.freed_at == 0
    less = case_quota.with_trees(first, {CaseId("f-1"): 0, CaseId("f-2"): 1, CaseId("f-0"): 3}, grantor, 7)
    assert changes == [2] and less.freed_at == 7 and "f-1" not in less.holds
    assert [(less.holds[JobId(id)].amount, less.holds[JobId(id)].since) for id in ("f-2", "f-0")] == [(1, 5), (3, 7)]


# The table


class Counted:
    def __init__(self, project: str) -> None:
        self.counted_project = project


def test_a_case_that_is_about_to_begin_has_its_place_already() -> None:  # SE-3
    table: LiveCaseTable[Counted] = LiveCaseTable()
    root, called = CaseId("f-1"), CaseId("f-1.2")
    table[root] = Counted("red")
    table.reserve(called)
    table.reserve(called)
    assert (table.in_tree(root), table.begun_in_tree(called)) == (2, 1)
    table[called] = Counted("red")
    table.release(called)
    assert (table.in_tree(root), table.begun_in_tree(root)) == (2, 2)
    table.reserve(CaseId("f-1.3"))
    assert table.trees("red") == {root: 2}, "what is not admitted holds nothing"
    ended = EndedCases(table)
    ended.add(CaseId("f-1.4"), "red")
    assert ended.trees() == {quota_name("red", "cases"): {root: 2}}
    table.release(CaseId("f-1.3"))
    table[CaseId("f-1.2:mend")] = Counted("")
    assert table.trees("red") == {root: 2} and table.trees("blue") == {}
    del table[called]
    assert table.pop(CaseId("f-1.9"), None) is None
    table.pop(root)
    assert table.in_tree(root) == 0 and table.trees("red") == {}


def test_each_case_that_a_message_has_started_is_a_tree_of_its_own() -> None:  # SE-3
    table: LiveCaseTable[Counted] = LiveCaseTable()
    for id in ("f-soap.1", "f-soap.2", "f-soap.2.7"):
        table[CaseId(id)] = Counted("red")
    assert table.trees("red") == {"f-soap.1": 1, "f-soap.2": 2}
