"""Jobs that run nothing: they take their inputs to storage elements as they are."""  # FM-6

import pytest

from mendflow.core.engine.messages import StageFiles, SubmitJob
from mendflow.core.model.data import Publication
from mendflow.core.model.errors import BadFlow
from mendflow.core.model.flow import JobActivity
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.core.model.templates import PublicationTemplate
from mendflow.core.model.values import FileRef
from tests.core.engine.world import Play, started

REF = FileRef(sha256="0" * 64, bytes=3, name="a", logical="/store/a")


def copies(source: object, logical: str = "") -> JobActivity:
    publish = {"a": PublicationTemplate(logical=logical, element="tape")}
    return JobActivity(name="c", inputs={"a": source}, files={"a": "a"}, publish=publish, link_inputs=True)


def submitted(play: Play) -> JobSpec:
    order = play.out[play.serial("c")]
    assert isinstance(order, SubmitJob), order
    return order.spec


def test_a_logical_file_keeps_its_name_wherever_it_is_copied() -> None:  # FM-6
    play = started(copies("lfn:/store/a"))
    assert isinstance(play.out[play.serial("c")], StageFiles)
    play.finish(play.serial("c"), Outcome(files={"a": REF}))
    spec = submitted(play)
    assert spec.inputs == {"a": REF} and spec.command is None and spec.function is None
    assert spec.publish == {"a": Publication(logical="/store/a", element="tape")}


def test_a_file_of_another_job_keeps_its_name_too() -> None:  # FM-6
    assert submitted(started(copies(REF.as_value()))).publish["a"].logical == "/store/a"


def test_a_file_without_a_name_needs_one() -> None:
    nameless = FileRef(sha256="0" * 64, bytes=3, name="a").as_value()
    fault = started(copies(nameless)).ended.fault
    assert fault is not None and "has no logical name; give it one" in fault.message
    assert submitted(started(copies(nameless, "/store/b"))).publish["a"].logical == "/store/b"


def test_an_input_by_url_is_fetched_by_the_pilot_itself() -> None:  # FM-6
    spec = submitted(started(copies("s3://bucket/a", "/store/b")))
    assert spec.replicas == {"a": ("s3://bucket/a",)} and not spec.inputs


@pytest.mark.parametrize(
    "nothing",
    [
        JobActivity(name="c", inputs={"a": "x"}),
        JobActivity(name="c", inputs={"a": "x"}, files={"a": "a"}),
        JobActivity(name="c", inputs={"b": "x"}, files={"a": "a"}, publish={"a": PublicationTemplate(logical="/a")}),
    ],
)
def test_a_job_that_neither_runs_nor_copies_is_refused(nothing: JobActivity) -> None:
    with pytest.raises(BadFlow, match="a command or a function"):
        started(nothing)


def test_a_job_with_a_command_must_name_what_it_publishes() -> None:
    with pytest.raises(BadFlow, match="cannot be published as ''"):
        started(JobActivity(name="c", command="x", files={"a": "a"}, publish={"a": PublicationTemplate(logical="")}))
