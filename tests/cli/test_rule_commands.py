"""Rules on the command line: files of rules, and rules of a server that are changed, asked and replayed."""

import json

import pytest

from tests.cli.conftest import Shell
from tests.cli.test_repairs import AGAIN, NIGHT, RULES, failed_night
from tests.cli.test_server import served


@pytest.mark.full
def test_rules_are_imported_exported_checked_and_restored(shell: Shell) -> None:  # EX-12
    shell.environment["MENDFLOW_SERVER"] = served(shell)
    shell.write("mine.yaml", RULES)
    assert shell.ok("rules", "check", "mine.yaml") == "1 file, no problems\n"
    assert "night version 1: 1 rule" in shell.ok("rules", "import", "mine.yaml")
    assert "is in out.yaml" in shell.ok("rules", "export", "night", "out.yaml")
    assert "night version 2" in shell.ok("rules", "import", "out.yaml", "-m", "the same again")
    both = [shell.json("rules", "show", "night", "--version", number)["rules"] for number in ("1", "2")]
    assert both[0]["trees"] == both[1]["trees"]
    assert both[0]["exlets"] == both[1]["exlets"]
    assert "this is version 3" in shell.ok("rules", "restore", "night", "1")


@pytest.mark.full
def test_a_rule_is_put_in_force_and_taken_out_of_use(shell: Shell) -> None:  # EX-7
    group = failed_night(shell)
    shell.write("again.yaml", AGAIN)
    add = ("rules", "add", "--from", group, "--if", "fault.exit_code == 7", "--exlet", "again.yaml", "--passive")
    assert "it applies on trial from now on: version 1" in shell.ok(*add)
    assert shell.ok("rules", "promote", "night", "1") == "rule 1 of night (abort of align) is in force: version 2\n"
    assert shell("run", "night.yaml", "--quiet").returncode == 0
    retired = shell.ok("rules", "retire", "night", "1", "--type", "abort", "--task", "align", "-m", "no use")
    assert retired == "rule 1 of night (abort of align) is out of use: version 3\n"
    assert "if false  out of use, was  →  again" in shell.ok("rules", "show", "night")
    assert shell("run", "night.yaml", "--quiet").returncode == 1
    again = shell("rules", "retire", "night", "1")
    assert (again.returncode, "already out of use" in again.stderr) == (6, True), again.stderr


def test_what_is_wrong_in_a_rules_file_is_told_with_its_place(shell: Shell) -> None:
    shell.write("bad.yaml", "rules: night\nabort:\n  align:\n    - if: fault.exit_code ==\n      do: nothing-such\n")
    refused = shell("rules", "check", "bad.yaml")
    assert refused.returncode == 2
    assert "bad.yaml:4" in refused.stderr
    assert "the rules were refused" in shell("rules", "import", "bad.yaml").stderr
    assert "must end in one of" in shell("rules", "export", "night", "out.txt").stderr


def test_every_problem_of_all_rules_files_is_told_at_once(shell: Shell) -> None:
    shell.write("good.yaml", RULES)
    shell.write("bad.yaml", "abort:\n  align:\n    - if: falt.exit_code == 7\n")
    told = shell("rules", "check", "flow.txt", "good.yaml", "bad.yaml", "nowhere.yaml")
    assert told.returncode == 2
    assert all(word in told.stderr for word in ("flow.txt: ", "must end in one of", "bad.yaml:3:11", "nowhere.yaml"))
    assert "3 problems in 4 files" in told.stderr


@pytest.mark.full
def test_rules_for_a_flow_that_is_nowhere_say_so_and_their_name_is_checked(shell: Shell) -> None:
    shell.environment["MENDFLOW_SERVER"] = served(shell)
    shell.write("mine.yaml", RULES)
    told = shell("rules", "import", "mine.yaml")
    assert (told.returncode, told.stderr) == (
        0,
        "no flow night is deployed here yet; deploy it before the rules need it\n",
    )
    refused = shell("rules", "import", "mine.yaml", "--name", "a/b")
    assert (refused.returncode, "'a/b' is not a valid name for a rule set" in refused.stderr) == (2, True), (
        refused.stderr
    )


@pytest.mark.full
def test_ex_7_rules_are_edited_asked_and_replayed_on_the_command_line(shell: Shell) -> None:
    group = failed_night(shell)
    shell.write("kept.yaml", RULES)
    assert shell("rules", "import", "kept.yaml").returncode == 0
    [first, *_] = shell.json("failures", "show", group)["samples"]
    asked = shell("rules", "evaluate", "night", "--from", first["id"])
    assert "rule 1 of night concludes again" in asked.stdout
    data = json.dumps({"fault": {"exit_code": 8}})
    asked = shell("rules", "evaluate", "kept.yaml", "--data", data, "--type", "abort", "--task", "align", "--only")
    assert "no rule concludes anything" in asked.stdout
    shell.write("eight.yaml", RULES.replace("exit_code == 7", "exit_code == 8"))
    replayed = shell("rules", "replay", "eight.yaml")
    assert "of 3 past decisions, 3 would be concluded otherwise" in replayed.stdout
    assert f"{first['id']}: " in replayed.stdout
    assert "can be changed so" in shell("rules", "change", "night", "1", "--note", "flaky", "--try").stdout
    assert "is changed: version 2" in shell("rules", "change", "night", "1", "--note", "flaky").stdout
    assert shell.json("rules", "show", "night")["rules"]["trees"]["abort"]["align"]["rules"]["1"]["note"] == "flaky"
    shell.write("night.yaml", NIGHT.replace("align:", "aligning:"))
    deployed = shell("flows", "deploy", "night.yaml")
    assert "mendflow rules tasks night --map align=aligning" in deployed.stderr
    assert "--map align=aligning" in shell("rules").stderr
    mapped = shell("rules", "tasks", "night", "--map", "align=aligning")
    assert "rules for align are used for aligning" in mapped.stdout
    assert shell("run", "night.yaml", "--quiet").returncode == 0
    [again] = shell.json("rules", "results")
    assert (again["exlet"], again["recovered"], again["known"]) == ("again", 3, 3)
    assert "no rule of night is on trial" in shell("rules", "agreement", "night").stdout
    assert shell("rules", "compare", "--from", group).returncode == 0
    refused = shell("rules", "tasks", "night", "--map", "align")
    assert (refused.returncode, "is not OLD=NEW" in refused.stderr) == (2, True)


def test_a_file_with_an_exlet_is_checked_as_one(shell: Shell) -> None:  # EX-7
    shell.write(
        "make-calib.yaml",
        "name: make-calib\ndescription: Make it, then try again.\n"
        "steps:\n  - run: make-calib ${{ quote(case.data.file.stem) }}\n  - re-submit:\n",
    )
    shell.write("steps.yaml", "- run: echo ${{ job.host }}\n- retry-later\n")
    shell.write("plain.yaml", "steps:\n  - run: echo one\n")
    assert shell.ok("check", "make-calib.yaml", "steps.yaml", "plain.yaml") == "1 flow, 2 exlets, no problems\n"
    shell.write("steps.yaml", "- run: echo ${{ jop.host }}\n- re-submit: {memory: much}\n")
    wrong = shell("check", "steps.yaml")
    assert wrong.returncode == 2 and "jop" in wrong.stderr + wrong.stdout and "2 problems" in wrong.stderr
    shell.write("plain.yaml", "steps:\n  - runn: echo one\n")
    assert "did you mean `run`" in "".join((shell("check", "plain.yaml").stdout, shell("check", "plain.yaml").stderr))
    assert "nothing says what this step does" in " ".join(shell("run", "make-calib.yaml").stderr.split())
