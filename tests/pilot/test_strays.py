"""What a dead slot leaves behind is killed. What a pilot runs for itself is not, and tells its exit code to whoever
waits for it."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from mendflow.pilot.agent.slot_link import kill_strays
from mendflow.pilot.slot.processes import children
from tests.patience import PATIENCE_S

PACKAGE = Path(__file__).parents[2] / "src" / "mendflow"
STARTS_SLOTS = {"agent/guard_process.py", "agent/slot_link.py", "launch.py", "slot/spare.py", "standby.py"}


@pytest.fixture
def others() -> set[int]:
    """Children that this process has for other reasons."""
    return {*children(os.getpid())}


def test_its_commands_end_by_themselves_while_strays_are_killed(others: set[int], tmp_path: Path) -> None:  # DU-5
    script = f"touch {tmp_path}/begun; while ! test -e {tmp_path}/go; do sleep 0.01; done; exit 3"
    codes: list[int] = []
    own = threading.Thread(target=lambda: codes.append(subprocess.run(["/bin/sh", "-c", script]).returncode))
    own.start()
    end = time.monotonic() + PATIENCE_S
    while not (tmp_path / "begun").exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    stray = subprocess.Popen(["/bin/sleep", "60"], start_new_session=True)
    kill_strays(others)
    assert stray.pid not in children(os.getpid()), "the stray is gone"
    stray.wait()
    (tmp_path / "go").touch()
    own.join(PATIENCE_S)
    assert codes == [3]


@pytest.mark.parametrize("group", [None, 0])
def test_no_command_is_taken_for_a_stray_while_it_starts(others: set[int], group: int | None) -> None:  # DU-5
    """Many short commands, while strays are killed all the time: none is killed, and each tells its code."""
    codes: list[int] = []

    def run() -> None:
        for _ in range(40):
            codes.append(subprocess.run(["/bin/sh", "-c", "exit 3"], process_group=group).returncode)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        kill_strays(others)
    assert codes == [3] * 120


def test_at_the_end_they_are_killed_and_whoever_waits_sees_it() -> None:
    script = """
import subprocess
from mendflow.pilot.agent.slot_link import kill_own_commands
process = subprocess.Popen(["/bin/sleep", "60"])
kill_own_commands()
print(process.wait())
"""  # in a process of its own, which has no other children
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "-9"


def test_only_slots_and_those_who_watch_them_have_sessions_of_their_own() -> None:  # DU-5
    """A command of the pilot in a session of its own would be taken for what a slot has left."""
    found = {
        path.relative_to(PACKAGE / "pilot").as_posix() if path.is_relative_to(PACKAGE / "pilot") else path.name
        for folder in ("pilot", "transfer")
        for path in (PACKAGE / folder).rglob("*.py")
        if "start_new_session" in path.read_text()
    }
    assert found == STARTS_SLOTS
