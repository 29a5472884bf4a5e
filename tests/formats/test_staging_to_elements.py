"""A `stage` that goes to a storage element is a job that runs nothing."""  # FM-6

from pathlib import Path

import pytest

from mendflow.core.model.flow import JobActivity, Stage
from mendflow.core.model.templates import PublicationTemplate
from tests.formats.conftest import Complaints, Reader
from tests.formats.test_yaml_flows import only


def test_files_that_go_to_an_element_keep_their_names(read: Reader) -> None:  # FM-6
    step = only(read("steps:\n  - {name: s, stage: {raw: 'lfn:/store/raw/a'}, to: tape, order: sequence}\n"))
    assert step == JobActivity(
        name="s",
        inputs={"raw": "lfn:/store/raw/a"},
        files={"raw": "raw"},
        publish={"raw": PublicationTemplate(logical="", element="tape")},
        link_inputs=True,
        stage_in="sequence",
    )


def test_files_that_go_to_an_element_can_be_named(read: Reader, tmp_path: Path) -> None:  # FM-6
    (tmp_path / "t.csv").write_text("1")
    text = """
    steps:
      - name: s
        stage: {table: t.csv, far: "s3://bucket/far.dat"}
        to: {table: /store/t, far: {as: "/store/${{ inputs.run }}/far", on: disk, set: far}}
    inputs: {run: 7}
    """
    step = only(read(text))
    assert isinstance(step, JobActivity) and step.command is None and step.function is None
    assert step.inputs == {"table": "t.csv", "far": "s3://bucket/far.dat"}
    assert step.publish["far"] == PublicationTemplate(
        logical="/store/${{ inputs.run }}/far", element="disk", data_set="far"
    )


def test_without_a_target_files_are_kept_by_the_server(read: Reader) -> None:
    assert isinstance(only(read("steps:\n  - {name: s, stage: {raw: 'lfn:/store/raw/a'}}\n")), Stage)


@pytest.mark.parametrize("source", ["https://example.org/a.dat", "s3://bucket/${{ inputs.run }}"])
def test_a_url_without_a_target_is_refused_with_what_to_do(complaints: Complaints, source: str) -> None:  # FM-6
    flow = f"inputs: {{run: 7}}\nsteps:\n  - {{name: s, stage: {{a: '{source}'}}}}\n"
    (line,) = complaints(flow)
    assert "3:26: a URL is not stored" in line and "`to:`" in line and "`inputs`" in line


@pytest.mark.parametrize(
    ("to", "told"),
    [
        ("{tabel: /store/a}", "`stage` brings no `tabel` (did you mean `table`?)"),
        ("{}", "say where `table` goes too"),
        ("{table: ../a}", "is not a logical name"),
        ("{table: {on: tape}}", "as"),
        ("[tape]", "the name of a storage element"),
    ],
)
def test_a_target_that_cannot_be_is_refused(complaints: Complaints, to: str, told: str) -> None:
    lines = complaints(f"steps:\n  - {{name: s, stage: {{table: 'lfn:/store/t'}}, to: {to}}}\n")
    assert any(told in line for line in lines), lines
