"""Words that people know from elsewhere are answered with what is typed here."""

import pytest

from tests.cli.conftest import Shell


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("secrets", "set", "token", "hunter22"), "the value of a secret is never given on the command line"),
        (("secrets", "set", "token", "--value", "hunter22"), "mendflow secrets set NAME asks for the value"),
        (("schedules", "add", "nightly", "--tz", "Europe/Berlin"), "the time zone is --timezone ZONE"),
        (("cases", "rm", "last"), "mendflow prune removes cases that are over"),
    ],
)
def test_words_of_other_tools_are_answered(shell: Shell, words: tuple[str, ...], told: str) -> None:  # DU-6
    refused = shell(*words)
    assert refused.returncode == 2 and told in " ".join(refused.stderr.split())
    assert "hunter22" not in refused.stderr


@pytest.mark.full
def test_limits_at_the_top_of_a_flow_and_a_folder_without_outputs_are_answered(shell: Shell) -> None:  # DU-6
    shell.write("limited.yaml", "name: limited\nlimits: {gate: 2}\njobs: {a: echo a}\n")
    assert "mendflow limits set NAME COUNT" in " ".join(shell("check", "limited.yaml").stderr.split())
    shell.write("plain.yaml", "name: plain\njobs: {a: echo a}\n")
    done = shell.ok("run", "plain.yaml", "--output-dir", "out")
    assert "nothing was written to out: the flow names no outputs" in " ".join(done.split())


def test_a_flow_that_is_not_there_and_needs_that_are_not_set_are_told(shell: Shell) -> None:  # DU-6
    shell.write("nightly.yaml", "name: nightly\njobs: {a: {run: echo a, limits: [gate], secrets: [api-token]}}\n")
    assert "gate" not in shell.ok("check", "nightly.yaml")
    shell.ok("flows", "deploy", "nightly.yaml")
    refused = shell("prune", "--flow", "nightli", "--older-than", "1d", "--yes")
    assert "there is no flow nightli, and no case of one; did you mean nightly?" in " ".join(refused.stderr.split())
    remarks = " ".join(shell.ok("check", "nightly.yaml").split())
    assert "uses the limit gate, which nobody has set" in remarks and "uses the secret api-token" in remarks
    told = " ".join(shell("run", "nightly.yaml", "--quiet").stderr.split())
    assert "uses the limit gate, which nobody has set" in told and "uses the secret api-token" in told
