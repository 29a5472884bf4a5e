"""Stores on servers against the store in memory: whatever is searched for, counted or paged through, they agree."""

import asyncio
import uuid
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mendflow.stores.contract import FieldCondition, Put, Store, StoredDocument
from mendflow.stores.memory import MemoryStore
from tests.contract.backends import Backend, Remote
from tests.property.test_store_laws import conditions, documents, fields


async def found_in(
    store: Store,
    kind: str,
    given_documents: list[dict[str, object]],
    where: list[FieldCondition],
    order_by: str,
    down: bool,
) -> object:
    await store.open()
    try:
        await store.write([Put(kind, str(n), msgspec.json.encode(each), 0) for n, each in enumerate(given_documents)])
        await store.refresh()
        found = [each.id for each in await store.search(kind, where, order_by=order_by, descending=down)]
        paged: list[StoredDocument] = []
        while page := await store.search(
            kind, where, order_by=order_by, descending=down, limit=2, after=paged[-1] if paged else None
        ):
            paged += page
        assert [each.id for each in paged] == found
        return found, await store.count(kind, where), await store.count(kind, by=order_by)
    finally:
        await store.close()


@pytest.mark.parametrize("name", ["postgresql"])
def test_a_store_on_a_server_finds_what_the_one_in_memory_finds(
    name: str, backends: Callable[[str], Backend], tmp_path: Path
) -> None:  # JS-6
    backend = backends(name)
    assert isinstance(backend, Remote)

    @settings(suppress_health_check=list(HealthCheck))
    @given(documents, st.lists(conditions, max_size=3), fields, st.booleans())
    def holds(kept: list[dict[str, object]], where: list[FieldCondition], order_by: str, down: bool) -> None:
        kind = uuid.uuid4().hex
        ours = asyncio.run(found_in(backend.make(tmp_path), kind, kept, where, order_by, down))
        assert ours == asyncio.run(found_in(MemoryStore(), kind, kept, where, order_by, down))

    holds()
