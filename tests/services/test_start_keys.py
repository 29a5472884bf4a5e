"""A key makes a start that is repeated the same start."""

import pytest

from mendflow.core.model.errors import Conflict
from mendflow.core.model.flow import Flow, Input, JobActivity
from mendflow.core.model.ids import ONE_REQUEST, FlowName, is_for_one_request
from mendflow.services.api.domain import Domain

MADE_UP = f"{ONE_REQUEST}{'0a' * 16}"
JOB = JobActivity(name="a", command="true")


async def deploy(domain: Domain, *names: str) -> None:
    for name in names:
        await domain.deploy(Flow(name=FlowName(name), body=JOB, inputs={"n": Input(default=0)}))


@pytest.mark.parametrize("key", ["k", MADE_UP])
async def test_the_same_key_is_the_same_case(domain: Domain, key: str) -> None:
    await deploy(domain, "f")
    one = await domain.start("f", {}, who="me", key=key)
    two = await domain.start("f", {}, who="me", key=key)
    assert one.id == two.id
    assert len(await domain.cases()) == 1


@pytest.mark.parametrize("key", ["k", MADE_UP])
async def test_a_key_that_was_used_for_something_else_is_refused(domain: Domain, key: str) -> None:
    await deploy(domain, "f")
    await domain.start("f", {"n": 1}, who="me", key=key)
    with pytest.raises(Conflict, match="take another"):
        await domain.start("f", {"n": 2}, who="me", key=key)


@pytest.mark.parametrize("key", ["k", f"{ONE_REQUEST}a-month"])
async def test_a_key_that_a_person_chose_stands_for_one_flow(domain: Domain, key: str) -> None:
    await deploy(domain, "f", "g")
    await domain.start("f", {}, who="me", key=key)
    with pytest.raises(Conflict, match="take another"):
        await domain.start("g", {}, who="me", key=key)


def test_only_what_no_person_writes_is_a_key_for_one_request() -> None:
    assert is_for_one_request(MADE_UP)
    for key in ("", "k", ONE_REQUEST, f"{ONE_REQUEST}2026-11", MADE_UP[:-1], f"{MADE_UP}0", MADE_UP.upper(), "0a" * 16):
        assert not is_for_one_request(key)
