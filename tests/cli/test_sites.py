"""Sites by command: described in a file, looked at, paused, removed."""

import pytest

from tests.cli.conftest import Shell
from tests.cli.test_server import served

SITE = "name: here\nmax_pilots: 2\nbatch: {kind: local}\n"


def test_a_site_is_added_looked_at_paused_and_removed(shell: Shell) -> None:  # PJ-8
    shell.environment["MENDFLOW_SERVER"] = served(shell)
    assert "There are no sites" in shell.ok("admin", "sites")
    shell.write("here.yaml", SITE)
    assert shell.ok("admin", "sites", "add", "here.yaml") == "here gets up to 2 pilots, 60 an hour\n"
    [row] = shell.json("admin", "sites", "list")
    assert (row["site"]["name"], row["state"], row["left_this_hour"]) == ("here", "active", 60)
    assert shell.ok("admin", "sites", "pause", "here", "--reason", "the roof leaks") == "here is paused\n"
    assert "the roof leaks" in shell.ok("admin", "sites", "show", "here") and "paused" in shell.ok("admin", "sites")
    assert shell.ok("admin", "sites", "resume", "here") == "here goes on\n"
    shell.write("here.yaml", SITE.replace("2", "3"))
    assert "up to 3 pilots" in shell.ok("admin", "sites", "add", "here.yaml")
    assert shell.json("admin", "sites", "show", "here")["site"]["max_pilots"] == 3
    assert shell.ok("admin", "sites", "remove", "here") == "here is removed\n"
    assert shell.json("admin", "sites") == []


@pytest.mark.full
def test_what_is_missing_for_a_site_is_told_when_it_is_added_and_when_it_is_shown(shell: Shell) -> None:  # PJ-8
    shell.environment["MENDFLOW_SERVER"] = served(shell)
    shell.write("far.yaml", "name: far\nbatch: {kind: lsf, wall: 1 h}\npilots: {storage: tape}\n")
    for words in (("add", "far.yaml"), ("show", "far")):
        told = shell.ok("admin", "sites", *words)
        assert "Warning: there is no storage element tape" in told and "Warning: bsub, bjobs, bkill of lsf" in told


@pytest.mark.full
def test_what_is_wrong_with_a_site_is_told_in_a_sentence(shell: Shell) -> None:
    shell.environment["MENDFLOW_SERVER"] = served(shell)
    shell.write("bad.yaml", "name: here\nmax_pilot: 2\n")
    for words, said in (
        (("add", "bad.yaml"), "did you mean `max_pilots`?"),
        (("add", "none.yaml"), "there is no such file"),
        (("show", "there"), "there is no site 'there'; `mendflow admin sites` lists them"),
        (("pause", "there"), "there is no site 'there'"),
        (("remove", "there"), "there is no site 'there'"),
    ):
        done = shell("admin", "sites", *words)
        assert done.returncode != 0 and said in done.stderr + done.stdout, (words, done.stderr)
