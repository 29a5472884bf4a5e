"""Data sets and watches by command: what is given is told, and so is what looks like a slip."""

import pytest

from tests.cli.conftest import Shell
from tests.cli.test_server import served

CIRCLE = "data_sets: {x: {after: y}, y: {after: x}}"
SETS = "data_sets: {raw: {}}\nwatches: {w: {element: disk, data_set: rwa}}"


@pytest.mark.full
def test_a_set_that_nobody_described_is_told_to_be_new(shell: Shell) -> None:
    shell.environment["MENDFLOW_SERVER"] = served(shell)
    shell.write("a.txt", "hello")
    new = "is new; its files start no cases until mendflow data sets apply describes them"
    assert new in shell.ok("data", "sets", "add", "raw", "a.txt")
    assert shell.ok("data", "sets", "add", "raw", "a.txt") == "raw is open: 1 files\n"
    assert f"rew {new} (did you mean `raw`?)" in " ".join(shell.ok("data", "sets", "add", "rew", "a.txt").split())
    (shell.folder / "store").mkdir()
    shell.ok("data", "storage", "add", "--name", "disk", "--url", (shell.folder / "store").as_uri())
    assert shell.ok("data", "watch", "add", "w", "disk", "--set", "raw") == "disk is watched for raw\n"
    assert f"rwa {new} (did you mean" in " ".join(shell.ok("data", "watch", "add", "w", "disk", "--set", "rwa").split())
    shell.write("sets.yaml", SETS)
    assert f"rwa {new} (did you mean" in " ".join(shell.ok("data", "sets", "apply", "sets.yaml").split())


def test_a_file_of_sets_is_refused_with_every_problem(shell: Shell) -> None:
    shell.write("circle.yaml", CIRCLE)
    done = shell("data", "sets", "apply", "circle.yaml")
    assert done.returncode == 2
    assert done.stderr.count("in a cycle") == 2 and "circle.yaml:1:13" in done.stderr, done.stderr
    assert "the file was refused" in done.stderr
