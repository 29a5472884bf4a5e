"""Two cases beside each other: only what differs is told."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.core.model.errors import NotFound
from mendflow.core.model.flow import ForEach, Input, JobActivity, Sequence
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.templates import ResourceTemplates
from mendflow.core.model.values import Value
from mendflow.services.api.comparison_operations import value_differences
from mendflow.services.runtime.server import ServerSettings
from mendflow.stores.memory import MemoryStore
from tests.services.recovery.kit import FAILED, World, flow

A, B = JobActivity(name="a", command="echo ${{ inputs.n }}"), JobActivity(name="b", command="true")
INPUTS = {"n": Input(), "same": Input(default=1)}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(MemoryStore(), tmp_path, ServerSettings(files_roots=None, check_ms=30))
    await world.server.open()
    yield world
    await world.server.close()


async def run(world: World, *steps: JobActivity | ForEach, n: int, **ended: Outcome) -> str:
    case = await world.start(flow(Sequence(name="s", body=steps), inputs=INPUTS), n=n)
    for _ in range(20):
        await world.pilot.sync(want=4, wait_ms=20)
        held = {str(each.spec.item): ended.get(str(each.spec.item), Outcome()) for each in world.pilot.held}
        await world.pilot.exchange(held)
        await world.quiet()
        if await world.status(case) in ("completed", "failed"):
            return case
    raise AssertionError("it does not end")


async def test_a_case_differs_in_nothing_from_one_like_it(world: World) -> None:
    one, two = await run(world, A, B, n=1), await run(world, A, B, n=1)
    seen = await world.domain.compare_cases(one, two)
    assert (seen.inputs, seen.outputs, seen.jobs, seen.flow_changed) == ([], [], [], False) and seen.is_whole


async def test_inputs_commands_and_ends_that_differ_are_told(world: World) -> None:
    one, two = await run(world, A, B, n=1), await run(world, A, B, n=2, b=FAILED)
    seen = await world.domain.compare_cases(one, two)
    assert [(each.path, each.left, each.right) for each in seen.inputs] == [("n", 1, 2)]
    told = {each.name: each for each in seen.jobs}
    assert told["a"].differences == ["command"] and told["b"].differences == ["states"]
    left, right = told["a"].left, told["a"].right
    assert left is not None and right is not None and (left.command, right.command) == ("echo 1", "echo 2")
    assert seen.statuses == ["completed", "failed"] and not seen.flow_changed


async def test_an_input_that_was_not_given_counts_as_what_the_flow_has_for_it(world: World) -> None:
    depth = {**INPUTS, "depth": Input(required=False, default=30)}
    made = flow(Sequence(name="s", body=(A,)), inputs=depth)
    one, same, two = [await world.start(made, n=1, **more) for more in ({}, {"depth": 30}, {"depth": 15})]
    assert (await world.domain.compare_cases(one, same)).inputs == []
    seen = await world.domain.compare_cases(one, two)
    assert [(each.path, each.left, each.right, each.only) for each in seen.inputs] == [("depth", 30, 15, "")]


async def test_a_changed_flow_says_so_and_what_only_one_has(world: World) -> None:
    more = JobActivity(name="a", command="true", resources=ResourceTemplates(cpus=2))
    one = await run(world, A, n=1)
    two = await run(world, more, ForEach(name="each", first=1, last=2, body=B), n=1)
    seen = await world.domain.compare_cases(one, two)
    assert seen.flow_changed
    told = {each.name: each.differences for each in seen.jobs}
    assert told["b"] == ["only-right"] and {"command", "resources"} <= set(told["a"])
    assert (await world.domain.compare_cases(two, one)).jobs[-1].differences == ["only-left"]


async def test_of_the_items_of_a_loop_those_for_the_same_element_are_compared(world: World) -> None:
    def measured(*sites: str) -> ForEach:
        body = JobActivity(name="m", command="measure ${{ site }}")
        return ForEach(name="each", items=list(sites), variable="site", body=body)

    one, two = await run(world, measured("north", "south"), n=1), await run(world, measured("east", "south"), n=1)
    assert (await world.domain.compare_cases(one, two)).jobs == []
    failed = await run(world, measured("south", "west", "north"), n=1, **{"m[2]": FAILED})
    [seen] = (await world.domain.compare_cases(one, failed)).jobs
    assert seen.left is not None and seen.right is not None
    assert (seen.left.sample, seen.right.sample, seen.differences) == ("m[0]", "m[2]", ["count", "states"])


async def test_a_case_that_is_not_there_is_not_compared(world: World) -> None:
    case = await run(world, A, n=1)
    with pytest.raises(NotFound):
        await world.domain.compare_cases(case, "none")


def test_values_are_compared_part_by_part() -> None:
    left = {"a": [1, {"b": 2}], "c": "x", "same": [1, 2], "kind": 1}
    right = {"a": [1, {"b": 3}, 4], "d": None, "same": [1, 2], "kind": True}
    assert [(each.path, each.left, each.right, each.only) for each in value_differences(left, right)] == [
        ("a[1].b", 2, 3, ""),
        ("a[2]", None, 4, "right"),
        ("c", "x", None, "left"),
        ("kind", 1, True, ""),
        ("d", None, None, "right"),
    ]


def test_a_file_is_one_value() -> None:
    left: Value = {"table": {"$file": "a1", "name": "one.csv", "bytes": 3}}
    right: Value = {"table": {"$file": "b2", "name": "two.csv", "bytes": 4}}
    [found] = value_differences(left, right)
    assert (found.path, found.left, found.right) == ("table", left["table"], right["table"])
