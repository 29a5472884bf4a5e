"""A case that is run again works on the files as they are now, and says which have changed."""

import pytest

from tests.cli.conftest import Shell

READS = """
name: reads
inputs: {table: {type: file}, many: {type: files, default: "part-*"}, word: {type: string}, same: {type: file}}
jobs:
  early: {run: cat in, inputs: {in: "${{ inputs.same }}"}}
  late:
    needs: early
    inputs: {table: "${{ inputs.table }}", parts/: "${{ inputs.many }}", own: own.txt}
    run: cat table parts/* own; echo ${{ inputs.word }}; grep -q good table
"""
GIVEN = ("--input", "table=table.txt", "--input", "word=@word.txt", "--input", "same=same.txt")


@pytest.mark.full
def test_files_that_were_corrected_since_are_taken_anew_by_a_rerun(shell: Shell) -> None:
    shell.write("reads.yaml", READS)
    for name in ("table.txt", "word.txt", "same.txt", "part-1", "own.txt"):
        shell.write(name, f"old {name}\n" if name != "word.txt" else "old")
    assert shell("run", "reads.yaml", "--quiet", *GIVEN).returncode == 1
    shell.write("table.txt", "good table\n")
    shell.write("word.txt", "new")
    shell.write("part-2", "second part\n")
    done = shell("rerun", "last", "--from-failed", "--quiet")
    assert done.returncode == 0, done.stderr
    told = [line for line in " ".join(done.stderr.split()).split("input ") if line]
    assert [line.split()[0] for line in told] == ["table", "word", "many"]
    assert all(f"taken anew from {shell.folder}/" in line for line in told)
    assert shell.ok("logs", "last:late") == "good table\nold part-1\nsecond part\nold own.txt\nnew\n"
    assert {item["item"]: item["state"] for item in shell.json("items", "last")} == {
        "early": "cached",
        "late": "completed",
    }


def test_a_file_of_the_flow_that_was_corrected_since_is_taken_by_a_rerun(shell: Shell) -> None:  # DU-2
    shell.write("reads.yaml", READS)
    for name in ("table.txt", "word.txt", "same.txt", "part-1", "own.txt"):
        shell.write(name, name)
    assert shell("run", "reads.yaml", "--quiet", *GIVEN).returncode == 1
    shell.write("own.txt", "corrected\n")
    shell.write("unrelated.txt", "new beside the flow")
    (shell.folder / "table.txt").unlink()
    done = shell("rerun", "last", "--from-failed", "--quiet")
    told = " ".join(done.stderr.split())
    assert "own.txt has changed since reads-" in told and "it is taken as now; --unchanged takes everything" in told
    assert "there is no file" in told and "taken as it was" in told
    assert "corrected" in shell.ok("logs", "last:late")
    shell.write("own.txt", "corrected again\n")
    assert "own.txt" not in shell("rerun", "last", "--from-failed", "--quiet", "--unchanged").stderr
    assert "corrected again" not in shell.ok("logs", "last:late")
    anew = shell("rerun", "last", "--no-cache", "--quiet")
    assert "own.txt has changed since" in anew.stderr and "leave one away" not in anew.stderr
    assert "corrected again" in shell.ok("logs", "last:late")


LANES = """
name: lanes
inputs: {lanes: {type: table, default: lanes.csv, columns: {reads: file}}}
jobs:
  first: {run: echo 1 > out, files: {out: out}}
  count:
    for-each: "${{ inputs.lanes }}"
    inputs: {reads: "${{ item.reads }}", one: "${{ jobs.first.files.out }}"}
    run: grep -c good reads
"""


def test_a_table_or_a_path_that_was_corrected_since_is_taken_by_a_rerun(shell: Shell) -> None:  # DU-2
    shell.write("lanes.yaml", LANES)
    shell.write("a.txt", "good\n")
    shell.write("b.txt", "bad\n")
    shell.write("c.txt", "good\n")
    shell.write("lanes.csv", "sample,reads\na,a.txt\nb,b.txt\n")
    assert shell("run", "lanes.yaml", "--quiet").returncode == 1
    shell.write("lanes.csv", "sample,reads\na,a.txt\nb,c.txt\n")
    done = shell("rerun", "last", "--from-failed", "--quiet")
    told = " ".join(done.stderr.split())
    assert done.returncode == 0 and "lanes.csv has changed since lanes-" in told, done
    assert "2 cached" in done.stdout, "what had succeeded is not run again"
    shell.write("lanes.yaml", LANES.replace("grep -c good", "grep -c bad"))
    assert shell("rerun", "last", "--quiet").returncode == 1, "the corrected command is run"
    shell.write("lanes.yaml", LANES + "  broken\n")
    refused = shell("rerun", "last", "--from-failed", "--quiet")
    assert refused.returncode == 2 and "lanes.yaml" in refused.stderr, "and nothing that is no flow is passed over"


CHAIN = """
name: chain
jobs:
  before: {run: 'echo x >> HERE/before; echo 1 > a', files: {a: a}}
  middle: {inputs: {a: "${{ jobs.before.files.a }}"}, run: 'echo x >> HERE/middle; cp a b', files: {b: b}}
  after: {inputs: {b: "${{ jobs.middle.files.b }}"}, run: 'echo x >> HERE/after; cp b c', files: {c: c}}
  beside: {run: 'echo x >> HERE/beside; echo 1 > d', files: {d: d}}
"""


@pytest.mark.full
def test_one_job_and_what_depends_on_it_run_again_when_that_is_said(shell: Shell) -> None:
    shell.write("chain.yaml", CHAIN.replace("HERE", str(shell.folder)))
    names = ("before", "middle", "after", "beside")

    def ran() -> list[int]:
        return [len((shell.folder / name).read_text().splitlines()) for name in names]

    shell.ok("run", "chain.yaml", "--quiet")
    assert "4 cached" in shell.ok("run", "chain.yaml", "--cached", "--quiet")
    again = ("run", "chain.yaml", "--cached", "--again", "middle")
    plan = {item["name"]: item for item in shell.json(*again, "--dry-run")}
    assert [plan[name].get("found", 0) for name in names] == [1, 0, 0, 1]
    assert "middle was to run again, whatever is known" in plan["middle"]["jobs"][0]["reason"]
    told = shell.ok(*again, "--quiet")
    assert ran() == [1, 2, 2, 1]
    assert "2 done, 2 cached" in told
    assert "ran again: middle: middle was to run again, whatever is known" in told
    assert "ran again: after: it depends on what was to run again: middle" in told
    assert "3 done, 1 cached" in shell.ok("rerun", "last", "--again", "before", "--quiet")
    assert "1 done, 3 cached" in shell.ok("rerun", "last", "--again", "after", "--quiet")
    assert ran() == [2, 3, 4, 1]
    for more in ((), ("--dry-run",)):
        refused = shell("run", "chain.yaml", "--again", "midle", *more)
        assert refused.returncode == 2
        told = " ".join(refused.stderr.split())
        assert "flow chain has no job midle that could run again; it has before, middle" in told


@pytest.mark.full
def test_a_called_flow_runs_again_whole_with_the_call_that_is_to_run_again(shell: Shell) -> None:
    shell.write("chain.yaml", CHAIN.replace("HERE", str(shell.folder)))
    shell.write("calls.yaml", "jobs:\n  inner: {call: chain.yaml}\n  last: {needs: inner, run: echo 1}\n")
    shell.ok("run", "calls.yaml", "--quiet")
    assert "cached" in shell.ok("run", "calls.yaml", "--cached", "--quiet")
    told = shell.ok("run", "calls.yaml", "--cached", "--again", "inner", "--quiet")
    assert "5 done in 2 cases" in told


def test_another_file_runs_a_case_again_if_its_flow_has_the_same_name(shell: Shell) -> None:  # DU-2
    text = "name: one\njobs: {work: {run: exit 3}}\n"
    shell.write("one.yaml", text)
    assert shell("run", "one.yaml", "--quiet").returncode == 1
    case = shell.json("cases")[0]["id"]
    shell.write("other.yaml", text.replace("exit 3", "echo").replace("one", "other"))
    refused = shell("rerun", case, "--flow", "other.yaml", "--quiet")
    assert refused.returncode == 2
    told = " ".join(refused.stderr.split())
    assert f"case {case} is of flow one, and not of other: a case is run again with a flow of the same name" in told
    shell.write("corrected.yaml", text.replace("exit 3", "echo"))
    shell.ok("rerun", case, "--flow", "corrected.yaml", "--quiet")
    newest = shell.json("cases")[0]
    assert (newest["stands_for"], newest["origin"]["flow"]) == (case, str(shell.folder / "corrected.yaml"))
    assert len(shell.json("cases")) == 2
