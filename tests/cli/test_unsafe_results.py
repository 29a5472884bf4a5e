"""What is not declared cannot be compared: no hint leads to a stale result, and one that was asked for is named."""

import json
import shlex
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Shell

FLOW = """
name: stale
jobs:
  load: {run: 'cat HERE/data.csv > rows.txt', files: {rows: rows.txt}}
  sort: {inputs: {in.txt: "${{ jobs.load.files.rows }}"}, run: sort in.txt > out.txt, files: {out: out.txt}}
  parse: {inputs: {in.txt: "${{ jobs.sort.files.out }}"}, run: 'grep -q good in.txt'}
outputs: {rows: "${{ jobs.load.files.rows }}"}
"""
MADE = """
name: made
jobs:
  make: {run: echo one > out.txt, files: {out: out.txt}, cache: true}
outputs: {out: "${{ jobs.make.files.out }}"}
"""
LARGE = """
name: made
jobs:
  make: {run: head -c 2000000 /dev/zero > out.txt, files: {out: out.txt}, cache: true}
  use:
    run: wc -c < in.txt > size.txt
    inputs: {in.txt: "${{ jobs.make.files.out }}"}
    files: {size: size.txt}
    cache: false
outputs: {size: "${{ jobs.use.files.size }}"}
"""
HOME = "from pathlib import Path; Path('out.txt').write_text((Path.home() / 'ref.csv').read_text())"
ABOVE = """
from pathlib import Path
p = Path.cwd()
while not (p / "ref.csv").exists(): p = p.parent
Path("out.txt").write_text((p / "ref.csv").read_text())
"""
ROUNDABOUT = {
    "branch": ("bash", 'if [ ! -s in.txt ]; then MODE=empty; fi\necho "mode $MODE" > out.txt', "$MODE"),
    "inner": ("bash", "python3 -c 'import os; os.system(\"echo $MODE > out.txt\")'", "$MODE"),
    "home": ("python", HOME, "the home folder"),
    "above": ("python", ABOVE, "a folder above its own"),
    "gone": ("bash", "o=$PWD; cd --; cp ref.csv $o/out.txt", "~"),
    "lock": ("bash", "flock l -c 'cat ~/ref.csv' > out.txt", "~/ref.csv"),
}


def test_the_hint_after_a_failure_does_not_lead_to_a_stale_result(shell: Shell) -> None:
    shell.write("stale.yaml", FLOW.replace("HERE", str(shell.folder)))
    shell.write("data.csv", "bad\n")
    failed = shell("run", "stale.yaml", "--quiet")
    assert failed.returncode == 1
    assert "or fix it and mendflow run stale.yaml\n" in failed.stdout
    shell.write("data.csv", "good\n")
    told = shell.ok("run", "stale.yaml", "--quiet")
    assert "3 done" in told
    assert "taken although" not in told


@pytest.mark.full
def test_results_that_were_asked_for_and_cannot_be_compared_are_named_once(shell: Shell) -> None:
    shell.write("stale.yaml", FLOW.replace("HERE", str(shell.folder)).replace("grep -q good", "cat"))
    shell.write("data.csv", "bad\n")
    shell.ok("run", "stale.yaml", "--quiet")
    told = shell.ok("run", "stale.yaml", "--quiet", "--cached")
    assert "taken although not all that they read or do is declared: load, parse\n" in told
    why = shell.ok("why", "last:load")
    assert "although it declares no inputs, so nothing tells what it is made from" in why
    assert "taken although" not in shell.ok("run", "stale.yaml", "--quiet")


@pytest.mark.full
def test_the_hint_repeats_what_was_asked_for(shell: Shell) -> None:
    shell.write("bad.yaml", "jobs: {a: {run: exit 3}}\n")
    for word in ("--cached", "--no-cache"):
        assert f"fix it and mendflow run bad.yaml {word}\n" in shell("run", "bad.yaml", "--quiet", word).stdout
    words = ["--input", "a=1", "--input", "b=x y", "--xpath2-as-1", "--on-unhandled", "fail", "--output-dir", "out"]
    shell.write("bad.yaml", "inputs: {a: {}, b: {}}\njobs: {a: {run: exit 3}}\n")
    told = shell("run", "bad.yaml", "--quiet", *words).stdout
    assert f"fix it and {shlex.join(['mendflow', 'run', 'bad.yaml', *words])}\n" in told


@pytest.mark.full
def test_a_stored_file_that_was_damaged_is_made_and_stored_again_by_the_next_run(shell: Shell) -> None:  # DU-2
    shell.write("made.yaml", MADE)
    shell.ok("run", "made.yaml", "--quiet")
    for stored in (shell.folder / ".mendflow" / "files").glob("??/*"):
        stored.write_bytes(b"0" * stored.stat().st_size)
    told = shell.ok("run", "made.yaml", "--quiet", "--output-dir", "got")
    assert "ran again: make: its file out was damaged" in told
    assert (shell.folder / "got" / "out.txt").read_text() == "one\n"
    assert "1 cached" in shell.ok("run", "made.yaml", "--quiet")


@pytest.mark.full
@pytest.mark.parametrize("damage", ["changed", "gone"])
def test_a_large_stored_file_that_was_damaged_is_made_again_in_the_case_that_needs_it(
    shell: Shell, damage: str
) -> None:  # DU-2
    shell.write("made.yaml", LARGE)
    shell.ok("run", "made.yaml", "--quiet")
    stored = large_file(shell)
    if damage == "gone":
        stored.unlink()
    else:
        stored.write_bytes(b"1" * stored.stat().st_size)
    told = shell.ok("run", "made.yaml", "--quiet", "--output-dir", "got")
    assert "ran again: make: its file out " + ("is not stored" if damage == "gone" else "was damaged") in told
    assert "its file out" in shell.ok("why", "last:make")
    assert (shell.folder / "got" / "size.txt").read_text().strip() == "2000000"
    assert "1 done, 1 cached" in shell.ok("run", "made.yaml", "--quiet")


@pytest.mark.full
def test_damage_that_only_reading_a_file_shows_fails_its_job_at_once_and_the_next_run_makes_it_again(
    shell: Shell,
) -> None:  # DU-2
    shell.write("made.yaml", LARGE)
    shell.ok("run", "made.yaml", "--quiet")
    stored = large_file(shell)
    stored.write_bytes(b"1" * stored.stat().st_size)
    state = stored.stat()  # as a disk does it: nobody seems to have written to the file
    whole = (state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
    (shell.folder / ".mendflow" / "files" / "verified" / stored.name).write_text(" ".join(map(str, whole)))
    shutil.rmtree(shell.folder / ".mendflow" / "work" / "cache")  # the pilot has a whole one
    failed = shell("run", "made.yaml", "--quiet")
    assert failed.returncode and "was damaged, and is put aside" in failed.stdout
    assert "run the flow that made it again" in " ".join(shell.ok("why", "last:use").split())
    told = shell.ok("run", "made.yaml", "--quiet")
    assert "ran again: make: its file out was damaged" in told


def large_file(shell: Shell) -> Path:
    places = (shell.folder / ".mendflow" / "files").glob("??/*")
    return next(each for each in places if each.stat().st_size == 2_000_000)


@pytest.mark.full
def test_what_a_script_reads_in_a_roundabout_way_makes_it_run_again(shell: Shell) -> None:  # DU-2
    scripts = {name: (words, script) for name, (words, script, _) in ROUNDABOUT.items()}
    scripts["plain"] = ("bash", "if [ -s in.txt ]; then MODE=1; else MODE=2; fi; flock l echo $MODE > out.txt")
    shell.write("in.txt", "x\n")
    shell.write("all.yaml", json.dumps({"name": "all", "jobs": {name: job(*each) for name, each in scripts.items()}}))
    for value in ("1", "2"):
        shell.write("ref.csv", value)
        told = shell.ok("run", "all.yaml", "--quiet", MODE=value)
    assert "6 done, 1 cached" in told
    for name, (_, _, named) in ROUNDABOUT.items():
        assert f" {named}, which" in shell.ok("why", f"last:{name}")


def job(shell: str, script: str) -> dict[str, object]:
    return {"shell": shell, "run": script, "inputs": {"in.txt": "in.txt"}, "files": {"out": "out.txt"}}
