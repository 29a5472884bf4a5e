"""Inputs that can be had in several places: said in the flow, resolved by the engine, told to the pilot."""

from pathlib import Path

import pytest

from mendflow.core.engine import Case, decide, evolve
from mendflow.core.engine.messages import StartCase, SubmitJob
from mendflow.core.model.errors import BadFlow
from mendflow.core.model.flow import JobActivity
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import JobSpec
from mendflow.formats.yaml import read_flow

FLOW = """
name: replicas
inputs: {far: /nowhere}
steps:
  - name: reduce
    replicas:
      plate.txt: ["${{ inputs.far }}/plate.txt", "https://archive.example/plate.txt"]
      dark.txt: /calibration/dark.txt
    run: cat plate.txt dark.txt
"""


def submitted(far: str) -> JobSpec:
    """The job as it goes out when the flow is started with this input."""
    case = Case.blank()
    start = StartCase(case=CaseId("c"), flow=read_flow(FLOW, Path("replicas.yaml")), inputs={"far": far})
    orders = [order for event in decide(case, start, 1) for order in evolve(case, event)]
    (order,) = [order for order in orders if isinstance(order, SubmitJob)]
    return order.spec


def test_a_flow_says_where_an_input_can_be_had_and_the_best_place_comes_first() -> None:
    # FM-8c
    assert submitted("/mirror").replicas == {
        "plate.txt": ("/mirror/plate.txt", "https://archive.example/plate.txt"),
        "dark.txt": ("/calibration/dark.txt",),
    }


@pytest.mark.parametrize(
    ("places", "complaint"),
    [
        ("{plate.txt: []}", "at least one place"),
        ("{../plate.txt: /a}", "inside the job's folder"),
        ("[plate.txt]", "a map from paths to places"),
    ],
)
def test_places_that_make_no_sense_are_refused(places: str, complaint: str) -> None:
    with pytest.raises(BadFlow, match=complaint):
        read_flow(f"steps:\n  - run: cat plate.txt\n    replicas: {places}\n", Path("flow.yaml"))


def test_the_model_has_them_as_they_were_written() -> None:
    flow = read_flow(FLOW, Path("replicas.yaml"))
    (job,) = [each for each in getattr(flow.body, "body", ()) if isinstance(each, JobActivity)]
    assert job.replicas["dark.txt"] == ["/calibration/dark.txt"]
