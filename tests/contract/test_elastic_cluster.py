"""The Elasticsearch store on three real nodes, of which the one that everything is written through is killed."""

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from mendflow.stores.contract import Append, Put, Store, WriteConflict, WriteDone
from mendflow.stores.elastic.store import ElasticStore
from tests.contract.documents import body, outcomes, put
from tests.servers import opensearch

pytestmark = [pytest.mark.opensearch, pytest.mark.law]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[opensearch.Node]]:
    nodes = opensearch.cluster(tmp_path_factory.mktemp("cluster"), 3)
    yield nodes
    for node in nodes:
        node.kill()


def store_on(nodes: list[opensearch.Node], prefix: str) -> ElasticStore:
    return ElasticStore.from_url(f"elasticsearch://{','.join(node.address for node in nodes)}/{prefix}?patience=60")


def asked(node: opensearch.Node, path: str) -> Any:
    with urllib.request.urlopen(f"http://{node.address}{path}", timeout=30) as answer:
        return json.load(answer)


def holder_of_primary(nodes: list[opensearch.Node], prefix: str) -> opensearch.Node:
    """The node whose copy decides about every write."""
    routing = asked(nodes[0], f"/_cluster/state/routing_table,nodes/{prefix}-store-1")
    (copies,) = routing["routing_table"]["indices"][f"{prefix}-store-1"]["shards"].values()
    (primary,) = [copy["node"] for copy in copies if copy["primary"]]
    transport = routing["nodes"][primary]["transport_address"]
    return next(node for node in nodes if transport.endswith(f":{node.transport_port}"))


async def test_when_the_node_that_decides_is_killed_what_it_acknowledged_stays_and_writers_go_on(
    nodes: list[opensearch.Node],
) -> None:  # JS-3
    """Sequence numbers go on under a new primary term; versions from before the kill are still what they were."""
    store = store_on(nodes, "failover")
    await store.open()
    nodes[0].wait(nodes=3, status="green")
    held = await put(store, "held", b"1")
    stale = await put(store, "stale", b"1")
    newer = await put(store, "stale", b"2", stale)
    over = asyncio.Event()

    async def write(writer: int) -> int:
        number = version = 0
        while not over.is_set():
            made = await store.write(
                [Put("job", str(writer), body(number), version), Append(f"s/{writer}", [b"%d" % number], number)]
            )
            assert outcomes(made) == ["WriteDone", "WriteDone"], f"writer {writer} at {number}: {made}"
            assert isinstance(made[0], WriteDone)
            version, number = made[0].version, number + 1
        return number

    writers = [asyncio.ensure_future(write(writer)) for writer in range(8)]
    await asyncio.wait(writers, timeout=1)
    victim = holder_of_primary(nodes, "failover")
    await asyncio.to_thread(victim.kill)
    survivor = next(node for node in nodes if node is not victim)
    await asyncio.to_thread(survivor.wait, nodes=2)
    await asyncio.wait(writers, timeout=1)
    over.set()
    for writer, numbers in enumerate(await asyncio.gather(*writers)):
        found = await store.get("job", str(writer))
        assert found is not None and json.loads(found.body) == numbers - 1
        assert await store.read(f"s/{writer}") == [b"%d" % number for number in range(numbers)]
    assert await store.write([Put("job", "stale", b"3", stale)]) == [WriteConflict("job", "stale", stale, newer)]
    assert await put(store, "held", b"2", held) > held
    await store.close()
    await asyncio.to_thread(victim.start)


async def test_servers_that_compete_while_a_node_is_killed_have_one_winner_each(nodes: list[opensearch.Node]) -> None:
    stores: list[Store] = [store_on(nodes, "contest") for _ in range(2)]
    for store in stores:
        await store.open()
    nodes[0].wait(nodes=3, status="green")
    made = await stores[0].write([Put("job", str(n), body("available"), 0) for n in range(1_000)])
    versions = [each.version for each in made if isinstance(each, WriteDone)]

    async def acquire(worker: int) -> list[int]:
        won: list[int] = []
        for start in range(0, 1_000, 10):
            some = range(start, start + 10)
            writes = [Put("job", str(n), body(worker), versions[n]) for n in some]
            result = outcomes(await stores[worker % 2].write(writes))
            won += [n for n, outcome in zip(some, result, strict=True) if outcome == "WriteDone"]
        return won

    workers = [asyncio.ensure_future(acquire(worker)) for worker in range(4)]
    await asyncio.wait(workers, timeout=0.2)
    victim = holder_of_primary(nodes, "contest")
    await asyncio.to_thread(victim.kill)
    won = await asyncio.gather(*workers)
    assert sorted(n for each in won for n in each) == list(range(1_000))
    for worker, numbers in enumerate(won):
        found = await stores[0].get_many("job", [str(n) for n in numbers])
        assert {json.loads(document.body) for document in found} <= {worker}
    for store in stores:
        await store.close()
