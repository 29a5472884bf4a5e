"""The folder of a site: how its pilots ended stands there, and nothing stays behind a site that is no more."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from mendflow.batch.site_folders import KEPT_S, SiteFolders
from mendflow.core.model.sites import PilotSettings, PilotSubmission, Site

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
    assert grounds.last_words(site(), NAME) == told


def test_a_pilot_that_cannot_be_started_is_told_by_its_exit_code(tmp_path: Path) -> None:
    grounds, given = SiteFolders(tmp_path), Site(name="t0", pilots=PilotSettings(python="/no/python"))
    played(grounds, given)
    assert grounds.last_words(given, NAME).startswith("the pilot ended with exit code 127; ")


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
