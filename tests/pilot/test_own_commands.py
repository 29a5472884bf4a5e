"""What a pilot runs for itself is no stray of a dead slot, and tells its exit code to whoever waits for it."""

import os
import subprocess
import threading
from pathlib import Path

import pytest

from mendflow.pilot.agent.slot_link import kill_strays
from mendflow.pilot.own_commands import OWN_COMMANDS, OwnCommands
from mendflow.pilot.slot.processes import children


def test_commands_of_its_own_end_by_themselves_while_strays_are_killed(tmp_path: Path) -> None:  # DU-5
    others = {*children(os.getpid())}
    codes: list[int] = []
    words = ["/bin/sh", "-c", f"touch {tmp_path}/begun; while ! test -e {tmp_path}/go; do sleep 0.01; done; exit 3"]
    own = threading.Thread(target=lambda: codes.append(OWN_COMMANDS.run(words, timeout_s=60).returncode))
    own.start()
    while not (tmp_path / "begun").exists():
        pass
    stray = subprocess.Popen(["/bin/sleep", "60"])
    kill_strays(others)
    assert stray.pid not in children(os.getpid()), "the stray is gone"
    stray.wait()
    (tmp_path / "go").touch()
    own.join()
    assert codes == [3]


def test_a_command_is_known_before_anybody_can_take_it_for_a_stray() -> None:  # DU-5
    """Many short commands, while strays are killed all the time: none is killed, and each tells its code."""
    others = {*children(os.getpid())}
    codes: list[int] = []

    def run() -> None:
        codes.extend(OWN_COMMANDS.run(["/bin/sh", "-c", "exit 3"], timeout_s=60).returncode for _ in range(40))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        kill_strays(others)
    assert codes == [3] * 120


def test_one_that_takes_too_long_is_killed() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        OwnCommands().run(["/bin/sleep", "60"], timeout_s=0.05)


def test_at_the_end_they_are_killed_and_whoever_waits_sees_it() -> None:
    own = OwnCommands()
    with own.started(["/bin/sleep", "60"]) as process:
        assert process.pid not in own.other_children(os.getpid())
        own.kill()
        assert process.wait() == -9
    assert process.pid not in own.other_children(os.getpid())
