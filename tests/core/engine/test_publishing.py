"""What the engine makes of a job's publications: every expression resolved, every name one that can be."""

import pytest

from mendflow.core.engine.messages import SubmitJob
from mendflow.core.model.data import Publication
from mendflow.core.model.errors import BadFlow
from mendflow.core.model.flow import JobActivity, Scope, Sequence
from mendflow.core.model.jobs import Outcome, Resources
from mendflow.core.model.templates import PublicationTemplate, ResourceTemplates
from mendflow.core.model.values import FileRef
from tests.core.engine.world import Play, started


def job(logical: str, element: str = "", data_set: str = "") -> JobActivity:
    published = PublicationTemplate(logical=logical, element=element, data_set=data_set)
    return JobActivity(name="a", command="x", files={"t": "t.csv"}, publish={"t": published}, link_inputs=True)


def in_scope(body: JobActivity, **variables: object) -> Play:
    return started(Scope(name="s", variables=dict(variables), body=body))


def test_a_job_is_told_where_its_files_go() -> None:  # FM-6
    play = in_scope(job("lfn:/store/${{ run }}/t", "${{ where }}", "set-${{ run }}"), run=7, where="near")
    order = play.out[play.serial("a")]
    assert isinstance(order, SubmitJob)
    assert order.spec.publish == {"t": Publication(logical="/store/7/t", element="near", data_set="set-7")}
    assert order.spec.link_inputs


@pytest.mark.parametrize("run", ["..", "a/../..", "%2e%2e", "a\0b", "", "x\\y", "é", "a::b"])
def test_a_name_that_would_lead_elsewhere_is_a_fault_of_the_flow(run: str) -> None:  # PJ-7
    play = in_scope(job("/store/${{ run }}/t"), run=run)
    assert play.ended.fault is not None and play.ended.fault.name == "invalidExpressionValue"
    assert "cannot be published" in play.ended.fault.message


def test_a_published_file_is_passed_on_with_its_name() -> None:  # FM-6
    after = JobActivity(name="b", command="y", inputs={"in": "${{ jobs.a.files.t }}"})
    play = started(Sequence(name="s", body=(job("/store/t"), after)))
    ref = FileRef(sha256="0" * 64, bytes=3, name="t", logical="/store/t")
    play.finish(play.serial("a"), Outcome(files={"t": ref}))
    order = play.out[play.serial("b")]
    assert isinstance(order, SubmitJob) and order.spec.inputs == {"in": ref}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (job("store/t"), "must begin with `/`"),
        (job("/store/../t"), "`..` as a part"),
        (
            JobActivity(name="a", command="x", publish={"t": PublicationTemplate(logical="/t")}),
            "leaves no file of that name",
        ),
        (
            JobActivity(name="a", command="x", files={"t": "t"}, publish={"t": PublicationTemplate(logical=5)}),
            "must be texts",
        ),
        (job("/store/${{ 1 + }}"), "in the expression"),
        (
            JobActivity(
                name="a",
                command="x",
                files={"t": "t", "u": "u"},
                publish={"t": PublicationTemplate(logical="/t"), "u": PublicationTemplate(logical="lfn:/t")},
            ),
            "cannot both be published as /t",
        ),
    ],
)
def test_a_flow_that_publishes_wrongly_is_refused(body: JobActivity, said: str) -> None:
    with pytest.raises(BadFlow) as caught:
        started(body)
    assert said in caught.value.message


def test_a_job_is_told_which_urls_its_files_go_to_and_which_machines_it_is_for() -> None:  # FM-2
    needs = ResourceTemplates(hosts=("${{ host }}", "n2"), system="linux", machine="${{ machine }}")
    publish = {"t": PublicationTemplate(url="file:///${{ host }}/t", overwrite=False)}
    play = in_scope(
        JobActivity(name="a", command="x", files={"t": "t"}, publish=publish, resources=needs), host="n1", machine="arm"
    )
    order = play.out[play.serial("a")]
    assert isinstance(order, SubmitJob)
    assert order.spec.publish == {"t": Publication(url="file:///n1/t", overwrite=False)}
    assert order.spec.resources == Resources(hosts=("n1", "n2"), system="linux", machine="arm")


@pytest.mark.parametrize(
    ("publishing", "told"),
    [
        (PublicationTemplate(url="file:///t", logical="/t"), "and not both"),
        (PublicationTemplate(url="http://host/t"), "can only be read from"),
        (PublicationTemplate(url="file:///a/../t"), "without `..`"),
    ],
)
def test_a_url_that_nothing_can_be_taken_to_is_refused(publishing: PublicationTemplate, told: str) -> None:
    with pytest.raises(BadFlow, match=told):
        started(JobActivity(name="a", command="x", files={"t": "t"}, publish={"t": publishing}))


def test_a_url_that_turns_out_to_be_none_is_a_fault_of_the_flow() -> None:
    publish = {"t": PublicationTemplate(url="${{ where }}")}
    play = in_scope(JobActivity(name="a", command="x", files={"t": "t"}, publish=publish), where="gopher://a/b")
    assert play.ended.fault is not None and "cannot be written to its place" in play.ended.fault.message
