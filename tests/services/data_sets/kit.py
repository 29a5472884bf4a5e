"""What tests of data sets are made of: a house, files in its catalogue, and flows of one job."""

import hashlib

import msgspec

from mendflow.core.model.data import LogicalFile, Replica
from mendflow.core.model.data_sets import DataSetSpec, Gathering
from mendflow.core.model.flow import Flow, Input, JobActivity
from mendflow.core.model.ids import CaseId, FlowName
from mendflow.services.cases.live_case import CaseDocument
from mendflow.stores.contract import FieldCondition, Put, Store

EACH = Flow(name=FlowName("each"), inputs={"file": Input(required=True)}, body=JobActivity(name="work", command="true"))
MERGE = Flow(
    name=FlowName("merge"), inputs={"files": Input(required=True)}, body=JobActivity(name="work", command="true")
)


def logical(name: str, data_set: str = "raw", size: int = 10) -> LogicalFile:
    digest = hashlib.sha256(name.encode()).hexdigest()
    replicas = (Replica(element="disk"),)
    return LogicalFile(
        name=f"/store/{name}", sha256=digest, bytes=size, data_set=data_set, added_at=1, replicas=replicas
    )


async def catalogued(store: Store, *files: LogicalFile) -> None:
    """As a catalogue does whose server was lost before it told anybody."""
    await store.write([Put("file", file.name, msgspec.json.encode(file), 0) for file in files])


def wish(*rules: Gathering, name: str = "raw", after: tuple[str, ...] = ()) -> DataSetSpec:
    return DataSetSpec(name=name, gatherings=rules, after=after)


async def cases_of(store: Store, flow: str = "") -> list[CaseDocument]:
    """The cases that data sets have started."""
    await store.refresh()
    found = await store.search(
        "case", [FieldCondition("flow", flow)] if flow else [], order_by="started_at", limit=1000
    )
    cases = [msgspec.json.decode(each.body, type=CaseDocument) for each in found]
    return [case for case in cases if not case.void and case.key.startswith("set/")]


def names_in(case: CaseDocument) -> list[str]:
    given = case.inputs.get("files") or [case.inputs["file"]]
    return [file["logical"].removeprefix("/store/") for file in given]


def ids(cases: list[CaseDocument]) -> list[CaseId]:
    return [case.id for case in cases]
