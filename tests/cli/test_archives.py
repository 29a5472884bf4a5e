"""`mendflow admin export` and `mendflow admin import` say what they did."""

import pytest

from tests.cli.conftest import Shell


@pytest.mark.full
def test_an_archive_of_one_case_that_a_message_began_is_said_to_have_all_of_its_flow(shell: Shell) -> None:
    shell.write("f.yaml", "name: f\njobs: {a: {run: echo a}}\n")
    shell.ok("flows", "convert", "f.yaml", "-o", "f.bpel")
    for _ in range(2):
        shell.ok("run", "f.bpel", "--quiet")
    said = " ".join(shell.ok("admin", "export", "f-soap.2", "--to", "f.archive").split())
    assert "In it: all 2 cases of f that messages began. They share its messages, so they go together." in said
    told = shell.json("admin", "export", "f-soap.1", "--to", "f.archive")
    assert {flow: sorted(cases) for flow, cases in told["together"].items()} == {"f": ["f-soap.1", "f-soap.2"]}
    store = f"sqlite://{shell.folder}/other.db"
    said = " ".join(shell.ok("admin", "import", "f.archive", "--store", store).split())
    assert "2 cases imported, with 2 that they called or that repaired them, 0 files" in said


@pytest.mark.full
def test_an_archive_of_a_case_that_somebody_began_has_no_others(shell: Shell) -> None:
    shell.write("f.yaml", "name: f\njobs: {a: {run: echo a}}\n")
    for _ in range(2):
        shell.ok("run", "f.yaml", "--quiet")
    first, _ = [case["id"] for case in shell.json("cases")]
    assert "In it" not in shell.ok("admin", "export", first, "--to", "f.archive")
    said = shell.ok("admin", "import", "f.archive", "--store", f"sqlite://{shell.folder}/other.db")
    assert said.splitlines() == ["1 case imported, 0 files", "flows added: f"]
