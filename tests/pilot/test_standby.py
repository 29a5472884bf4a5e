"""A pilot process that is started before its options are known."""

import subprocess
import sys
from pathlib import Path

from mendflow.pilot.standby import OPTION, StandbyPilot


def test_one_that_gets_no_options_ends_and_touches_nothing(tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "mendflow.pilot", OPTION],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=tmp_path,
        check=False,
    )
    assert (process.returncode, process.stdout, process.stderr) == (0, b"", b"")
    assert not list(tmp_path.iterdir())


def test_it_takes_its_options_and_writes_to_the_log_that_it_is_given(tmp_path: Path) -> None:
    standby, log = StandbyPilot(), tmp_path / "pilot.log"
    standby.start()
    process = standby.take(["--server", "http://127.0.0.1:1", "--work", str(tmp_path), "--jobs", "no"], {}, log)
    assert process is not None
    assert process.wait() == 2
    assert "invalid int value: 'no'" in log.read_text()


def test_it_is_taken_once(tmp_path: Path) -> None:
    standby = StandbyPilot()
    standby.start()
    first = standby.take(["--nonsense"], {}, tmp_path / "log")
    assert first is not None
    assert standby.take(["--nonsense"], {}, tmp_path / "log") is None
    assert first.wait() == 2


def test_one_that_has_died_is_not_taken(tmp_path: Path) -> None:
    standby = StandbyPilot()
    standby.start()
    assert standby._process is not None
    standby._process.kill()
    standby._process.wait()
    assert standby.take(["--server", "http://127.0.0.1:1"], {}, tmp_path / "log") is None
