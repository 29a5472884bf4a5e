"""Whatever is killed with -9, no container is left over, and every job is done."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import World, descendants
from tests.servers.podman import IMAGE, Podman

FLOW = f"""
container: {{image: {IMAGE}, mounts: "FOLDER:/out"}}
jobs:
  a:
    for-each: {{from: 1, to: 4}}
    run: |
      echo "start ${{{{ item }}}}" >> /out/lines
      sleep SECONDS
      echo "end ${{{{ item }}}}" >> /out/lines
"""


def begin(world: World, seconds: int) -> str:
    """A server, a pilot, and a case whose jobs have begun."""
    text = FLOW.replace("FOLDER", str(world.folder)).replace("SECONDS", str(seconds))
    (world.folder / "flow.yaml").write_text(text)
    world.start_server()
    world.wait_for_server()
    world.start_pilot("one")
    command = [sys.executable, "-m", "mendflow", "start", "flow.yaml", "--server", world.url, "--json"]
    case = str(json.loads(subprocess.run(command, cwd=world.folder, capture_output=True, check=True).stdout)["id"])
    world.until(lambda: lines(world).count("start") >= 2, "two jobs to begin")
    return case


def lines(world: World) -> str:
    path = world.folder / "lines"
    return path.read_text() if path.exists() else ""


def is_over(world: World, case: str) -> bool:
    return world.client.case(case).status == "completed"


def with_program(pids: list[int], part: str) -> list[int]:
    """Those of the processes whose command line has this part."""
    return [pid for pid in pids if part in _command_line(pid)]


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def test_a_pilot_that_is_killed_with_all_below_it_leaves_containers_that_the_next_one_removes(  # DU-5
    podman: Podman, world: World
) -> None:
    case = begin(world, 3)
    world.kill_pilot("one", whole=True)
    world.start_pilot("other")
    world.until(lambda: is_over(world, case), "the case to complete")
    world.until(lambda: not podman.containers(), "no container to be left")


@pytest.mark.parametrize("with_agent", [False, True])
def test_a_slot_that_is_killed_takes_its_container_with_it(  # DU-5
    podman: Podman, world: World, with_agent: bool
) -> None:
    """Killed alone, the agent removes the container; killed with its agent, the guard does."""
    case = begin(world, 40)
    below = descendants(world.pilots["one"].pid)
    slots = with_program(below, "mendflow.pilot.slot.process")
    shells, old = with_program(below, "sleep 40"), {*podman.containers()}
    assert len(slots) >= 2 and shells and len(old) == 2
    if with_agent:
        world.kill_pilot("one")
    for pid in slots:
        os.kill(pid, signal.SIGKILL)
    world.until(lambda: not any("sleep 40" in _command_line(pid) for pid in shells), "the jobs to be dead")
    if with_agent:
        world.until(lambda: not podman.containers(), "no container to be left")
    else:
        world.until(lambda: old.isdisjoint(podman.containers()), "the old containers to be gone")
    world.client.cancel(case)
    world.until(lambda: not podman.containers(), "no container to be left")


def test_a_server_that_is_killed_while_containers_run_loses_no_result_and_leaves_none(  # DU-5
    podman: Podman, world: World
) -> None:
    world.lease_s = 60.0  # a server that is slow to come back is to cost no lease
    case = begin(world, 3)
    world.kill_server()
    time.sleep(1)
    world.start_server()
    world.wait_for_server()
    world.until(lambda: is_over(world, case), "the case to complete")
    world.until(lambda: not podman.containers(), "no container to be left")
    assert lines(world).count("start") == lines(world).count("end") == 4, "nothing ran twice"
