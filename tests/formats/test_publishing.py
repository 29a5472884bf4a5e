"""Logical files in flows: as inputs, and as what becomes of a job's files."""  # FM-6, PJ-7

from pathlib import Path

import pytest

from mendflow.core.model.errors import BadFlow
from mendflow.core.model.flow import Activity, Flow, JobActivity, Parallel, Sequence
from mendflow.core.model.jobs import Limits
from mendflow.core.model.templates import PublicationTemplate, ResourceTemplates
from mendflow.formats import load
from tests.formats.conftest import Complaints, Reader

RECO = """
defaults: {link-inputs: true}
jobs:
  raw: {run: make raw, files: {raw: raw.dat}, link-inputs: false}
  reco:
    run: reco
    inputs: {in.dat: "lfn:/store/raw/a.dat", "again.dat": "${{ jobs.raw.files.raw }}"}
    files: {table: t.csv, log: l.txt, hits: h.csv}
    publish:
      table: lfn:/store/reco/t.csv
      hits: {as: "/store/${{ inputs.run }}/h.csv", on: near, set: hits}
"""


def job(flow: Flow, name: str) -> JobActivity:
    """The job of that name, at whatever depth."""
    pending: list[Activity] = [flow.body]
    while pending:
        each = pending.pop()
        if isinstance(each, JobActivity) and each.name == name:
            return each
        pending += each.branches if isinstance(each, Parallel) else each.body if isinstance(each, Sequence) else ()
    raise AssertionError(f"no job {name}")


def test_a_flow_file_says_what_is_published_and_where(read: Reader) -> None:  # FM-6
    flow = read("inputs: {run: 7}\n" + RECO)
    reco = job(flow, "reco")
    assert reco.publish == {
        "table": PublicationTemplate(logical="lfn:/store/reco/t.csv"),
        "hits": PublicationTemplate(logical="/store/${{ inputs.run }}/h.csv", element="near", data_set="hits"),
    }
    assert (reco.link_inputs, job(flow, "raw").link_inputs) == (True, False)
    assert reco.inputs["in.dat"] == "lfn:/store/raw/a.dat"  # which is not looked for in the flow's folder


def test_a_flow_file_says_which_files_go_to_urls_and_what_they_may_replace(read: Reader) -> None:  # FM-2
    flow = read(
        "inputs: {run: 7}\njobs:\n  a:\n    run: x\n    files: {a: a, b: b}\n    publish:\n"
        '      a: {to: "s3://bucket/${{ inputs.run }}/a"}\n      b: {to: "file:///b", overwrite: false}\n'
    )
    assert job(flow, "a").publish == {
        "a": PublicationTemplate(url="s3://bucket/${{ inputs.run }}/a"),
        "b": PublicationTemplate(url="file:///b", overwrite=False),
    }


def test_a_flow_file_says_which_machines_a_job_may_go_to_and_all_its_limits(read: Reader) -> None:  # FM-2
    flow = read(
        "jobs:\n  a:\n    run: x\n    hosts: [n1, n2]\n    system: linux\n    machine: x86\n    limits: "
        "{cpu-time: 5 s, stack: 1 MiB, data-segment: 2 MiB, "
        "locked-memory: 3 MiB, virtual-memory: 4 MiB, core-dump: 0 B}"
    )
    found = job(flow, "a")
    assert found.resources == ResourceTemplates(hosts=("n1", "n2"), system="linux", machine="x86")
    mib = 1 << 20
    assert found.limits == Limits(
        cpu_ms=5000,
        stack_bytes=mib,
        data_bytes=2 * mib,
        locked_bytes=3 * mib,
        virtual_bytes=4 * mib,
        core_bytes=0,
    )


@pytest.mark.parametrize(
    ("publish", "told"),
    [
        ("{tabel: /store/a}", "the job has no `tabel` among its `files` (did you mean `table`?)"),
        ("{table: store/a}", "`store/a` is not a logical name: it must begin with `/`"),
        ("{table: /store/../etc/passwd}", "`..` as a part"),
        ("{table: /store/%2e%2e/a}", "%2e in it"),
        ("{table: {on: near}}", "as"),
        ("{table: {as: /a, to: near}}", "and not both"),
        ("{table: {to: near}}", "'near' is not supported"),
        ("{table: {to: 'http://a/b'}}", "http:// can only be read from"),
        ("{table: {to: 'file:///a/'}}", "it must name a file"),
        ("{table: {to: 'file:///a', set: b}}", "what goes to a URL has no `set:`"),
        ("{table: [1]}", "a logical name, or a map with `as:`"),
        ("[table]", "`publish` is a map from names of files to logical names"),
        ('{table: "/store/${{ nowhere.x }}"}', "nowhere"),
    ],
)
def test_what_cannot_be_published_is_told_with_its_place(complaints: Complaints, publish: str, told: str) -> None:
    found = complaints(f"jobs:\n  a:\n    run: x\n    files: {{table: t}}\n    publish: {publish}\n")
    assert len(found) == 1 and found[0].startswith("5:") and told in found[0]


@pytest.mark.parametrize("name", ["lfn:store/a", "lfn:", "lfn:/a/../b", "lfn://a", "lfn:/a%2fb"])
def test_an_input_that_names_no_logical_file_is_told(complaints: Complaints, name: str) -> None:
    [found] = complaints(f'jobs:\n  a:\n    run: x\n    inputs: {{in: "{name}"}}\n')
    assert "names no logical file" in found


def test_a_flow_in_python_publishes_too(tmp_path: Path) -> None:  # FM-6
    path = tmp_path / "work.py"
    path.write_text(
        "from mendflow import flow, shell\n"
        "@flow\n"
        "def work(run: int):\n"
        "    files = {'a': 'a.dat', 'b': 'b.dat'}\n"
        "    named = {'a': f'/store/{run}/a', 'b': {'logical': '/store/b', 'data_set': 'bs'}}\n"
        "    shell('x', name='x', files=files, publish=named, link_inputs=True, inputs={'i': 'lfn:/store/i'})\n"
    )
    found = job(load(path), "x")
    assert found.publish == {
        "a": PublicationTemplate(logical="/store/${{ inputs.run }}/a"),
        "b": PublicationTemplate(logical="/store/b", data_set="bs"),
    }
    assert found.link_inputs


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("publish={'a': '/a'}", "no `a` among its files"),
        ("files={'a': 'a'}, publish={'a': {'element': 'x'}}", "needs a logical name"),
        ("files={'a': 'a'}, publish={'a': {'logical': '/a', 'set': 'x'}}", "`set`"),
        ("link_inputs='yes'", "link_inputs is True or False"),
    ],
)
def test_python_is_told_what_cannot_be_published(tmp_path: Path, options: str, told: str) -> None:
    path = tmp_path / "work.py"
    path.write_text(f"from mendflow import flow, shell\n@flow\ndef work():\n    shell('x', {options})\n")
    with pytest.raises(BadFlow, match=told):
        load(path)
