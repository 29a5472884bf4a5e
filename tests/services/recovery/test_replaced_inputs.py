"""Another file in place of an input of a job: what a repair names is what the job gets, or the repair says why not."""

from pathlib import Path
from typing import Any

import pytest

from mendflow.core.model.flow import Flow, Input, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import JobSpec
from mendflow.core.model.repair import Decision, Primitive
from mendflow.core.results.result_key import result_key
from tests.services.recovery.kit import FAILED, World, mend
from tests.services.recovery.test_primitives import apply

JOB = JobActivity(name="a", command="wc raw.csv", inputs={"raw.csv": "${{ inputs.rows[0].data }}"})
TABLE = Input(type="table", required=True, columns={"data": "file"})


async def failed_on_table(world: World, folder: Path) -> tuple[str, JobSpec]:
    """A case whose job has failed on the file that a row of its table names."""
    (folder / "raw.csv").write_text("wrong")
    made = Flow(name=FlowName("f"), body=JOB, inputs={"rows": TABLE}, folder=str(folder), on_unhandled="hold")
    case = await world.start(made, rows=[{"data": "raw.csv"}])
    await world.take()
    spec = world.pilot.held[0].spec
    await world.report(a=FAILED)
    return case, spec


async def again(world: World, case: str, source: Any, do: Primitive = Primitive.RESUBMIT) -> Decision:
    return await apply(world, case, mend(do, sources={"raw.csv": source}), item="a", wait=False)


async def test_a_path_beside_the_flow_takes_the_place_of_the_file_of_a_table(world: World, tmp_path: Path) -> None:
    # FM-8
    case, first = await failed_on_table(world, tmp_path)
    (tmp_path / "fixed.csv").write_text("right")
    await again(world, case, str(tmp_path / "fixed.csv"))
    assert await world.take() == ["a"]
    spec = world.pilot.held[0].spec
    assert await content(world, spec.inputs["raw.csv"].sha256) == b"right"
    assert not spec.replicas and result_key(spec) != result_key(first), "its result is not that of the earlier file"


async def content(world: World, digest: str) -> bytes:
    return b"".join([chunk async for chunk in world.server.file_store.read(digest)])


async def test_a_stored_file_takes_the_place_of_an_input(world: World, tmp_path: Path) -> None:
    # FM-8
    case, _ = await failed_on_table(world, tmp_path)
    (tmp_path / "fixed.csv").write_text("right")
    kept = await world.server.file_store.keep_path(str(tmp_path / "fixed.csv"))
    await again(world, case, kept.as_value())
    await world.take()
    assert world.pilot.held[0].spec.inputs["raw.csv"].sha256 == kept.sha256


async def test_what_a_url_has_is_not_what_the_job_had_before(world: World, tmp_path: Path) -> None:
    # FM-8
    case, _ = await failed_on_table(world, tmp_path)
    await again(world, case, "https://example.org/fixed.csv")
    await world.take()
    spec = world.pilot.held[0].spec
    assert not spec.inputs and spec.replicas == {"raw.csv": ("https://example.org/fixed.csv",)}


async def test_staged_again_the_content_stays_the_same(world: World, tmp_path: Path) -> None:
    # FM-8c
    case, first = await failed_on_table(world, tmp_path)
    await again(world, case, "https://example.org/mirror.csv", Primitive.RESTAGE)
    await world.take()
    assert world.pilot.held[0].spec.inputs == first.inputs


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("/nowhere/fixed.csv", "a cannot get /nowhere/fixed.csv as its input raw.csv"),
        ("lfn:/no/such", "a cannot get lfn:/no/such as its input raw.csv"),
        ("kept:12", "a stored file is given as a map"),
    ],
)
async def test_what_cannot_be_read_is_told_and_nothing_runs(
    world: World, tmp_path: Path, source: str, says: str
) -> None:
    case, _ = await failed_on_table(world, tmp_path)
    decision = await again(world, case, source)

    async def over() -> bool:
        return (await world.runtime.exceptions.decisions.get(decision.id)).state != "running"

    await world.until(over)
    assert says in (await world.runtime.exceptions.decisions.get(decision.id)).note
    assert not world.pilot.held and await world.status(case) == "running"
