"""Tables that are given to cases by their paths: read when a case begins, where the server may read."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from mendflow.core.model.errors import BadFlow, Forbidden, InvalidRequest, RequestError
from mendflow.core.model.flow import Flow, Input, JobActivity
from mendflow.core.model.flow_triggers import FlowTriggers, ScheduleTrigger
from mendflow.core.model.ids import FlowName
from mendflow.core.model.schedules import ScheduleSpec
from mendflow.core.model.templates import ResourceTemplates
from mendflow.core.model.values import Value
from mendflow.formats import flow_texts
from mendflow.services.api.domain import Domain
from mendflow.services.base.clock import SystemClock
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore

INPUTS = {
    "samples": Input(type="table", required=True, columns={"n": "number", "reads": "file"}),
    "depth": Input(type="number", default=3),
}


@pytest.fixture
async def domain(tmp_path: Path) -> AsyncIterator[Domain]:
    for name in ("open", "shut"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text("a")
        (tmp_path / name / "rows.csv").write_text("sample,n,reads\nx,1,a.txt\ny,2,\n")
    store = FolderFileStore(tmp_path / "files")
    store.open()
    server = Server(
        store=MemoryStore(),
        file_store=store,
        clock=SystemClock(),
        settings=ServerSettings(files_roots=(tmp_path / "open",)),
        version="test",
        read_table=flow_texts.read_table,
    )
    await server.open()
    yield Domain(server)
    await server.close()


def flow_in(folder: Path, inputs: dict[str, Value] | None = None) -> Flow:
    schedule = ScheduleTrigger(cron="0 3 * * *", inputs=inputs) if inputs is not None else None
    return Flow(
        name=FlowName("qc"),
        body=JobActivity(name="a", command="true"),
        inputs=INPUTS,
        folder=str(folder),
        triggers=FlowTriggers(schedule=schedule) if schedule is not None else None,
    )


async def test_a_schedule_gives_a_table_as_it_is_when_the_case_begins(domain: Domain, tmp_path: Path) -> None:  # DU-6
    await domain.deploy_with_triggers(flow_in(tmp_path, {"samples": "open/rows.csv"}), who="ann")
    first = (await domain.trigger_schedule("qc", who="ann")).inputs["samples"]
    assert isinstance(first, list)
    assert [(row["sample"], row["n"], bool(row["reads"])) for row in first] == [("x", 1, True), ("y", 2, False)]
    (tmp_path / "open" / "rows.csv").write_text("sample,n,reads\nz,3,a.txt\n")
    second = (await domain.trigger_schedule("qc", who="ann")).inputs["samples"]
    assert isinstance(second, list) and [row["sample"] for row in second] == ["z"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"samples": "open/none.csv"}, "there is no such file"),
        ({"samples": "open/rows.txt"}, "the input `samples` is declared as `type: table`; it must be the path of a t"),
        ({"samples": [], "depth": "deep"}, "the input `depth` is declared as `type: number`; it must be a number, not"),
        ({"samples": "shut/rows.csv"}, "may not be read by this server"),
    ],
)
async def test_what_no_case_could_be_given_is_refused_when_the_flow_is_deployed(
    domain: Domain, tmp_path: Path, given: dict[str, Value], told: str
) -> None:  # DU-6
    with pytest.raises(RequestError) as refused:
        await domain.deploy_with_triggers(flow_in(tmp_path, given), who="ann")
    assert isinstance(refused.value, BadFlow | InvalidRequest) and told in refused.value.message
    assert "on.schedule.inputs" in refused.value.message
    assert await domain.flows() == []


async def test_what_no_case_could_be_given_is_refused_when_a_schedule_is_added(domain: Domain, tmp_path: Path) -> None:
    # DU-6
    await domain.deploy(flow_in(tmp_path), who="ann")
    for given, told in (
        ({"samples": [], "depth": "deep"}, "input depth: it must be a number, not 'deep'"),
        ({"samples": 3}, "input samples: it must be the path of a table"),
        ({"samples": "open/none.csv"}, "there is no such file"),
    ):
        with pytest.raises(InvalidRequest) as refused:
            await domain.put_schedule(ScheduleSpec(name="n", flow="qc", cron="@daily", inputs=given), who="ann")
        assert told in refused.value.message
    later = {"samples": "open/rows.csv", "depth": "${{ int(schedule.date) }}"}
    assert await domain.put_schedule(ScheduleSpec(name="n", flow="qc", cron="@daily", inputs=later), who="ann")


async def test_an_amount_that_no_job_could_take_is_refused_when_a_schedule_is_set(domain: Domain) -> None:  # DU-6
    job = JobActivity(name="a", command="true", resources=ResourceTemplates(memory_bytes="${{ inputs.memory }}"))
    flow = Flow(name=FlowName("hog"), body=job, inputs={"memory": Input(default="1 GB")})
    told = r"job a: memory is '5 XB' \(from inputs.memory\); write a size"
    await domain.deploy(flow, who="ann")

    def given(memory: str) -> ScheduleSpec:
        return ScheduleSpec(name="n", flow="hog", cron="@daily", inputs={"memory": memory})

    with pytest.raises(InvalidRequest, match=told):
        await domain.put_schedule(given("5 XB"), who="ann")
    for memory in ("5 GB", "${{ schedule.date }}"):
        assert await domain.put_schedule(given(memory), who="ann")
    trigger = FlowTriggers(schedule=ScheduleTrigger(cron="@daily", inputs={"memory": "5 XB"}))
    with pytest.raises(BadFlow, match=told):
        await domain.deploy_with_triggers(replace(flow, name=FlowName("own"), triggers=trigger), who="ann")


async def test_a_table_tells_nothing_of_files_that_may_not_be_read(domain: Domain, tmp_path: Path) -> None:  # SE-1
    await domain.deploy(flow_in(tmp_path), who="ann")
    for cell in ("../shut/a.txt", "../shut/b.txt", f"{tmp_path}/shut/a.txt", "/etc/passwd", "/etc/passwort"):
        (tmp_path / "open" / "rows.csv").write_text(f"sample,n,reads\nx,1,{cell}\n")
        with pytest.raises(Forbidden, match="may not be read by this server"):
            await domain.start("qc", {"samples": "open/rows.csv"}, who="ann")
    with pytest.raises(Forbidden, match="may not be read by this server"):
        await domain.start("qc", {"samples": "shut/none.csv"}, who="ann")
