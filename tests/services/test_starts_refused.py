"""Starts that are refused, with a sentence that says why."""

from typing import Any

import pytest

from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound
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


async def test_a_case_is_run_again_with_another_flow_when_it_is_over(domain: Domain) -> None:  # DU-2
    await domain.deploy(FLOW)
    case = (await domain.start("f", {}, who="me")).id
    with pytest.raises(Conflict, match=f"case {case} has not ended, it is running: .* mendflow cancel {case} ends it"):
        await domain.start_with_flow(FLOW, {}, who="me", rerun_of=case)
    with pytest.raises(Conflict, match="has not ended"):
        await domain.rerun(case, who="me")
    await domain.cancel(case, who="me")
    more: list[dict[str, Any]] = [{"cache_from": case}, {"resume": True}]
    for also in more:
        with pytest.raises(InvalidRequest, match=r"(cache_from|resume): a case that is run again by `rerun_of`"):
            await domain.start_with_flow(FLOW, {}, who="me", rerun_of=case, **also)
    with pytest.raises(NotFound):
        await domain.start_with_flow(FLOW, {}, who="me", rerun_of="nobody-123456")
    again = await domain.start_with_flow(FLOW, {}, who="me", rerun_of=case)
    assert (again.rerun_of, again.stands_for) == (case, case)
    await domain.cancel(again.id, who="me")
    anew = await domain.start_with_flow(FLOW, {}, who="me", rerun_of=again.id, cache="none")
    assert (anew.rerun_of, anew.stands_for, anew.cache) == (again.id, again.id, "none")


async def test_a_case_is_run_again_with_the_version_that_was_deployed_since(domain: Domain) -> None:  # DU-2
    await domain.deploy(FLOW)
    case = (await domain.start("f", {}, who="me")).id
    with pytest.raises(Conflict, match="has not ended"):
        await domain.start("f", {}, who="me", rerun_of=case)
    await domain.cancel(case, who="me")
    with pytest.raises(InvalidRequest, match="cache_from: a case that is run again by `rerun_of`"):
        await domain.start("f", {}, who="me", rerun_of=case, cache_from=case)
    again = await domain.start("f", {}, who="me", rerun_of=case)
    assert (again.rerun_of, again.stands_for) == (case, case)


async def test_a_key_is_one_line_that_is_not_too_long(domain: Domain) -> None:
    await domain.deploy(FLOW)
    for key in ("k" * 100_000, "two\nlines", "k\0"):
        with pytest.raises(InvalidRequest, match="a key is one line of at most 255 characters"):
            await domain.start("f", {}, who="me", key=key)
    case = (await domain.start("f", {}, who="me", key="k" * 255)).id
    assert (await domain.start("f", {}, who="me", key="k" * 255)).id == case
    with pytest.raises(InvalidRequest, match="this has 100000"):
        await domain.send(case, "news", id="i" * 100_000)
