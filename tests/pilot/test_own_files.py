"""What a hostile job puts in the place of its outputs after they were looked at."""

import os
import threading
import time
from pathlib import Path

import pytest

from mendflow.pilot.files.own_files import open_own
from tests.patience import PATIENCE_S


def test_only_what_lies_in_the_folder_of_the_attempt_is_opened(tmp_path: Path) -> None:  # DU-5
    attempts = tmp_path / "attempts"
    for name in ("one.1/sub", "one.1.worker", "two.1"):
        (attempts / name).mkdir(parents=True)
    (attempts / "one.1/sub/out").write_text("mine")
    (attempts / "one.1/inner").symlink_to("sub/out")
    (attempts / "one.1.log.gz").write_text("log")
    (attempts / "two.1/private").write_text("of another job")
    (tmp_path / "token").write_text("of the pilot")
    for path in ("one.1/sub/out", "one.1/inner", "one.1.log.gz"):
        open_own(str(attempts / path), str(attempts)).close()
    (attempts / "one.1/a").symlink_to("../two.1/private")
    (attempts / "one.1/b").symlink_to("../../token")
    (attempts / "one.1/c").symlink_to("../../", target_is_directory=True)
    os.mkfifo(attempts / "one.1/pipe")
    for path in ("one.1/a", "one.1/b", "one.1/c/token", "one.1/pipe"):
        with pytest.raises(OSError, match=r"leads out of the job's folder|not a plain file"):
            open_own(str(attempts / path), str(attempts))


def test_a_job_that_swaps_a_folder_for_a_link_all_the_time_gets_nothing(tmp_path: Path) -> None:  # DU-5
    attempts, over = tmp_path / "attempts", threading.Event()
    (attempts / "one.1/real").mkdir(parents=True)
    (attempts / "one.1/real/out").write_text("mine")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/out").write_text("secret of the pilot")
    at = attempts / "one.1/at"

    def swap() -> None:
        while not over.is_set():
            for target in ("real", str(tmp_path / "theirs")):
                os.symlink(target, f"{at}.new")
                os.replace(f"{at}.new", at)

    at.symlink_to("real")
    hostile = threading.Thread(target=swap)
    hostile.start()
    read: set[bytes] = set()
    refused, until = 0, time.monotonic() + PATIENCE_S
    try:
        while (refused < 50 or not read) and time.monotonic() < until:
            time.sleep(0)  # let the other thread have its turn
            try:
                with open_own(str(at / "out"), str(attempts)) as file:
                    read.add(file.read())
            except OSError:
                refused += 1
    finally:
        over.set()
        hostile.join()
    assert read == {b"mine"} and refused >= 50, "both were met"
