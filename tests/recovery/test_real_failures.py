"""Failure scenarios again, with real processes: what a pilot reports of them, and what the default rules make of it.

Each job leaves a line for each time that it was begun, so that what is counted is what really ran."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from mendflow.formats.yaml import read_flow
from tests.recovery.conftest import Site

FLOW = """
name: {name}
inputs: {{folder: {{type: string}}}}
steps:
  - name: work
{keys}
    run: |
      echo begun >> ${{{{ inputs.folder }}}}/begun
      n=$(wc -l < ${{{{ inputs.folder }}}}/begun)
      {command}
"""

HUNGRY = "python3 -c 'a = bytearray(80_000_000); a[::4096] = bytes(len(a[::4096])); import time; time.sleep(0.7)'"


class Real(NamedTuple):
    """What is wrong with a job, how it should end, how often it is begun for that, and by which repairs."""

    name: str
    command: str
    ends: str
    begun: int
    exlets: list[str]
    keys: str = ""


REAL = [
    Real("well", "true", "completed", 1, []),
    Real("exit-code-1", "exit 1", "failed", 1, []),
    Real("exit-code-1-with-retries", "test $n -ge 3", "completed", 3, [], "    retries: 2"),
    Real("command-not-found", "no-such-command", "failed", 1, []),
    Real("segmentation-fault", "kill -SEGV $$", "failed", 1, []),
    Real("ended-from-outside", "test $n -ge 2 || kill -TERM $$", "completed", 2, ["later"]),
    Real("asks-to-be-tried-later", "test $n -ge 3 || exit 75", "completed", 3, ["later", "later"]),
    Real("asks-for-ever", "exit 75", "failed", 4, ["later", "later", "later", "give-up"]),
    Real("too-little-memory", HUNGRY, "completed", 2, ["more-memory"], "    memory: 60 MB"),
    Real(
        "too-little-memory-with-retries", HUNGRY, "completed", 2, ["more-memory"], "    memory: 60 MB\n    retries: 3"
    ),
    Real("too-little-time", "sleep 0.9", "completed", 2, ["more-time"], "    time: 600 ms"),
    Real("hangs-for-ever", "sleep 60", "failed", 4, ["more-time"] * 3 + ["give-up"], "    time: 200 ms"),
    Real("killed-with-its-slot", "test $n -ge 2 || { kill -9 $PPID; sleep 60; }", "completed", 2, []),
    Real("promised-file-missing", "true", "failed", 1, [], "    files: {table: table.csv}"),
]


@pytest.mark.parametrize("real", REAL, ids=lambda real: real.name)
def test_real_failures_end_as_the_house_rules_say(site: Site, tmp_path: Path, real: Real) -> None:
    # FM-12 FM-13 AD-3
    text = FLOW.format(name=real.name, keys=real.keys, command=real.command)
    site.client.deploy(read_flow(text, tmp_path / "flow.yaml"))
    case = site.client.start(real.name, {"folder": str(tmp_path)}).id
    assert site.ended(case) == real.ends
    assert (tmp_path / "begun").read_text().count("begun") == real.begun
    assert site.did(case) == real.exlets


def test_an_input_that_comes_late_is_waited_for(site: Site, tmp_path: Path) -> None:
    # FM-8a AD-4
    keys = "    replicas: {plate.txt: '${{ inputs.folder }}/plate.txt'}"
    site.client.deploy(read_flow(FLOW.format(name="late", keys=keys, command="cat plate.txt"), tmp_path / "flow.yaml"))
    case = site.client.start("late", {"folder": str(tmp_path)}).id
    site.until(lambda: "later" in site.did(case), "a wait")
    (tmp_path / "plate.txt").write_text("stars")
    assert site.ended(case) == "completed"
    assert site.did(case)[0] == "again"
    assert (tmp_path / "begun").read_text().count("begun") == 1


@pytest.fixture
def two_nodes(tmp_path: Path) -> Iterator[Site]:
    """One of its nodes is broken: whatever runs there fails at once."""
    site = Site(tmp_path, slots=0)
    site.pilot("good-node", slots=1)
    site.pilot("bad-node", slots=2)
    yield site
    site.stop()


@pytest.mark.full
def test_a_node_that_fails_several_different_jobs_is_avoided(two_nodes: Site, tmp_path: Path) -> None:
    # FM-12 FM-13: the fault is the node's, and the job is moved
    site, command = two_nodes, "case $PWD in *bad-node*) exit 127;; esac"
    site.client.deploy(read_flow(FLOW.format(name="any", keys="", command=command), tmp_path / "flow.yaml"))
    held = FLOW.format(
        name="held", keys="    site: good-node", command=f"until test -e {tmp_path}/go; do sleep 0.1; done"
    )
    site.client.deploy(read_flow(held, tmp_path / "flow.yaml"))
    occupying = site.client.start("held", {"folder": str(tmp_path)}).id
    site.until(lambda: (tmp_path / "begun").exists(), "the good node to have something to do")
    for _ in range(3):
        assert site.ended(site.client.start("any", {"folder": str(tmp_path)}).id) == "failed"
    moved = site.client.start("any", {"folder": str(tmp_path)}).id
    site.until(lambda: site.did(moved), "the repair")
    (tmp_path / "go").touch()
    assert (site.ended(occupying), site.ended(moved)) == ("completed", "completed")
    assert site.did(moved) == ["elsewhere"]
    [item], hosts = site.client.items(moved), {each.id: each.host for each in site.client.pilots()}
    assert [hosts[attempt.pilot] for attempt in item.attempts] == ["bad-node", "good-node"]
