"""Failures, rules and repairs on the command line: what goes wrong is seen, a rule is tried, added, and holds."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Shell
from tests.cli.test_server import served

NIGHT = """\
name: night
jobs:
  align:
    for-each: [1, 2, 3]
    run: |
      if [ "${MENDED:-}" = yes ]; then echo fine; else echo "no such sample" >&2; exit 7; fi
"""
AGAIN = """\
- re-submit: true
  env: {MENDED: "yes"}
"""
RULES = """\
rules: night
abort:
  align:
    - if: fault.exit_code == 7
      do: again
      note: it is worth another try
exlets:
  again:
    - re-submit: true
      env: {MENDED: "yes"}
"""
SHOW = """\
name: show
steps:
  - user-task: play
    role: band
"""
TOUCH = """\
- notify: the band was told
"""


def failed_night(shell: Shell) -> str:
    """A night that fails; the group of its failures."""
    shell.write("night.yaml", NIGHT)
    assert shell("run", "night.yaml", "--quiet").returncode == 1
    [group] = shell.json("failures")
    return str(group["id"])


@pytest.mark.full
def test_a_rules_file_beside_the_flow_mends_its_failures(shell: Shell) -> None:  # EX-7
    shell.write("night.yaml", NIGHT)
    shell.write("night.rules.yaml", RULES)
    done = shell("run", "night.yaml")
    assert done.returncode == 0, done.stderr
    assert "3 done (3 mended)" in done.stdout
    assert "again (rule 1 of night): 3 recovered" in done.stdout
    assert "3 mended" in done.stderr
    assert shell("run", "night.yaml", "--quiet").returncode == 0
    [version] = shell.json("rules", "history", "night")
    assert version["note"].startswith("from night.rules.yaml (")
    shell.write("other.yaml", RULES.replace("exit_code == 7", "exit_code == 8"))
    assert shell("run", "night.yaml", "--rules", "other.yaml", "--quiet").returncode == 1
    assert [each["version"] for each in shell.json("rules", "history", "night")] == [2, 1]


def test_a_job_that_a_rule_makes_fail_fails_its_case(shell: Shell) -> None:  # EX-2
    write = "".join(f"  {name}: {{run: 'true', after: x, if: {name}(jobs.x)}}\n" for name in ("has", "failed"))
    shell.write("f.yaml", "jobs:\n  x: exit 5\n  y: {run: 'true', needs: x}\n" + write)
    shell.write("f.rules.yaml", "rules: f\nabort: {x: [{if: fault.exit_code == 5, do: [{force-fail: }]}]}\n")
    done = shell("run", "f.yaml", "--quiet")
    assert done.returncode == 1, done.stdout
    assert "failed in" in done.stdout.splitlines()[0]
    ends = {item["item"]: item["state"] for item in shell.json("items", "last")}
    assert ends == {"x": "failed", "y": "skipped", "has": "skipped", "failed": "completed"}


def test_a_failure_becomes_a_rule_that_is_tried_first(shell: Shell) -> None:  # EX-7
    group = failed_night(shell)
    listed = shell.ok("failures")
    assert re.search(rf"{group}\s+3\s.*\sjob\s+nobody took up: 3\s", listed)
    assert "or no repair is known that is likely to help" in " ".join(shell.ok("proposals").split())
    shown = shell.ok("failures", "show", group[:4])
    assert "3 failures in 1 case" in shown
    assert "fault.exit_code: 7 (3)" in shell.ok("failures", "show", group, "--all")
    assert f"mendflow rules try --from {group} --if" in shown
    condition = "fault.exit_code == 7"
    tried = shell.ok("rules", "try", "--from", group, "--if", condition)
    assert tried.startswith("would have caught 3 of 3\n")
    shell.write("again.yaml", AGAIN)
    words = ("rules", "add", "--from", group, "--if", condition, "--exlet", "again.yaml")
    assert shell.ok(*words, "--try").startswith("would have caught 3 of 3\n")
    assert shell.json("rules", "list")[-1]["name"] == "*"
    assert "it applies from now on: version 1" in shell.ok(*words, "-m", "worth another try")
    assert "3 mended" in shell.ok("run", "night.yaml", "--quiet")
    drawn = shell.ok("rules", "show", "night")
    assert re.search(r"1 +if fault\.exit_code == 7 +→ +again +decided 3", drawn)
    assert "again: 3 recovered" in shell.ok("failures", "show", group)


@pytest.mark.full
def test_an_exlet_is_written_out_on_the_spot(shell: Shell) -> None:  # EX-7
    group = failed_night(shell)
    steps = "{re-submit: true, env: {MENDED: 'yes'}}"
    shell.ok("rules", "add", "--from", group, "--if", "fault.exit_code == 7", "--exlet", steps)
    assert "3 mended" in shell.ok("run", "night.yaml", "--quiet")


@pytest.mark.full
def test_ex_7_whoever_teaches_a_default_rule_is_told_who_reads_it(shell: Shell) -> None:
    shell.write("bad.yaml", "jobs: {a: {run: exit 12}}")
    assert shell("run", "bad.yaml", "--quiet").returncode == 1
    [group] = [each["id"] for each in shell.json("failures")]
    add = ("rules", "add", "--from", group, "--if", "fault.exit_code == 12", "--exlet", "nobody-can", "--passive")
    for rules, warned in (((), False), (("--rules", "*"), True)):
        told = shell(*add, *rules)
        assert told.returncode == 0, told.stderr
        assert ("read in all projects" in told.stderr) == warned


@pytest.mark.full
def test_a_rule_that_would_run_a_hopeless_job_without_end_is_warned_of_and_not_offered(shell: Shell) -> None:  # EX-7
    shell.write("hopeless.yaml", "jobs: {a: {run: exit 12}}")
    assert shell("run", "hopeless.yaml", "--quiet").returncode == 1
    [group] = [each["id"] for each in shell.json("failures")]
    offered = "fault.exit_code == 12 && job.generation <= 3"
    assert f"rules add --from {group} --if '{offered}' --exlet EXLET" in shell.ok("failures", "show", group)
    add = ("rules", "add", "--from", group, "--exlet", "{re-submit: true}", "--passive", "--if")
    endless = shell(*add, "fault.exit_code == 12")
    assert endless.returncode == 0
    assert "add a bound, as in --if '... && job.generation <= 3'" in endless.stderr
    shell.ok("rules", "retire", "hopeless", "1")
    assert "warning" not in shell(*add[:-2], "--if", offered).stderr
    told = shell("run", "hopeless.yaml", "--quiet", "--new").stdout
    assert "1 failed again, in 3 repairs" in told


@pytest.mark.full
def test_what_a_rule_on_trial_would_have_done_is_told_wherever_one_looks(shell: Shell) -> None:  # EX-7
    shell.write("night.yaml", NIGHT)
    shell.write("night.rules.yaml", RULES.replace("      do: again\n", "      do: again\n      passive: true\n"))
    assert shell("run", "night.yaml", "--quiet").returncode == 1
    told = shell.ok("why", "last:align[1]")
    assert "on trial, rule 1 of night would do again" in told
    assert "no rule fits this failure; mendflow failures show" in told
    shell.environment["COLUMNS"] = "200"
    assert "rule 1 on trial would run again; failed: no such sample" in shell.ok("history", "last")
    [group] = shell.json("failures")
    assert "nobody took up: 3; on trial: 3" in shell.ok("failures")
    shown = shell.ok("failures", "show", group["id"])
    assert "3 times rule 1 of night, on trial, would have done again" in shown
    assert "3 times nobody took it up" in shown
    assert re.search(r"→ +again +on trial +would have decided 3", shell.ok("rules", "show", "night"))


@pytest.mark.full
def test_a_trail_says_how_many_rules_on_the_way_have_no_line_in_it(shell: Shell) -> None:  # EX-6
    other = "".join(f"    - {{if: fault.exit_code == {code}, do: again}}\n" for code in range(100, 140))
    shell.write("night.yaml", NIGHT)
    shell.write("night.rules.yaml", RULES.replace("  align:\n", f"  align:\n{other}"))
    shell.ok("run", "night.yaml", "--quiet")
    told = shell.ok("why", "--trail", "last:align[1]")
    assert "40 more rules on the way, which did not hold: mendflow rules show night" in told
    assert "rule 41 held: fault.exit_code == 7" in told


@pytest.mark.full
def test_a_rule_that_held_and_concludes_nothing_is_not_said_to_have_failed_to_hold(shell: Shell) -> None:  # EX-6
    shell.write("night.yaml", NIGHT)
    nothing = "rules: night\nabort:\n  align:\n    - if: fault.exit_code == 7\n      note: not here\n"
    shell.write("night.rules.yaml", nothing)
    assert shell("run", "night.yaml", "--quiet").returncode == 1
    told = shell.ok("why", "last:align[1]")
    assert "no rule fits this failure; mendflow failures show" in told
    assert "no rule held" not in told


def test_why_shows_the_trail_of_a_repair(shell: Shell) -> None:  # EX-6
    shell.write("night.yaml", NIGHT)
    shell.write("night.rules.yaml", RULES)
    shell.ok("run", "night.yaml", "--quiet")
    told = shell.ok("why", "last:align[1]")
    assert "align[1] (2) completed in attempt 2." in told
    assert re.search(r"did again as case night-\w+\.x\d: recovered", told)
    assert "    because: it is worth another try\n" in told
    assert "    rule 1 of night: mendflow rules show night --rule 1\n" in told
    trail = shell.ok("why", "last:align[1]", "--trail")
    assert "rules night version 1, tree of align:" in trail
    assert "rule 1 held: fault.exit_code == 7  (fault.exit_code = 7)" in trail
    [repair] = shell.json("why", "last:align[1]")["repairs"]
    assert f"    decision {repair['id']}\n" in trail and repair["id"] not in told
    assert (repair["exlet"], repair["result"], repair["trail"][0]["held"]) == ("again", "recovered", True)
    listed = shell.ok("cases", "--repairs", COLUMNS="160")
    assert f"mends {repair['case']}:align[0]" in listed
    assert len([line for line in listed.splitlines() if "mends" in line]) == 3


@pytest.mark.full
def test_a_repair_by_a_default_rule_is_told_in_the_words_of_its_author(shell: Shell) -> None:  # EX-6
    eats = "python3 -c 'import time; block = bytes([1]) * 100_000_000; time.sleep(1)'"
    shell.write("eats.yaml", f'jobs:\n  eats:\n    memory: 64 MB\n    run: "{eats}"\n')
    assert "more-memory (rule 8 of the default rules): 1 recovered" in shell.ok("run", "eats.yaml", "--quiet")
    told = shell.ok("why", "last:eats")
    assert "    because: The same job in the same memory fails the same way; with more it does not." in told
    assert "    rule 8 of the default rules: mendflow rules show '*' --rule 8\n" in told
    assert re.search(r"it was submitted again, with [\d.]+ MB of memory \(64 MB at first\)", told)
    for jargon in ("fault.category", "tree of", "/abort", "did not hold"):
        assert jargon not in told
    rule = shell.ok("rules", "show", "*", "--rule", "8")
    assert rule.startswith("rule 8 of the default rules, for abort, all tasks\n  The same job in the same memory")
    assert 'if          fault.category == "memory"' in rule and "(rule 5)" in rule
    assert "more-memory: re-submit" in rule and "decided     1 time" in rule
    refused = shell("rules", "show", "*", "--rule", "99")
    assert refused.returncode == 5 and "has no rule 99" in refused.stderr


@pytest.mark.full
def test_repairs_do_not_push_the_case_that_they_mend_out_of_the_list(shell: Shell) -> None:
    shell.write("night.yaml", NIGHT)
    shell.write("night.rules.yaml", RULES)
    shell.ok("run", "night.yaml", "--quiet")
    [case] = shell.json("cases")
    assert case["flow"] == "night"
    assert [each["id"] for each in shell.json("cases", "--limit", "1")] == [case["id"]]
    assert [each["id"] for each in shell.json("cases", "--where", "done > 0 || failed > 0")] == [case["id"]]
    repairs = {each["id"] for each in shell.json("cases", "--repairs")} - {case["id"]}
    assert len(repairs) == 3
    assert {each["id"] for each in shell.json("cases", "--flow", "again")} == repairs
    assert {each["id"] for each in shell.json("cases", "--where", "mends != null")} == repairs
    assert shell.ok("cases", "--count").split()[-1] == "1"


@pytest.mark.full
def test_the_history_is_told_and_written_for_process_mining(shell: Shell) -> None:  # EX-11
    shell.write("night.yaml", NIGHT)
    shell.write("night.rules.yaml", RULES)
    shell.ok("run", "night.yaml", "--quiet")
    told = shell.ok("history")
    assert re.search(r"night v1 rule 1 +decided +align\[0\]", told)
    assert re.search(r"mending +again: re-submit", told)
    entries = shell.json("history", "last")
    assert entries[0]["what"] == "started"
    assert "1 trace, " in shell.ok("history", "last", "--xes", "one.xes")
    assert (shell.folder / "one.xes").read_text().count("<event>") == len(entries)
    assert shell.json("history", "--flow", "night", "--xes", "all.xes")["traces"] == 1
    refused = shell("history", "--flow", "night")
    assert refused.returncode == 2
    assert "--xes" in refused.stderr


@pytest.mark.full
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["rules", "add", "--exlet", "x", "--from", "abc"], 2, "--if CONDITION"),
        (["rules", "add", "--if", "true", "--from", "abc"], 2, "--exlet EXLET"),
        (["rules", "add", "--if", "true", "--exlet", "x"], 2, "--from GROUP"),
        (["rules", "add", "--if", "true", "--exlet", "x", "--type", "abort", "--apply"], 2, "--apply"),
        (["rules", "try", "--if", "true", "--from", "abcdef"], 5, "mendflow failures"),
        (["rules", "show", "none"], 5, "none"),
        (["rules", "add", "--if", "true", "--exlet", "x", "--type", "foo"], 2, "case-pre"),
        (["failures", "--since", "soon"], 2, "90 s"),
        (["failures", "show", "abcdef"], 5, "mendflow failures"),
        (["mend", "last"], 2, "--exlet EXLET"),
        (["rules", "reject", "none", "--exlet", "x"], 5, "there is no decision"),
        (["rules", "levels", "drain", "9"], 5, "there is no level"),
    ],
)
def test_each_mistake_says_what_to_do(night: Shell, words: list[str], code: int, said: str) -> None:
    told = night(*words)
    assert (told.returncode, said in told.stderr) == (code, True), told.stderr
    assert told.stdout == ""
    assert "Traceback" not in told.stderr


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A folder where a night has failed."""
    shell = Shell(tmp_path_factory.mktemp("night"))
    failed_night(shell)
    return shell


def test_levels_patterns_and_rule_sets_are_listed(night: Shell) -> None:  # FM-11
    assert re.search(r"^1 +1 m 0 s +0", night.ok("rules", "levels"), flags=re.MULTILINE)
    assert night.ok("rules", "levels", "drain", "all") == "0 waiting jobs are retried now\n"
    assert "submit-and-notify" in night.ok("rules", "patterns")
    night.write("more.yaml", "repairs:\n  - {name: once-more, does: Submit it again., do: re-submit}\n")
    assert night.ok("rules", "patterns", "add", "more.yaml") == "once-more can be used from now on\n"
    assert "once-more" in [each["name"] for each in night.json("rules", "patterns")["repairs"]]
    assert re.search(r"^\* +0 ", night.ok("rules"), flags=re.MULTILINE)
    assert night.json("rules", "--json") == night.json("rules", "list")


@pytest.mark.full
def test_an_unexpected_exception_is_raised_and_mended_on_the_spot(shell: Shell) -> None:  # EX-9
    shell.environment["MENDFLOW_SERVER"] = served(shell)
    shell.write("show.yaml", SHOW)
    shell.write("touch.yaml", TOUCH)
    case = shell.json("start", "show.yaml")["id"]
    assert "No rule has a trigger" in shell.ok("rules", "raise", "last")
    told = shell.ok("rules", "raise", "last", "flood", "--data", '{"metres": 2}')
    assert f"{case} is suspended" in told
    assert shell.json("cases")[0]["status"] == "suspended"
    assert "waits for a person" in shell.ok("why", "last")
    mended = shell.ok("mend", "last", "--exlet", "touch.yaml", "--if", 'trigger == "flood"', "-m", "a boat")
    assert re.match(rf"{case}: touch by rule \d+ of show as case {case}\.x1\n", mended)
    shell.until(lambda: next(each for each in shell.json("cases") if each["id"] == case)["status"] == "running")
    assert "flood" in shell.ok("rules", "raise", "last")
    assert "touch by rule" in shell.ok("rules", "raise", "last", "flood")
    assert shell("rules", "raise", "last", "flood", "--item", "none").returncode == 5


@pytest.mark.full
def test_a_rule_is_applied_to_every_case_of_the_group_that_waits(shell: Shell) -> None:  # EX-9
    shell.environment["MENDFLOW_SERVER"] = served(shell)
    shell.write("show.yaml", SHOW)
    shell.write("touch.yaml", TOUCH)
    for _ in range(2):
        shell.ok("start", "show.yaml")
        shell.ok("rules", "raise", "last", "flood")
    [group] = shell.json("failures")
    assert group["waiting"] == 2
    told = shell.ok(
        "rules", "add", "--from", group["id"], "--if", 'trigger == "flood"', "--exlet", "touch.yaml", "--apply"
    )
    assert "2 failures that waited are taken up" in told
    shell.until(lambda: {each["status"] for each in shell.json("cases", "--flow", "show")} == {"running"})
    assert shell.json("failures")[0]["waiting"] == 0


@pytest.mark.full
def test_shells_complete_groups_and_rule_sets(shell: Shell) -> None:
    shell.environment["MENDFLOW_SERVER"] = served(shell, "--jobs", "1")
    shell.write("night.yaml", NIGHT)
    shell.ok("start", "night.yaml")
    shell("watch", "last", "--quiet")
    [group] = shell.json("failures")

    def offered(typed: str) -> list[str]:
        words = {"_MENDFLOW_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
        return shell(**words).stdout.split()

    assert offered(f"mendflow failures show {group['id'][:2]}") == [group["id"]]
    assert offered("mendflow rules sh") == ["show"]
    assert "abort" in offered("mendflow rules add --type a")
    assert offered("mendflow rules levels ") == ["drain"]


@pytest.mark.full
def test_a_report_shows_repairs(shell: Shell, tmp_path: Path) -> None:  # EX-11
    shell.write("night.yaml", NIGHT)
    shell.write("night.rules.yaml", RULES)
    result: dict[str, Any] = json.loads(shell.ok("run", "night.yaml", "--quiet", "--json"))
    page = Path(result["report"]).read_text()
    assert '<section id="repairs">' in page
    assert "fault.exit_code == 7" in page
    assert page.count('class="failure repair made-good"') == 3
    linked = set(re.findall(r'href="#(case-\w+)"', page))
    assert linked
    assert linked == set(re.findall(r'id="(case-\w+)"', page))
