"""Secrets as files of a job: written for its owner alone, never through a link, and removed when it is over."""

from pathlib import Path

import pytest

from mendflow.pilot.files.secret_files import remove_secret_files, write_secret_files
from mendflow.pilot.files.staging_faults import StagingFailed


def test_files_of_secrets_are_written_for_their_owner_alone_and_removed(tmp_path: Path) -> None:  # DU-6
    for value in ("first", "second"):
        write_secret_files(str(tmp_path / "job"), {"conf/deep/token.txt": value, "key": value})
        assert (tmp_path / "job/conf/deep/token.txt").read_text() == value
        assert (tmp_path / "job/key").stat().st_mode & 0o777 == 0o600
    remove_secret_files(str(tmp_path / "job"), ["conf/deep/token.txt", "key", "never/there"])
    assert not [path for path in (tmp_path / "job").rglob("*") if path.is_file()]


@pytest.mark.parametrize("path", ["data/token.txt", "data/deep/token.txt"])
def test_no_secret_is_written_or_removed_through_a_link(tmp_path: Path, path: str) -> None:  # DU-6
    (tmp_path / "shared/deep").mkdir(parents=True)
    (tmp_path / "shared/token.txt").write_text("of others")
    (tmp_path / "job").mkdir()
    (tmp_path / "job/data").symlink_to(tmp_path / "shared")
    with pytest.raises(StagingFailed) as refused:
        write_secret_files(str(tmp_path / "job"), {path: "tell-nobody-42"})
    assert f"no secret can be written to {path}: an input of the job" in refused.value.fault.message
    remove_secret_files(str(tmp_path / "job"), [path])
    assert (tmp_path / "shared/token.txt").read_text() == "of others"
    assert not (tmp_path / "shared/deep/token.txt").exists()
