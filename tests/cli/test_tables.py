"""A flow over the rows of a table, as a person runs it."""

import pytest

from tests.cli.conftest import Shell

FLOW = """\
name: study
inputs:
  lanes: {type: table, default: sheets/lanes.csv, columns: {reads: file}}
jobs:
  clean:
    for-each:
      lane: "${{ inputs.lanes }}"
      collect: {sample: "${{ lane.sample }}", clean: "${{ jobs.clean.files.clean }}"}
    inputs: ["${{ lane.reads }}"]
    run: echo "${{ lane.version }} $(cat ${{ lane.reads.name }})" > clean.txt
    files: {clean: clean.txt}
  merge:
    for-each: {group: "${{ jobs.clean.outputs.group_by('sample') }}"}
    inputs: {parts/: "${{ group.items.map(each, each.clean) }}"}
    run: echo "text=${{ group.key }} $(echo $(cat parts/*))" >> "$MENDFLOW_OUTPUT"
outputs: {merged: "${{ jobs.merge.outputs.map(m, m.text) }}"}
"""
LANES = "sample,reads,version\na,r1.txt,1.10\nb,r2.txt,007\na,../r3.txt,1e3\n"


@pytest.mark.full
def test_many_files_are_merged_by_sample(shell: Shell) -> None:  # DU-1, FM-6
    (shell.folder / "sheets").mkdir()
    shell.write("study.yaml", FLOW)
    shell.write("sheets/lanes.csv", LANES)
    for name in ("sheets/r1.txt", "sheets/r2.txt", "r3.txt"):
        shell.write(name, name.removeprefix("sheets/")[:2])
    assert shell.json("run", "study.yaml")["outputs"]["merged"] == ["a 1.10 r1 1e3 r3", "b 007 r2"]
    shell.write("sheets/more.csv", "sample,reads,version\nc,r2.txt,on\n")
    found = shell.json("run", "study.yaml", "--input", "lanes=@sheets/more.csv")
    assert found["outputs"]["merged"] == ["c on r2"]
    assert "c" in shell.ok("items", found["id"])
    shell.write("sheets/more.csv", "sample,reads,version\nc,r9.txt,on\n")
    refused = shell("run", "study.yaml", "--input", "lanes=@sheets/more.csv")
    assert refused.returncode != 0 and "more.csv:2: column reads: there is no file `r9.txt`" in refused.stderr


def test_a_flow_over_a_table_of_files_is_predicted(shell: Shell) -> None:
    shell.write("s.csv", "name,reads\na,a.fq\nb,b.fq\n")
    for name in ("a.fq", "b.fq"):
        shell.write(name, name)
    shell.write(
        "f.yaml",
        "inputs: {rows: {type: table, default: s.csv, columns: {reads: file}}}\n"
        'jobs: {x: {for-each: {r: "${{ inputs.rows }}"}, inputs: {in.fq: "${{ r.reads }}"}, run: wc in.fq}}\n',
    )
    words = ("--pilots", "2", "--runtime", "x=5", "--seeds", "1", "--no-what-if")
    assert "prediction" in shell.json("sim", "f.yaml", *words)
    assert "prediction" in shell.json("sim", "f.yaml", *words, "--input", "rows=@s.csv")
