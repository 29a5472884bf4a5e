"""Named limits by command: set, listed, removed; and flows that use one that nobody has set."""

import pytest

from tests.cli.conftest import Shell

FLOW = "name: licensed\ndefaults: {limits: [licence-x]}\njobs: {a: echo a, b: {run: echo b, limits: {licence-x: 0}}}\n"


def test_a_limit_is_set_listed_and_removed(shell: Shell) -> None:  # DU-6
    assert shell.ok("limits", "set", "licence-x", "4") == "limit licence-x is 4\n"
    [view] = shell.json("limits")
    assert (view["name"], view["count"], view["used"], view["waiting"]) == ("licence-x", 4, 0, 0)
    assert "licence-x  4" in shell.ok("limits", "list")
    assert shell.ok("limits", "remove", "licence-x") == "limit licence-x is removed\n"
    assert "there is no limit 'licence-x'" in shell("limits", "remove", "licence-x").stderr


@pytest.mark.full
def test_a_run_with_a_limit_that_nobody_has_set_is_refused_and_an_option_sets_it(shell: Shell) -> None:  # DU-6
    shell.write("licensed.yaml", FLOW)
    assert "no problems" in shell.ok("check", "licensed.yaml")
    refused = shell("run", "licensed.yaml")
    assert refused.returncode == 2
    assert (
        "job a uses the limit licence-x, which nobody has set here: --limit licence-x=COUNT sets it" in refused.stderr
    )
    assert "is not understood; write --limit NAME=COUNT" in shell("run", "licensed.yaml", "--limit", "x").stderr
    assert "completed" in shell.ok("run", "licensed.yaml", "--limit", "licence-x=1")
    assert "licence-x  1      0" in shell.ok("limits")


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ("{open-fils: 3}", "`limits` has no key `open-fils`; write `open-files`"),
        ("{licence-x: many}", "a job uses a whole number of it, such as 1, not 'many'"),
        ("{memory: 3}", "stand at the job itself"),
        ("[a b]", "`a b` is no name of a limit"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(shell: Shell, limits: str, told: str) -> None:
    shell.write("bad.yaml", f"jobs:\n  a: {{run: echo a, limits: {limits}}}\n")
    refused = shell("check", "bad.yaml")
    assert refused.returncode == 2 and told in refused.stderr and "bad.yaml:2:" in refused.stderr
