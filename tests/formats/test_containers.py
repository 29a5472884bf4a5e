"""Containers in flow files, in Python and in exlets."""

from pathlib import Path

import pytest

from mendflow import flow, job, shell
from mendflow.core.engine.plan import walk_activities
from mendflow.core.model.containers import JobContainer
from mendflow.core.model.errors import BadFlow
from mendflow.core.model.flow import Flow, JobActivity, PrimitiveStep
from mendflow.formats import load
from mendflow.formats.yaml.exlets import read_exlet


@job(container=None)
def outside() -> int:
    return 1


@job
def function() -> int:
    return 1


def containers(found: Flow) -> dict[str, JobContainer | None]:
    return {each.name: each.container for each in walk_activities(found) if isinstance(each, JobActivity)}


def from_yaml(folder: Path, text: str) -> Flow:
    (folder / "f.yaml").write_text(text)
    return load(folder / "f.yaml")


def test_a_job_the_defaults_and_the_flow_may_name_an_image(tmp_path: Path) -> None:  # DU-5
    found = from_yaml(
        tmp_path,
        """
container: flows:1
defaults: {cpus: 2}
jobs:
  a: {run: echo, container: {image: jobs:1, mounts: "/data:/in:ro", options: [--shm-size, 1g], network: none}}
  b: {run: echo}
  c: {run: echo, container: none}
  d: {run: echo, container: "${{ 'x' }}:1"}
""",
    )
    own = JobContainer(image="jobs:1", mounts=("/data:/in:ro",), options=("--shm-size", "1g"), network="none")
    assert containers(found) == {
        "a": own,
        "b": JobContainer(image="flows:1"),
        "c": None,
        "d": JobContainer(image="${{ 'x' }}:1"),
    }
    by_default = from_yaml(tmp_path, "container: a:1\ndefaults: {container: b:1}\njobs: {a: {run: echo}}")
    assert containers(by_default) == {"a": JobContainer(image="b:1")}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("jobs: {a: {run: x, container: tools.sif}}", "`tools.sif` is a file of Apptainer"),
        ("jobs: {a: {run: x, container: {image: a, volumes: /x}}}", "what is mounted is `mounts:"),
        ("jobs: {a: {run: x, container: {mounts: /x}}}", "image"),
        ("jobs: {a: {run: x, container: [a]}}", "an image such as"),
        ("jobs: {a: {run: x, docker: a}}", "`container: ubuntu:24.04`"),
        ("jobs: {a: {python: 'os:getcwd', container: a:1}}", "a container is for commands"),
        ("container: a:1\njobs: {a: {python: 'os:getcwd'}}", "say `container: none` at this function"),
    ],
)
def test_what_is_wrong_with_a_container_is_told(tmp_path: Path, text: str, said: str) -> None:  # DU-5
    with pytest.raises(BadFlow) as refused:
        from_yaml(tmp_path, text)
    assert said in str(refused.value)


def test_python_has_the_same_options() -> None:  # DU-5
    @flow(container="flows:1")
    def found() -> None:
        outside()
        shell("echo", name="b")
        shell("echo", name="a", container={"image": "jobs:1", "mounts": ["/data"]})
        shell("echo", name="c", container=None)

    assert containers(found.build()) == {
        "outside": None,
        "b": JobContainer(image="flows:1"),
        "a": JobContainer(image="jobs:1", mounts=("/data",)),
        "c": None,
    }


def test_python_refuses_what_cannot_be() -> None:
    @flow(container="flows:1")
    def around_a_function() -> None:
        function()

    @flow
    def misspelled() -> None:
        shell("echo", container={"image": "a:1", "volumes": "/x"})

    with pytest.raises(BadFlow, match=r"@job\(container=None\)"):
        around_a_function.build()
    with pytest.raises(BadFlow, match="container has no `volumes`"):
        misspelled.build()


def test_an_exlet_may_choose_another_image(tmp_path: Path) -> None:  # DU-5
    exlet = read_exlet("- re-submit:\n  container: tools:2\n  memory: 2 GB\n", tmp_path / "x.yaml")
    [step] = [each for each in walk_activities(exlet) if isinstance(each, PrimitiveStep)]
    assert step.settings["container"] == "tools:2"
