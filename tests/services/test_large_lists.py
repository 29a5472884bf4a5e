"""Cases with large inputs are listed in pieces, and without these. SE-3"""

from typing import Any

import pytest

from mendflow.core.model.flow import Flow, Input, Wait
from mendflow.core.model.ids import FlowName
from mendflow.services.api.domain import Domain
from mendflow.services.base import paging
from mendflow.services.base.cluster import CASE_KIND
from mendflow.stores.memory import MemoryStore

LARGE = "a" * 100_000
FLOW = Flow(
    name=FlowName("large"),
    inputs={"s": Input(type="string"), "n": Input(type="number")},
    body=Wait(name="wait", duration=3_600_000),
)


async def test_a_list_leaves_large_inputs_out_and_says_so(domain: Domain) -> None:
    await domain.deploy(FLOW)
    small = (await domain.start("large", {"s": "short", "n": 1}, who="ann")).id
    large = (await domain.start("large", {"s": LARGE, "n": 2}, who="ann")).id
    listed = {each.id: each for each in await domain.cases()}
    assert (listed[large].inputs, listed[large].left_out) == ({"n": 2}, ["inputs.s"])
    assert (listed[small].inputs, listed[small].left_out) == ({"s": "short", "n": 1}, [])
    whole = await domain.case(large)
    assert (whole.inputs, whole.left_out) == ({"s": LARGE, "n": 2}, [])


async def test_large_documents_are_read_a_few_at_a_time(domain: Domain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "FIRST_PAGE", 4)
    monkeypatch.setattr(paging, "PAGE_BYTES", 250_000)
    await domain.deploy(FLOW)
    ids = {(await domain.start("large", {"s": LARGE, "n": number}, who="ann")).id for number in range(9)}
    limits: list[int] = []
    search = MemoryStore.search

    async def noted(store: MemoryStore, kind: str, *given: Any, **more: Any) -> Any:
        limits.extend([more["limit"]] if kind == CASE_KIND else [])
        return await search(store, kind, *given, **more)

    monkeypatch.setattr(MemoryStore, "search", noted)
    assert {each.id for each in await domain.cases()} == ids
    assert limits[0] == 4 and set(limits[1:]) == {2}
