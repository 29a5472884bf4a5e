"""Starts that are refused, with a sentence that says why."""

import pytest

from mendflow.core.model.errors import InvalidRequest, NotFound
from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.services.api.domain import Domain

FLOW = Flow(name=FlowName("f"), body=JobActivity(name="a", command="true"))


async def test_a_case_whose_results_are_to_be_used_has_to_be_there(domain: Domain) -> None:  # DU-2
    await domain.deploy(FLOW)
    for nonsense in ("nobody-123456", "x" * 100_000, "../f", " "):
        with pytest.raises(NotFound, match=r"there is no case .* `mendflow cases` lists them") as told:
            await domain.start("f", {}, who="me", cache_from=nonsense)
        assert len(str(told.value)) < 200
    earlier = (await domain.start("f", {}, who="me")).id
    with pytest.raises(InvalidRequest, match="no earlier results at all: leave one away"):
        await domain.start("f", {}, who="me", cache_from=earlier, cache="none")


async def test_a_key_is_one_line_that_is_not_too_long(domain: Domain) -> None:
    await domain.deploy(FLOW)
    for key in ("k" * 100_000, "two\nlines", "k\0"):
        with pytest.raises(InvalidRequest, match="a key is one line of at most 255 characters"):
            await domain.start("f", {}, who="me", key=key)
    case = (await domain.start("f", {}, who="me", key="k" * 255)).id
    assert (await domain.start("f", {}, who="me", key="k" * 255)).id == case
    with pytest.raises(InvalidRequest, match="this has 100000"):
        await domain.send(case, "news", id="i" * 100_000)
