"""Whoever is in several projects says which one is meant."""  # SE-2

import pytest

from tests.cli.conftest import Shell
from tests.cli.test_server import served

FLOW = "name: greet\njobs:\n  hello: {run: echo hello}\n"
SET = "data_sets:\n  night: {}\n"


@pytest.mark.full
def test_the_project_of_what_is_new_is_named_or_told(shell: Shell) -> None:
    boss = shell.ok("admin", "tokens", "line", "boss", "--role", "admin", "--append", "tokens").strip()
    server = served(shell, "--tokens", "tokens")
    shell.environment |= {"MENDFLOW_SERVER": server, "MENDFLOW_TOKEN": boss}
    words = ("--project", "red:author", "--project", "blue:author")
    ann = shell.ok("admin", "tokens", "create", "ann", *words).strip()
    shell.environment["MENDFLOW_TOKEN"] = ann
    shell.write("greet.yaml", FLOW)
    shell.write("sets.yaml", SET)
    for command in (
        ("start", "greet.yaml"),
        ("run", "greet.yaml", "--server", server),
        ("data", "sets", "apply", "sets.yaml"),
    ):
        refused = shell(*command)
        told = " ".join(refused.stderr.split())
        assert refused.returncode != 0 and "'ann' is in blue (author), red (author)" in told, told
        assert "--project NAME" in told
    started = shell.json("start", "greet.yaml", "--project", "red")
    assert started["project"] == "red"
    assert shell.json("start", "greet", "--project", "red")["project"] == "red"
    other = shell("start", "greet", "--project", "blue")
    assert other.returncode != 0 and "flow greet belongs to project red" in " ".join(other.stderr.split())
    other = shell("schedules", "add", "greet", "--cron", "@daily", "--project", "blue")
    assert other.returncode != 0 and "flow greet belongs to project red" in " ".join(other.stderr.split())
    shell.ok("schedules", "add", "greet", "--cron", "@daily", "--project", "red")
    shell.ok("data", "sets", "apply", "sets.yaml", "--project", "blue")
    foreign = shell("start", "greet.yaml", "--project", "green")
    assert foreign.returncode != 0
