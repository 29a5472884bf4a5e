"""Scripts as a newcomer writes them, from the command line to the job and back."""

import socket

import pytest

from mendflow.cli.output_files import RECORD
from tests.cli.conftest import Shell

BROKEN = """\
name: broken
jobs:
  index:
    run: |
      cat missing.bam | sort > out.txt
      no_such_program index out.txt
      echo done
"""
OUTPUTS = """\
name: outputs
inputs: {version: null}
jobs:
  say:
    run: |
      for line in version=1.10 sha=1234567e8 id=00123 n=5 'rows=[1, 2]' name=Größe; do
        echo "$line" >> "$MENDFLOW_OUTPUT"
      done
outputs: {all: "${{ jobs.say.outputs }}", version: "${{ inputs.version }}"}
"""


@pytest.mark.full
def test_a_broken_script_fails_its_case_and_the_command_says_so(shell: Shell) -> None:  # DU-1
    shell.write("broken.yaml", BROKEN)
    done = shell.apart("run", "broken.yaml")
    assert done.returncode == 1 and "missing.bam: No such file" in done.stdout
    assert "done\n" not in done.stdout
    shell.write("broken.yaml", BROKEN.replace("cat missing.bam", "echo 1"))
    done = shell("run", "broken.yaml")
    assert done.returncode == 1
    assert f"`no_such_program` is not installed on this pilot (host {socket.gethostname()})" in done.stdout
    shell.write("broken.yaml", "shell: sh {0}\n" + BROKEN)
    assert shell("run", "broken.yaml").returncode == 0, "who says so has it as before"


def test_outputs_and_inputs_are_what_was_written(shell: Shell) -> None:  # DU-1
    shell.write("outputs.yaml", OUTPUTS)
    found = shell.json("run", "outputs.yaml", "--input", "version=1.10")["outputs"]
    assert found["version"] == "1.10"
    assert found["all"] == {
        "version": "1.10",
        "sha": "1234567e8",
        "id": "00123",
        "n": 5,
        "rows": [1, 2],
        "name": "Größe",
    }


@pytest.mark.full
def test_a_file_that_was_left_beside_the_flow_is_named(shell: Shell) -> None:
    shell.write("analyse.sh", "#!/bin/sh\necho analysed\n").chmod(0o755)
    shell.write("count.py", "print(1)\n")
    for command, name in (("./analyse.sh", "analyse.sh"), ("python3 count.py", "count.py")):
        shell.write("beside.yaml", f"jobs: {{a: {command}}}")
        told = shell("run", "beside.yaml").stdout
        assert f"`{name}` was not found in the job's folder" in told and f"add `inputs: [{name}]`" in told
    shell.write("beside.yaml", "jobs: {a: {inputs: [analyse.sh], run: ./analyse.sh count.py && exit 3}}")
    assert "inputs: [" not in shell("run", "beside.yaml").stdout, "nothing was looked for in vain"


@pytest.mark.full
def test_another_shell_is_another_job_for_the_cache(shell: Shell) -> None:  # DU-2
    shell.write("cached.yaml", "jobs: {a: {run: echo 1}}")
    assert shell("run", "cached.yaml").returncode == 0
    assert "cached" in shell("run", "cached.yaml", "--cached").stdout
    shell.write("cached.yaml", "jobs: {a: {run: echo 1, shell: sh}}")
    assert shell("run", "cached.yaml", "--cached").returncode == 0
    assert "its shell changed" in shell.ok("why", "last:a")


LISTS = """\
name: lists
jobs:
  make:
    inputs: [work.sh, "samples/*.csv"]
    run: |
      ./work.sh
      for sample in samples/*.csv; do cp "$sample" "results/$(basename "$sample" .csv).txt"; done
    files: {results: results/}
  each:
    for-each: ${{ jobs.make.files.results }}
    inputs: {in.txt: "${{ item }}"}
    run: echo "has=$(cat in.txt)" >> "$MENDFLOW_OUTPUT"
  merge:
    inputs: {parts/: "${{ jobs.make.files.results }}"}
    run: cat parts/*.txt parts/deep/* > "Ärger \u65e5.txt"
    files: "Ärger \u65e5.txt"
outputs:
  results: ${{ jobs.make.files.results }}
  has: ${{ jobs.each.outputs.map(o, o.has) }}
  merged: ${{ jobs.merge.files["Ärger \u65e5.txt"] }}
"""


@pytest.mark.full
def test_scripts_folders_and_names_come_back_as_they_were(shell: Shell) -> None:  # DU-3
    (shell.folder / "samples").mkdir()
    for name in ("b", "Größe", "a"):
        shell.write(f"samples/{name}.csv", f"{name}\n")
    work = shell.write("work.sh", "#!/bin/sh -e\ncd results\nmkdir deep\necho deep > deep/été\nchmod +x deep/été\n")
    work.chmod(0o755)
    shell.write("lists.yaml", LISTS)
    found = shell.json("run", "lists.yaml", "--output-dir", "out")
    assert found["outputs"]["has"] == ["Größe", "a", "b", "deep"]
    out = shell.folder / "out"
    made = [path for path in out.rglob("*") if path.is_file() and path.name != RECORD]
    assert sorted(str(path.relative_to(out)) for path in made) == sorted(
        ["Größe.txt", "a.txt", "b.txt", "deep/été", "Ärger \u65e5.txt"]
    )
    assert (out / "Ärger \u65e5.txt").read_text() == "Größe\na\nb\ndeep\n"
    assert (out / "deep/été").stat().st_mode & 0o100 and not (out / "a.txt").stat().st_mode & 0o100


ODD = """\
name: odd
jobs:
  none:
    inputs: {parts/: "${{ [] }}"}
    run: ls parts | wc -l
  twice:
    run: printf 'n=1\\nn=2\\nm=3\\nm=3\\n' >> "$MENDFLOW_OUTPUT"
  bytes:
    retries: 0
    run: printf 'a=1\\nn=\\351\\n' >> "$MENDFLOW_OUTPUT"
  absent:
    retries: 0
    shell: sh
    run: no_such_program
outputs: {n: "${{ jobs.twice.outputs.n }}"}
"""


@pytest.mark.full
def test_odd_outputs_and_missing_commands_are_told_in_a_sentence(shell: Shell) -> None:  # DU-1, DU-4
    shell.write("odd.yaml", ODD)
    assert shell("run", "odd.yaml", "--quiet").returncode == 1
    assert "0" in shell.ok("logs", "last:none"), "a folder of inputs is there, also with no file in it"
    twice = shell.ok("logs", "last:twice")
    assert "$MENDFLOW_OUTPUT has several values for `n`; the last one counts" in twice and "`m`" not in twice
    assert "line 2: it is not UTF-8 text (byte 0xe9)" in shell.ok("why", "last:bytes")
    assert "command not found: no_such_program (exit code 127" in shell.ok("why", "last:absent")
