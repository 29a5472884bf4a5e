"""Schedules by command: added, shown, paused, triggered, backfilled, removed; and what is said where no server runs."""

import signal

import pytest

from tests.cli.conftest import Shell
from tests.patience import PATIENCE_S

FLOW = "name: nightly\ninputs: {day: {type: string}, depth: 3}\njobs: {a: 'echo ${{ inputs.day }}'}\n"
NO_SERVER = "no server runs here that starts cases at the due times of schedules; `mendflow serve` and `mendflow ui` do"


@pytest.fixture
def deployed(shell: Shell) -> Shell:
    shell.write("nightly.yaml", FLOW)
    shell.ok("flows", "deploy", "nightly.yaml")
    return shell


def test_a_schedule_is_added_shown_paused_and_removed(deployed: Shell) -> None:  # DU-6
    shell = deployed
    assert "There are no schedules" in shell.ok("schedules")
    given = ("--cron", "30 2 * * mon-fri", "--timezone", "Europe/Berlin", "--input", "day=${{ schedule.date }}")
    added = shell("schedules", "add", "nightly", "--name", "night", *given, "--input", "depth=5")
    assert added.returncode == 0, added.stderr
    assert "night starts nightly: 30 2 * * mon-fri, Europe/Berlin" in added.stdout and NO_SERVER in " ".join(
        added.stderr.split()
    )
    assert added.stdout.count(" 02:30+0") == 5
    [view] = shell.json("schedules")
    assert view["spec"]["inputs"] == {"day": "${{ schedule.date }}", "depth": 5} and view["state"] == "active"
    listed = shell("schedules")
    assert "Europe/Berlin" in listed.stdout and NO_SERVER in " ".join(listed.stderr.split())
    assert "catch-up: latest; overlap: wait" in shell.ok("schedules", "show", "night")
    why = " ".join(shell.ok("why", "night").split())
    assert "is due next at" in why and f"starts no case of nightly now: {NO_SERVER}" in why
    assert shell.ok("schedules", "pause", "night") == "night is paused\n"
    assert "is paused and starts nothing" in shell.ok("why", "night")
    assert "night goes on" in shell.ok("schedules", "resume", "night")
    assert shell.ok("schedules", "remove", "night") == "night is removed; its cases stay\n"
    assert shell.json("schedules") == []


@pytest.mark.full
def test_schedules_start_cases_while_the_web_app_is_served(shell: Shell) -> None:  # DU-6
    shell.write("tick.yaml", "name: tick\njobs: {a: echo tick}\n")
    shell.ok("flows", "deploy", "tick.yaml")
    shell.ok("schedules", "add", "tick", "--every", "1 s")
    ui = shell.start("ui", "--no-browser", "--jobs", "1")
    shell.until((shell.folder / ".mendflow" / "server.json").exists)
    shell.until(lambda: shell.json("schedules", "show", "tick")["last_status"] == "completed")
    assert shell.json("schedules", "show", "tick")["not_served"] == ""
    ui.send_signal(signal.SIGINT)
    assert ui.wait(PATIENCE_S) == 0


def test_who_adds_a_schedule_is_told_that_a_file_is_kept_as_it_is(shell: Shell) -> None:  # DU-6
    shell.write("count.yaml", "name: count\ninputs: {data: {type: file}, day: {type: string}}\njobs: {a: 'true'}\n")
    shell.write("data.csv", "a,b\n")
    shell.ok("flows", "deploy", "count.yaml")
    added = shell.ok("schedules", "add", "count", "--cron", "@daily", "--input", "data=data.csv", "--input", "day=x")
    assert "  input data: its file as it is now; every case gets that." in added and "input day" not in added


def test_a_case_is_started_by_hand_and_past_times_are_listed(deployed: Shell) -> None:  # DU-6
    shell = deployed
    shell.ok(
        "schedules", "add", "nightly", "--name", "night", "--cron", "@daily", "--input", "day=${{ schedule.date }}"
    )
    started = shell("schedules", "trigger", "night")
    assert started.returncode == 0 and "is started" in started.stdout and "mendflow resume" in started.stderr
    listed = shell.ok("schedules", "backfill", "night", "--from", "2026-01-01", "--to", "2026-01-03", "--dry-run")
    assert listed.startswith("3 of 3 due times of night would be started; 0 have a case already\n")
    assert "  2026-01-02T00:00:00+00:00  new\n" in listed
    assert "triggered" in shell.ok("schedules", "show", "night")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--cron", "0 0 2 * * ?"), "there are five here, without these: `0 2 * * *`"),
        (("--cron", "@daily", "--timezone", "Berlin"), "did you mean Europe/Berlin?"),
        (("--every", "often"), "is not a time"),
        ((), "say when: either cron"),
        (("--cron", "@daily", "--overlap", "never"), "--overlap 'never' is not one of wait, skip, allow, replace"),
        (("--cron", "@daily", "--from", "soon"), "is no date or time"),
        (("--cron", "@daily"), "the flow nightly needs day; give --input day=..."),
        (("--cron", "@daily", "--input", "dya=${{ schedule.date }}"), "has no input dya"),
        (("--cron", "@daily", "--input", "day=${{ jobs.x }}"), "they ask for `jobs.x`"),
    ],
)
def test_what_is_wrong_is_told_with_what_to_do(deployed: Shell, words: tuple[str, ...], told: str) -> None:  # DU-6
    refused = deployed("schedules", "add", "nightly", "--name", "night", *words)
    assert refused.returncode != 0 and told in refused.stderr, refused.stderr


def test_a_flow_brings_its_schedule_along(shell: Shell) -> None:  # DU-6
    text = FLOW.replace("jobs:", 'on: {schedule: {cron: "@daily", inputs: {day: "${{ schedule.date }}"}}}\njobs:')
    shell.write("nightly.yaml", text)
    told = shell.ok("flows", "deploy", "nightly.yaml")
    assert "each due time of `@daily`, UTC, starts a case" in told
    assert "no server runs here; this happens while `mendflow serve` runs" in told
    [view] = shell.json("schedules")
    assert view["spec"]["name"] == "nightly" and view["of_flow"]
    assert "belongs to flow nightly" in shell("schedules", "remove", "nightly").stderr
    shell.ok("flows", "remove", "nightly")
    assert shell.json("schedules") == []


def test_a_schedule_of_a_flow_that_is_not_there_is_refused(shell: Shell) -> None:  # DU-6
    refused = shell("schedules", "add", "nightly", "--name", "night", "--cron", "@daily")
    assert refused.returncode != 0 and "nightly" in refused.stderr


def test_a_schedule_is_named_like_its_flow_and_never_changed_by_accident(deployed: Shell) -> None:  # DU-6
    every = ("--cron", "@daily", "--input", "day=${{ schedule.date }}")
    assert deployed.ok("schedules", "add", "nightly", *every).startswith("nightly starts nightly: ")
    refused = deployed("schedules", "add", "nightly", *every)
    assert "to change it say --name nightly" in " ".join(refused.stderr.split())
    assert deployed("schedules", "add", "nightly", "--name", "nightly", *every).returncode == 0


SCHEDULED = """
name: qc
inputs: {samples: {type: table}, depth: {type: number, default: 1}, version: {type: string, default: a}}
on: {schedule: {cron: "@daily", inputs: {GIVEN}}}
jobs: {a: "echo ${{ inputs.samples.size() }} ${{ inputs.version }}"}
"""


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("samples: none.tsv", "4:51: none.tsv: there is no such file"),
        ("samples: samples.txt", "4:51: the input `samples` is declared as `type: table`; it must be the path of a t"),
        ("samples: [], depth: deep", "4:62: the input `depth` is declared as `type: number`; it must be a number, not"),
    ],
)
def test_what_a_schedule_cannot_give_is_told_by_check_and_by_deploy(shell: Shell, given: str, told: str) -> None:
    # DU-6
    shell.write("qc.yaml", SCHEDULED.replace("GIVEN", given))
    for words in (("check",), ("flows", "deploy")):
        refused = shell(*words, "qc.yaml")
        assert refused.returncode != 0 and told in " ".join((refused.stdout + refused.stderr).split()), refused
    assert not (shell.folder / ".mendflow").exists() or shell.json("flows") == []


def test_a_schedule_gives_a_table_as_it_is_when_it_is_due(shell: Shell) -> None:  # DU-6
    shell.write("samples.tsv", "sample\na\n")
    shell.write("qc.yaml", SCHEDULED.replace("GIVEN", "samples: samples.tsv, depth: 1.10, version: 1.10"))
    assert "no problems" in shell.ok("check", "qc.yaml")
    shell.ok("flows", "deploy", "qc.yaml")
    shell.write("samples.tsv", "sample\na\nb\n")
    inputs = shell.json("schedules", "trigger", "qc")["inputs"]
    assert inputs == {"samples": [{"sample": "a"}, {"sample": "b"}], "depth": 1.1, "version": "1.10"}


def test_a_schedule_is_not_changed_by_a_file_that_is_tried_out(shell: Shell) -> None:  # DU-6
    text = SCHEDULED.replace("GIVEN", "samples: [{sample: a}]")
    shell.write("qc.yaml", text)
    shell.ok("flows", "deploy", "qc.yaml")
    assert "stays deployed" not in shell("start", "qc.yaml", "--input", "samples=[]").stderr
    shell.write("qc.yaml", text.replace("echo", "echo changed"))
    for command in ("start", "run"):
        done = shell(command, "qc.yaml", "--input", "samples=[]")
        told = " ".join(done.stderr.split())
        assert done.returncode == 0, done.stderr
        assert "this runs qc once, whatever its `on:` says; `mendflow flows deploy qc.yaml` deploys it" in told
        assert "qc version 1 stays deployed: schedules, watches and `mendflow start qc` go on with it" in told
        [flow] = shell.json("flows")
        assert flow["version"] == 1 and shell.json("schedules", "trigger", "qc")["digest"] == flow["digest"]
        assert shell.json("start", "qc", "--input", "samples=[]")["digest"] == flow["digest"]
    assert "qc version 2" in shell.ok("flows", "deploy", "qc.yaml")
    [changed] = shell.json("flows")
    assert shell.json("schedules", "trigger", "qc")["digest"] == changed["digest"] != flow["digest"]


def test_what_was_only_run_says_so_and_a_schedule_keeps_it(shell: Shell) -> None:  # DU-6
    shell.write("nightly.yaml", FLOW)
    shell.ok("run", "nightly.yaml", "--input", "day=x", "--quiet")
    assert "nobody has deployed it, cases were started from its file" in shell.ok("flows", "show", "nightly")
    shell.ok("schedules", "add", "nightly", "--cron", "@daily", "--input", "day=${{ schedule.date }}")
    assert "nobody has deployed it" not in shell.ok("flows", "show", "nightly")
    shell.write("nightly.yaml", FLOW.replace("echo", "echo changed"))
    told = " ".join(shell("start", "nightly.yaml", "--input", "day=x").stderr.split())
    assert "nightly version 1 stays deployed" in told and "`mendflow flows deploy nightly.yaml` deploys this" in told


REPAIRED = """
name: qc
inputs:
  samples: {type: table, columns: {fastq: file}}
  panel: {type: file}
  extra: {type: files, default: "extra/*.txt"}
  day: {type: string}
on: {schedule: {cron: "@daily", inputs: {samples: samples.csv, panel: panel.txt, day: "${{ schedule.date }}"}}}
jobs:
  look:
    for-each: {s: "${{ inputs.samples }}"}
    inputs: {fastq: "${{ s.fastq }}", panel: "${{ inputs.panel }}"}
    run: cat fastq panel && grep -q good fastq
"""


def test_a_case_of_a_schedule_is_run_again_with_the_files_that_were_corrected(shell: Shell) -> None:  # DU-2, DU-6
    shell.write("qc.yaml", REPAIRED)
    shell.write("samples.csv", "sample,fastq\na,fastq/a.fq\n")
    (shell.folder / "fastq").mkdir()
    (shell.folder / "extra").mkdir()
    shell.write("fastq/a.fq", "bad\n")
    shell.write("panel.txt", "panel\n")
    shell.write("extra/one.txt", "one\n")
    shell.ok("flows", "deploy", "qc.yaml")
    case = shell.json("schedules", "trigger", "qc")
    here = str(shell.folder)
    assert case["origin"]["inputs"] == {
        "samples": f"@{here}/samples.csv",
        "panel": f"{here}/panel.txt",
        "extra": f"{here}/extra/*.txt",
    }
    assert shell("resume", case["id"], "--quiet").returncode == 1
    unchanged = shell("rerun", case["id"], "--from-failed", "--quiet")
    assert unchanged.returncode == 1 and "has changed" not in unchanged.stderr, unchanged.stderr
    shell.write("fastq/a.fq", "good\n")
    shell.write("samples.csv", "sample,fastq\na,fastq/a.fq\nb,fastq/a.fq\n")
    again = shell("rerun", case["id"], "--from-failed", "--quiet")
    told = " ".join(again.stderr.split())
    assert again.returncode == 0, told
    assert f"input samples has changed since {case['id']}: it is taken anew from {here}/samples.csv" in told
    assert "input panel has changed" not in told and "input extra has changed" not in told
    newest = shell.json("cases")[0]
    assert [row["sample"] for row in newest["inputs"]["samples"]] == ["a", "b"]
    assert newest["inputs"]["day"] == case["inputs"]["day"]


def test_what_a_flow_needs_and_nobody_has_set_is_told_when_it_is_deployed_scheduled_and_triggered(shell: Shell) -> None:
    # DU-6
    shell.write(
        "bound.yaml",
        "name: bound\non: {schedule: '@daily'}\n"
        'jobs: {a: {run: "true", limits: {licences: 1}, secrets: {KEY: portal}}}\n',
    )
    for words in (
        ("flows", "deploy", "bound.yaml"),
        ("schedules", "trigger", "bound"),
        ("schedules", "add", "bound", "--name", "more", "--cron", "@daily"),
    ):
        done = shell(*words)
        told = " ".join(done.stderr.split())
        assert done.returncode == 0, told
        assert "job a uses the limit licences, which nobody has set: it waits until an administrator does" in told
        assert "job a uses the secret portal, which is not there, and will fail without it" in told
    shell.ok("limits", "set", "licences", "1")
    assert "licences" not in shell("schedules", "trigger", "bound").stderr
