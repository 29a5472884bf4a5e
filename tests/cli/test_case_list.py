"""The list of cases, as a terminal shows it."""

from tests.cli.conftest import Shell


def test_the_long_list_of_cases_says_who_started_them(shell: Shell) -> None:  # UI-1
    shell.write("one.yaml", "name: one\njobs:\n  a: {run: echo a}\n")
    shell.ok("run", "one.yaml", "--quiet")
    (case,) = shell.json("cases")
    heads, row = (line.split() for line in shell.ok("cases", "-l").splitlines()[:2])
    assert case["owner"]
    assert [row[heads.index(head)] for head in ("case", "flow", "project", "by")] == [
        case["id"],
        "one",
        case["project"],
        case["owner"],
    ]
    assert "by" not in shell.ok("cases").splitlines()[0].split()


NIGHT = """
name: night
inputs: {table: {type: string}, parts: {type: number, default: 2}}
jobs:
  clean: {run: 'test ${{ inputs.table }} = a.csv || { echo "no such column" >&2; exit 3; }'}
"""


def test_the_list_of_cases_says_what_each_was_given_and_why_it_failed(shell: Shell) -> None:  # UI-1
    shell.environment["COLUMNS"] = "120"
    shell.write("night.yaml", NIGHT)
    shell.ok("run", "night.yaml", "-i", "table=a.csv", "-i", "parts=3", "--quiet")
    assert "why" not in shell.ok("cases").splitlines()[0].split(), "nothing waits, and nothing has failed"
    assert shell("run", "night.yaml", "-i", "table=raw/b.csv", "--quiet").returncode == 1
    heads, failed, done = shell.ok("cases").splitlines()[:3]
    assert heads.split()[-2:] == ["given", "why"]
    assert "table=a.csv, parts=3" in done
    assert "table=…/b.csv" in failed, "of a path, the name of the file tells, and that more stands before it"
    assert "no such column" in failed
    assert "no such column" not in done
