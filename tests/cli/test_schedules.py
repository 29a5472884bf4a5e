"""Schedules by command: added, shown, paused, triggered, backfilled, removed; and what is said where no server runs."""

import pytest

from tests.cli.conftest import Shell

FLOW = "name: nightly\ninputs: {day: {type: string}, depth: 3}\njobs: {a: 'echo ${{ inputs.day }}'}\n"
NO_SERVER = "no server runs here; schedules start cases only while `mendflow serve` runs"


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
    assert "night starts nightly: 30 2 * * mon-fri, Europe/Berlin" in added.stdout and NO_SERVER in added.stderr
    assert added.stdout.count(" 02:30+0") == 5
    [view] = shell.json("schedules")
    assert view["spec"]["inputs"] == {"day": "${{ schedule.date }}", "depth": 5} and view["state"] == "active"
    listed = shell("schedules")
    assert "Europe/Berlin" in listed.stdout and NO_SERVER in listed.stderr
    assert "catch-up: latest; overlap: wait" in shell.ok("schedules", "show", "night")
    assert "starts nightly next at" in shell.ok("why", "night")
    assert shell.ok("schedules", "pause", "night") == "night is paused\n"
    assert "is paused and starts nothing" in shell.ok("why", "night")
    assert "night goes on" in shell.ok("schedules", "resume", "night")
    assert shell.ok("schedules", "remove", "night") == "night is removed; its cases stay\n"
    assert shell.json("schedules") == []


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
