"""Several servers hear of the same files, and are lost in the middle: every file is in one batch, every batch one
case."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace

from mendflow.core.model.data import StorageElement
from mendflow.core.model.data_sets import Gathering
from mendflow.core.model.flow_triggers import EndNotice, FileArrival, FlowTriggers
from mendflow.core.model.jobs import Outcome
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.data.sets.store import journal_of
from mendflow.stores.contract import Append, Write
from tests.services.cluster.kit import Cluster, ServerProcess, pilot_of, run
from tests.services.data_sets.kit import EACH, MERGE, cases_of, logical, names_in, wish

NAMES = ("A", "B", "C")
BY_TWO = Gathering(name="merge", flow="merge", count=2)
FOR_EACH = Gathering(name="each", flow="each", count=1)


async def started(cluster: Cluster, count: int, flow: str = "") -> list[CaseDocument]:
    async def enough() -> list[CaseDocument]:
        found = await cases_of(cluster.store, flow)
        return found if len(found) >= count else []

    await cluster.until(enough, f"{count} cases", 120.0)
    await asyncio.sleep(20)
    found = await cases_of(cluster.store, flow)
    assert len(found) == count
    return found


def tell(server: ServerProcess, name: str, data_set: str = "raw") -> asyncio.Task[None]:
    return asyncio.create_task(server.do(server.runtime.data_sets.added(logical(name, data_set))))


def test_a_file_that_several_servers_tell_of_at_once_starts_one_case() -> None:  # PJ-9
    async def story(cluster: Cluster) -> None:
        first, *others = await cluster.start(*NAMES)
        await first.do(first.domain.deploy(EACH))
        await first.do(first.runtime.data_sets.define(wish(FOR_EACH), who="me"))
        servers = [first, *others]
        await asyncio.gather(*(tell(server, name) for name in ("a", "b", "c") for server in servers))
        found = await started(cluster, 3)
        assert sorted(map(names_in, found)) == [["a"], ["b"], ["c"]]

    run(story)


def test_files_that_come_to_several_servers_are_gathered_together() -> None:  # PJ-9
    async def story(cluster: Cluster) -> None:
        first, *others = await cluster.start(*NAMES)
        await first.do(first.domain.deploy(MERGE))
        await first.do(first.runtime.data_sets.define(wish(BY_TWO), who="me"))
        servers = [first, *others]
        await asyncio.gather(*(tell(servers[number % 3], f"f{number}") for number in range(9)))
        last = others[-1]
        await last.do(last.runtime.data_sets.close("raw", who="me"))
        found = await started(cluster, 5)
        assert Counter(name for case in found for name in names_in(case)) == Counter(f"f{n}" for n in range(9))
        assert sorted(len(names_in(case)) for case in found) == [1, 2, 2, 2, 2]

    run(story)


def test_what_one_server_deploys_happens_at_all_until_another_removes_it() -> None:
    async def story(cluster: Cluster) -> None:
        first, second, third = await cluster.start(*NAMES)
        await first.do(first.domain.put_element(StorageElement(name="drop", url="file:///drop"), who="ann"))
        notices = (EndNotice(on=("failed",), notify=("http://127.0.0.1:1/x",)),)
        triggers = FlowTriggers(files=FileArrival(input="file", element="drop"), notices=notices)
        await first.do(first.domain.deploy_with_triggers(replace(EACH, triggers=triggers), who="ann"))

        async def known() -> bool:
            return all(server.runtime.triggers.of("each") == triggers for server in (second, third))

        await cluster.until(known, "the others to know of the triggers")
        assert third.runtime.triggers.receivers("each", "failed") == ["http://127.0.0.1:1/x"]
        await second.do(second.domain.remove_flow("each", who="ann"))

        async def gone() -> bool:
            return not any(server.runtime.triggers.watches() or server.runtime.flows.all() for server in (first, third))

        await cluster.until(gone, "the others to know of no flow")

    run(story)


def _case_begins(writes: Sequence[Write]) -> bool:
    return any(isinstance(each, Append) and each.stream.startswith("case/") for each in writes)


def _case_is_told(writes: Sequence[Write]) -> bool:
    return any(
        isinstance(each, Append) and each.stream == journal_of("raw") and b'"started"' in each.entries[0]
        for each in writes
    )


@pytest.mark.parametrize("moment", [_case_begins, _case_is_told])
def test_a_batch_whose_maker_is_lost_is_started_by_another(moment: Callable[[Sequence[Write]], bool]) -> None:  # PJ-9
    async def story(cluster: Cluster) -> None:
        first, *_ = await cluster.start(*NAMES)
        await first.do(first.domain.deploy(EACH))
        await first.do(first.runtime.data_sets.define(wish(FOR_EACH), who="me"))

        async def dies(writes: Sequence[Write]) -> None:
            if moment(writes):
                first.kill()
                await asyncio.sleep(1)  # as long as it takes to be dead

        first.line.before = dies
        told = tell(first, "a")
        [case] = await started(cluster, 1)
        assert names_in(case) == ["a"]
        assert not first.process.alive
        told.cancel()
        pilot = pilot_of(cluster, "B", "C")

        async def over() -> bool:
            await pilot.sync(want=1)
            if pilot.held:
                await pilot.exchange({"work": Outcome()})
            [case] = await cases_of(cluster.store)
            return case.status == "completed"

        await cluster.until(over, "the end", 300.0)

    run(story)


def test_a_set_closes_after_another_whose_cases_ended_on_other_servers() -> None:  # PJ-9
    async def story(cluster: Cluster) -> None:
        servers = await cluster.start(*NAMES)
        first, second, third = servers
        await first.do(first.domain.deploy(EACH))
        await first.do(first.domain.deploy(MERGE))
        await first.do(first.runtime.data_sets.define(wish(FOR_EACH), who="me"))
        after = wish(BY_TWO, name="merged", after=("raw",))
        await second.do(second.runtime.data_sets.define(after, who="me"))
        await asyncio.gather(*(tell(server, f"f{n}") for n, server in enumerate(servers)))
        await third.do(third.runtime.data_sets.close("raw", who="me"))
        pilot = pilot_of(cluster, *NAMES)

        async def over() -> bool:
            await pilot.sync(want=0 if pilot.held else 1)
            for held in pilot.held:
                case = await cluster.document(held.job.partition("/")[0])
                if case.flow == "each":
                    await tell(first, f"of-{names_in(case)[0]}", "merged")
            if pilot.held:
                await pilot.exchange({"work": Outcome()})
            view = await third.do(third.runtime.data_sets.view("merged"))
            return view.state == "over"

        await cluster.until(over, "the end", 300.0)
        merged = await cases_of(cluster.store, "merge")
        assert Counter(name for case in merged for name in names_in(case)) == Counter(f"of-f{n}" for n in range(3))

    run(story)
