"""The folder of a site: how its pilots ended stands there, and nothing stays behind a site that is no more."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from mendflow.batch.site_folders import KEPT_S, SiteFolders
from mendflow.core.model.sites import PilotSettings, PilotSubmission, Site
from mendflow.formats.sites import read_site
from mendflow.pilot.bounds import KeepLimits
from mendflow.pilot.options import parse

NAME = "mendflow-t0-abc-1"


def site(before: str = "") -> Site:
    return Site(name="t0", pilots=PilotSettings(python="/bin/true", before=before))


def played(grounds: SiteFolders, given: Site, name: str = NAME) -> Path:
    """Run the script of a pilot to its end, as a batch system would."""
    launch = grounds.prepare(given, PilotSubmission(name=name, purpose="jobs", planned_at=1, since=1, by="one"))
    subprocess.run(["/bin/sh", launch.script], check=False)
    return launch.folder


@pytest.mark.parametrize(
    ("before", "told"),
    [
        ("", ""),
        ("echo no module; exit 3", "the pilot ended with exit code 3; no module"),
        ("sh -c 'kill -9 $$'; exit $?", "the pilot was killed by signal 9; Killed"),
    ],
)
def test_how_a_pilot_ended_early_is_told_with_its_last_words(tmp_path: Path, before: str, told: str) -> None:  # PJ-8
    grounds = SiteFolders(tmp_path)
    played(grounds, site(before))
    assert grounds.end_of_log(site(), NAME) == told


def test_the_bounds_of_logs_and_kept_folders_reach_the_pilots_of_a_site(tmp_path: Path) -> None:  # DU-4
    pilots = (
        "pilots: {python: /bin/echo, log_size: 1 GB, keep_failed: 2 days, keep_failed_size: 5 GB, keep_failed_max: 0}"
    )
    given = read_site(f"name: t0\n{pilots}\n")
    submission = PilotSubmission(name=NAME, purpose="jobs", planned_at=1, since=1, by="one")
    launch = SiteFolders(tmp_path).prepare(given, submission)
    subprocess.run(["/bin/sh", launch.script], check=True)
    printed = launch.log.read_text().split()
    options = parse(["--server", "http://x", "--work", str(tmp_path), *printed[printed.index("--log-size") :]])
    assert options.log_bytes_max == 10**9
    assert options.keep_failed == KeepLimits(age_ms=2 * 86_400_000, bytes=5 * 10**9, number=0)


def test_the_secret_of_a_pilot_is_read_from_a_file_that_only_its_owner_reads(tmp_path: Path) -> None:  # SE-2
    given = Site(name="t0", pilots=PilotSettings(python="/bin/echo"))
    submission = PilotSubmission(name=NAME, purpose="jobs", planned_at=1, since=1, by="one")
    launch = SiteFolders(tmp_path).prepare(given, submission, "proof of it")
    subprocess.run(["/bin/sh", launch.script], check=True)
    assert launch.secret.stat().st_mode & 0o777 == 0o600
    assert "proof of it" not in launch.script.read_text()
    printed = launch.log.read_text().split()
    options = parse(["--server", "http://x", "--work", str(tmp_path), *printed[printed.index("--name") :]])
    assert (options.name, options.name_secret) == (NAME, "proof of it")
    assert str(launch.secret) in options.isolation.hidden


def test_kept_folders_of_a_site_stay_as_long_as_the_site_says(tmp_path: Path) -> None:  # DU-4
    grounds = SiteFolders(tmp_path)
    usual, longer = site(), Site(name="t0", pilots=PilotSettings(python="/bin/true", keep_failed_ms=3 * 86_400_000))
    folder = played(grounds, usual)
    (folder / "work" / "attempts").mkdir(parents=True)
    (folder / "work" / "attempts" / "x.1.kept").touch()
    os.utime(folder, (time.time() - 2 * KEPT_S, time.time() - 2 * KEPT_S))
    grounds.tidy(longer, keep=(), left={NAME})
    assert folder.exists()
    grounds.tidy(usual, keep=(), left={NAME})
    assert not folder.exists()


def test_a_pilot_that_cannot_be_started_is_told_by_its_exit_code(tmp_path: Path) -> None:
    grounds, given = SiteFolders(tmp_path), Site(name="t0", pilots=PilotSettings(python="/no/python"))
    played(grounds, given)
    assert grounds.end_of_log(given, NAME).startswith("the pilot ended with exit code 127; ")


def test_the_folder_of_a_removed_site_goes_and_those_of_others_stay(tmp_path: Path) -> None:
    grounds = SiteFolders(tmp_path)
    played(grounds, site("exit 3"))
    grounds.sweep({"t0", "t1"})
    assert (tmp_path / "sites" / "t0" / NAME).exists()
    grounds.sweep({"t1"})
    assert not (tmp_path / "sites" / "t0").exists()


def test_nothing_is_taken_from_a_pilot_that_may_still_run(tmp_path: Path) -> None:
    """Its script has written nothing about its end: the batch system of a site that was removed by force may not have
    been there to end it."""
    grounds = SiteFolders(tmp_path)
    over, runs = played(grounds, site()), played(grounds, site(), "mendflow-t0-abc-2")
    (runs / "ended").unlink()
    grounds.sweep(())
    assert runs.exists() and not over.exists()
    long_ago = time.time() - KEPT_S - 60
    os.utime(runs / "pilot.log", (long_ago, long_ago))
    grounds.sweep(())
    assert not (tmp_path / "sites" / "t0").exists()


def test_there_may_be_no_folder_of_any_site(tmp_path: Path) -> None:
    SiteFolders(tmp_path).sweep(())
