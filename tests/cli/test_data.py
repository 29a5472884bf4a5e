"""Logical files on the command line: told, found, read by a flow, published by it."""

import hashlib

import pytest

from tests.cli.conftest import Shell

SUM = """\
name: sum
inputs: {data: {type: file, default: null}}
jobs:
  add:
    run: awk '{n += $1} END {print n}' in.dat > out.dat
    inputs: {in.dat: "lfn:/store/raw/a.dat"}
    files: {sum: out.dat}
    publish: {sum: {as: /store/sum/a.dat, set: sums}}
  show:
    run: cat sum.dat
    link-inputs: true
    inputs: {sum.dat: "${{ jobs.add.files.sum }}"}
"""
COUNT = """\
name: count
inputs: {data: {type: file}}
jobs:
  count: {run: wc -l < in.dat, inputs: {in.dat: "${{ inputs.data }}"}}
"""
CMS = """\
<storage-mapping>
  <lfn-to-pfn protocol="direct" path-match="/+store/(.*)" result="/pnfs/$1"/>
  <lfn-to-pfn protocol="xrootd" chain="direct" path-match="(.*)" result="root://host/$1"/>
</storage-mapping>
"""


def told(shell: Shell) -> None:
    """A storage element in the folder, with one file that the catalogue knows."""
    lies = shell.folder / "se" / "store" / "raw"
    lies.mkdir(parents=True)
    (lies / "a.dat").write_text("1\n2\n3\n")
    shell.ok("data", "storage", "add", "--name", "near", "--url", str(shell.folder / "se"))
    shell.ok(
        "data", "files", "add", "/store/raw/a.dat", "--on", "near", "--file", str(lies / "a.dat"), "--meta", "run=7"
    )


@pytest.mark.full
def test_a_flow_reads_a_logical_file_and_publishes_another(shell: Shell) -> None:  # FM-6, PJ-7
    told(shell)
    shell.write("sum.yaml", SUM)
    assert shell("run", "sum.yaml", "--quiet").returncode == 0
    assert shell.ok("logs", "last:show") == "6\n"
    assert (shell.folder / "se" / "store" / "sum" / "a.dat").read_text() == "6\n"
    [made] = shell.json("data", "files", "list", "--set", "sums")
    assert made["sha256"] == hashlib.sha256(b"6\n").hexdigest()
    assert "made by job sum-" in shell.ok("data", "files", "show", "/store/sum/a.dat")
    assert f"file://{shell.folder}/se/store/sum/a.dat" in shell.ok("data", "files", "where", "lfn:/store/sum/a.dat")


@pytest.mark.full
def test_a_logical_file_can_be_the_input_of_a_flow(shell: Shell) -> None:  # FM-6
    told(shell)
    shell.write("count.yaml", COUNT)
    assert shell("run", "count.yaml", "--quiet", "--input", "data=lfn:/store/raw/a.dat").returncode == 0
    assert shell.ok("logs", "last:count").strip() == "3"
    missing = shell("run", "count.yaml", "--quiet", "--input", "data=lfn:/store/none")
    assert missing.returncode == 5 and "the catalogue has no file /store/none" in missing.stderr


def test_rules_of_cms_are_taken_tried_and_given_back(shell: Shell) -> None:  # PJ-7
    shell.write("storage.xml", CMS)
    shell.write("se.yaml", "name: eos\nurl: root://host//pnfs\nprotocol: xrootd\nrules: storage.xml\nsites: [T2_A]\n")
    shell.ok("data", "storage", "add", "se.yaml")
    assert shell.ok("data", "storage", "place", "eos", "/store/a.root") == "root://host//pnfs/a.root\n"
    assert 'path-match="/+store/(.*)" result="/pnfs/$1"' in shell.ok("data", "storage", "rules", "eos", "--cms")
    assert "to-physical:" in shell.ok("data", "storage", "rules", "eos")
    other = shell("data", "storage", "add", "se.yaml", "--read-only")
    assert other.returncode == 6 and "--replace changes them" in other.stderr
    assert "read" in shell.ok("data", "storage", "add", "se.yaml", "--read-only", "--replace") + shell.ok(
        "data", "storage", "list"
    )
    shell.ok("data", "storage", "remove", "eos")
    assert "no storage elements" in shell.ok("data", "storage")


def test_what_is_wrong_is_said_before_anything_is_done(shell: Shell) -> None:
    told(shell)
    for words, code, said in (
        (("data", "files", "add", "/store/../x", "--on", "near", "--digest", "a" * 64), 2, "`..` as a part"),
        (("data", "files", "add", "/store/x", "--on", "near"), 2, "give --file"),
        (("data", "files", "add", "/store/x", "--on", "far", "--digest", "a" * 64), 5, "no storage element"),
        (("data", "files", "add", "/store/raw/a.dat", "--on", "near", "--digest", "a" * 64), 6, "another content"),
        (("data", "files", "remove-replica", "/store/raw/a.dat", "--on", "near"), 6, "remove the file instead"),
        (("data", "storage", "add", "--name", "x"), 2, "--name and --url"),
        (("data", "storage", "add", "--name", "x", "--url", "data"), 2, "needs a protocol"),
        (("data", "storage", "place", "near", "/a/%2e%2e/b"), 2, "%2e"),
    ):
        done = shell(*words)
        assert (done.returncode, said in done.stderr) == (code, True), (words, done.returncode, done.stderr)
