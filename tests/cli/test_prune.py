"""Cases are pruned by command: what would go is shown first, and who asks for a case that has gone hears of it."""

import pytest

from tests.cli.conftest import Shell

FLOW = "name: daily\ninputs: {day: 1}\njobs: {a: 'echo ${{ inputs.day }}'}\n"


@pytest.mark.full
def test_what_would_go_is_shown_and_what_went_is_told(shell: Shell) -> None:  # DU-6
    shell.write("daily.yaml", FLOW)
    for day in ("1", "2"):
        shell.ok("run", "daily.yaml", "--input", f"day={day}")
    newest, oldest = [case["id"] for case in shell.json("cases")]
    forecast = shell.json("prune", "--keep", "1", "--dry-run")
    assert [each["case"] for each in forecast["pruned_cases"]] == [oldest] and forecast["dry_run"]
    assert len(shell.json("cases")) == 2
    refused = shell("prune", "--keep", "1")
    assert refused.returncode != 0 and "give --yes" in refused.stderr and oldest in refused.stdout
    assert "1 case and" in shell.ok("prune", "--keep", "1", "--yes")
    assert [case["id"] for case in shell.json("cases")] == [newest]
    for words in (("why", oldest), ("items", oldest), ("logs", f"{oldest}:a")):
        gone = shell(*words)
        assert gone.returncode != 0 and f"case {oldest} of flow daily was pruned" in gone.stderr
    assert "No case goes by these conditions" in shell("prune", "--keep", "1", "--yes", "--dry-run").stderr


@pytest.mark.full
def test_single_cases_go_by_their_names_and_their_reports_with_them(shell: Shell) -> None:  # DU-6
    shell.write("daily.yaml", FLOW)
    for day in ("1", "2", "3"):
        shell.ok("run", "daily.yaml", "--input", f"day={day}")
    third, second, first = [case["id"] for case in shell.json("cases")]
    reports = shell.folder / ".mendflow" / "reports"
    assert (reports / f"{second}.html").exists()
    assert second in shell.ok("prune", second, "--dry-run") and len(shell.json("cases")) == 3
    refused = shell("prune", second)
    assert refused.returncode != 0 and "give --yes" in refused.stderr
    assert "1 case and" in shell.ok("prune", "--yes", second)
    assert [case["id"] for case in shell.json("cases")] == [third, first]
    assert sorted(each.name for each in reports.iterdir()) == sorted([f"{first}.html", f"{third}.html"])
    assert "was pruned" in shell("prune", second, "--yes").stderr
    assert "there is no case" in shell("prune", "nothing", "--yes").stderr
    assert "but not both" in shell("prune", first, "--keep", "1", "--yes").stderr
    assert "2 cases and" in shell.ok("prune", first, "last", "--yes")
    assert shell.json("cases") == []


def test_rules_are_set_listed_and_removed(shell: Shell) -> None:  # DU-6
    shell.write("daily.yaml", FLOW)
    shell.ok("flows", "deploy", "daily.yaml")
    assert "There are no rules" in shell.ok("prune", "rules")
    added = shell("prune", "set", "old", "--older-than", "90d", "--state", "failed", "--keep", "20")
    assert added.returncode == 0 and "rule old is set" in added.stdout and "No server runs here" in added.stderr
    [view] = shell.json("prune", "rules")
    assert view["rule"] == {"name": "old", "states": ["failed"], "older_than_ms": 90 * 86_400_000, "keep": 20}
    assert "failed" in shell.ok("prune", "rules")
    assert shell.ok("prune", "unset", "old") == "rule old is removed\n"
    assert shell.json("prune", "rules") == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "say which cases go: by age (--older-than 30d)"),
        (("--state", "running"), "--state is one of completed, failed, cancelled, not 'running'"),
        (("--older-than", "soon"), "--older-than is a duration such as"),
        (("--max-bytes", "much"), "--max-bytes is a size such as"),
        (("unset", "nothing"), "there is no rule 'nothing' of retention"),
        (("set", "not a name", "--keep", "1"), "a rule of retention cannot be called 'not a name'"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_to_do(shell: Shell, words: tuple[str, ...], told: str) -> None:
    shell.write("daily.yaml", FLOW)
    shell.ok("flows", "deploy", "daily.yaml")
    refused = shell("prune", *words)
    assert refused.returncode != 0 and told in refused.stderr
