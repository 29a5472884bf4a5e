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
