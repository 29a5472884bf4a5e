"""Starts that are refused, with a sentence that says why."""

from typing import Any

import msgspec
import pytest

from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound
from mendflow.core.model.flow import Call, Flow, JobActivity
from mendflow.core.model.ids import CaseId, FlowName
from mendflow.core.model.views import CaseQuery
from mendflow.services.api.domain import Domain
from mendflow.services.cases.case_starter import demand_run_again
from mendflow.services.cases.live_case import CaseDocument

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


async def test_a_case_is_run_again_by_one_of_the_same_flow(domain: Domain) -> None:  # DU-2
    await domain.deploy(FLOW)
    case = (await domain.start("f", {}, who="me")).id
    await domain.cancel(case, who="me")
    other = msgspec.structs.replace(FLOW, name=FlowName("g"))
    await domain.deploy(other)
    refused = f"case {case} is of flow f, and not of g: .* name it by `cache_from`"
    with pytest.raises(InvalidRequest, match=refused):
        await domain.start("g", {}, who="me", rerun_of=case)
    with pytest.raises(InvalidRequest, match=refused):
        await domain.start_with_flow(other, {}, who="me", rerun_of=case)
    assert not (await domain.find_cases(CaseQuery(where=f"stands_for == '{case}'"))).rows
    assert (await domain.start("g", {}, who="me", cache_from=case)).stands_for is None


async def test_a_case_of_another_project_is_not_run_again_for_administrators_either(domain: Domain) -> None:  # SE-1
    case = (await domain.start_with_flow(FLOW, {}, who="me", project="red")).id
    await domain.cancel(case, who="me")
    other = msgspec.structs.replace(FLOW, name=FlowName("g"))
    await domain.start_with_flow(other, {}, who="me", project="blue")
    asked: list[dict[str, Any]] = [{"rerun_of": case}, {"cache_from": case}]
    for earlier in asked:
        with pytest.raises(InvalidRequest, match=f"case {case} is of project red, and flow g of project blue"):
            await domain.start("g", {}, who="me", **earlier)
        with pytest.raises(InvalidRequest, match="of project blue"):
            await domain.start_with_flow(other, {}, who="me", project="blue", **earlier)


async def test_a_case_that_was_called_or_mends_another_is_not_run_again_by_itself(domain: Domain) -> None:  # DU-2
    inner = Flow(name=FlowName("f.inner"), body=JobActivity(name="a", command="true"))
    outer = Flow(name=FlowName("f"), body=Call(name="call", flow=inner.name), calls=(inner,))
    case = (await domain.start_with_flow(outer, {}, who="me")).id
    await domain.cancel(case, who="me")
    [called] = (await domain.find_cases(CaseQuery(where=f"parent == '{case}'"))).rows
    with pytest.raises(InvalidRequest, match=f"case {called.id} was called by case {case}: only a case that somebody"):
        await domain.start_with_flow(inner, {}, who="me", rerun_of=called.id)
    exlet = CaseDocument(id=CaseId(f"{case}.x1"), flow="f", digest="d", mends=CaseId(case), status="failed")
    with pytest.raises(InvalidRequest, match=rf"case {case}\.x1 mends case {case}: only a case that somebody"):
        demand_run_again(exlet, "f")
