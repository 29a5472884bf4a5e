"""What a summary counts: each item once, as what it ended as; and what was undone is told."""

import re

import pytest

from tests.cli.conftest import Shell

UNDOES = """
name: trip
inputs: {folder: {type: string}}
jobs:
  seat: {run: "true", compensation: "echo seat >> ${{ inputs.folder }}/undone"}
  hotel:
    needs: seat
    retries: 1
    run: test -e ${{ inputs.folder }}/tried || { touch ${{ inputs.folder }}/tried; exit 3; }
    compensation: echo hotel >> ${{ inputs.folder }}/undone
  inner: {needs: hotel, call: inner.yaml}
  pay: {needs: inner, run: exit 4HANDLED}
  after: {needs: pay, run: "true"}
"""
INNER = "name: inner\njobs: {one: 'true', two: 'true'}\n"


def run_trip(shell: Shell, handled: str = "") -> str:
    shell.write("trip.yaml", UNDOES.replace("HANDLED", handled))
    shell.write("inner.yaml", INNER)
    done = shell("run", "trip.yaml", "--quiet", "--input", f"folder={shell.folder}")
    assert done.returncode == 1, done.stderr
    return done.stdout


@pytest.mark.full
def test_each_item_is_counted_once_as_what_it_ended_as_and_repairs_are_not_counted(shell: Shell) -> None:
    told = run_trip(shell)
    assert "  jobs         4 done (1 mended), 1 failed, 1 skipped in 2 cases\n" in told
    assert "  calls        1 done\n" in told
    jobs = [item for case in own_cases(shell) for item in shell.json("items", case) if item["kind"] == "job"]
    line = re.search(r"jobs +(.*) in 2 cases", told)
    assert line is not None
    counted = re.sub(r" \(\d+ mended\)", "", line[1])
    assert sum(int(part.split()[0]) for part in counted.split(", ")) == len(jobs) == 6


def own_cases(shell: Shell) -> list[str]:
    return [case["id"] for case in shell.json("cases") if case["flow"] in ("trip", "inner")]


@pytest.mark.full
def test_what_was_undone_is_told_by_summary_why_and_report(shell: Shell) -> None:
    told = run_trip(shell)
    assert (shell.folder / "undone").read_text() == "hotel\nseat\n"
    undone = re.search(
        r"^undone: hotel, seat \(by give-up, rule \d+ of the default rules, case trip-\S+\.x\d\)$", told, re.MULTILINE
    )
    assert undone is not None, told
    assert "unwind" not in told, "how it was undone is no news"
    assert undone[0].strip() in shell.ok("why", "last")
    assert "it was undone (by give-up" in " ".join(shell.ok("why", "last:seat").split())
    assert "undone" not in shell.ok("why", "last:inner")
    assert "mendflow rerun trip-" in (why := " ".join(shell.ok("why", "last").split()))
    assert "go on from where it stood" not in why, "what it had done is undone"
    shell.ok("report", "last", "-o", "page.html")
    assert "undone: hotel, seat (by give-up" in (shell.folder / "page.html").read_text()
    group = shell.json("failures")[0]["id"]
    again = shell("rerun", "--group", group, "--quiet").stdout
    assert "what case trip-" in again and "had completed was undone" in " ".join(again.split())


@pytest.mark.full
def test_what_the_flow_itself_has_undone_is_told_too(shell: Shell) -> None:
    told = run_trip(shell, ', on-failure: "true"')
    assert (shell.folder / "undone").read_text() == "hotel\nseat\n"
    assert "undone: hotel, seat (by the flow itself)\n" in told
    why = " ".join(shell.ok("why", "last").split())
    assert "undone: hotel, seat (by the flow itself)" in why and "go on from where it stood" not in why
    shell.ok("report", "last", "-o", "page.html")
    assert "undone: hotel, seat (by the flow itself)" in (shell.folder / "page.html").read_text()
    [line] = [line for line in told.splitlines() if line.startswith("  jobs ")]
    counted = line.split(maxsplit=1)[1]
    assert counted == "7 done (1 mended), 1 failed, 1 skipped in 2 cases", "as mendflow items lists them"


def test_what_failed_and_was_tolerated_is_named(shell: Shell) -> None:  # DU-1
    loop = (
        'for-each: {n: [1, 2, 3], tolerate: 1}\n    run: test ${{ n }} != 2 || { echo "no such thing" >&2; exit 3; }\n'
    )
    shell.write("some.yaml", f"jobs:\n  try:\n    {loop}")
    told = shell.ok("run", "some.yaml", "--quiet")
    assert "2 done, 1 failed" in told
    assert "failed, and the flow went on:\n  try[1] (2): " in told and "exit code 3" in told


GROWS = """
name: grows
jobs:
  clean:
    for-each: [s1, s2]
    run: 'echo x >> HERE/${{ item }}; [ $(wc -l < HERE/${{ item }}) = 3 ] || exit 3'
  names:
    run: printf 'all=["%s","%s","short"]\\n' $(printf %050d 1) $(printf %050d 2) >> "$MENDFLOW_OUTPUT"
outputs: {all: "${{ jobs.names.outputs.all }}"}
"""
RULES = "abort: {clean: [{if: fault.exit_code == 3, do: again}]}\nexlets: {again: [{re-submit: }]}\n"


@pytest.mark.full
def test_an_item_that_was_repaired_several_times_is_told_once_by_its_end(shell: Shell) -> None:
    shell.write("grows.yaml", GROWS.replace("HERE", str(shell.folder)))
    shell.write("grows.rules.yaml", RULES)
    told = shell.ok("run", "grows.yaml", "--quiet")
    assert "again (rule 1 of grows): 2 recovered, in 4 repairs" in told
    why = shell.ok("why", "last:clean[0]")
    assert why.count("did again as case") == 2
    assert ": recovered in" in why and ": failed again in" in why and "given up" not in why
    handled = shell.ok("failures")
    assert "2 recovered" in handled and "2 without success" in handled
    assert f"  all: 3 values\n    {1:050}\n    {2:050}\n    short\n" in told


def test_the_summary_says_what_was_skipped_and_why(shell: Shell) -> None:  # UI-1
    shell.write(
        "left-out.yaml",
        "jobs:\n  a: {run: echo a}\n  review: {needs: a, if: 1 > 2, run: echo b}\n"
        "  publish: {needs: review, run: echo c}\n"
        "  many: {for-each: [1, 2, 3], if: 1 > 2, run: echo d}\n",
    )
    told = shell.ok("run", "left-out.yaml", "--quiet")
    assert "skipped: review (its condition `1 > 2` is false)\n" in told
    assert "skipped: publish (it needs review, which did not complete)\n" in told
    assert told.count("\nskipped: ") <= 3
