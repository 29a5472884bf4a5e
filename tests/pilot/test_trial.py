"""Before a pilot registers it tries whether jobs can be started."""

import os
from pathlib import Path

import pytest

from mendflow.pilot.isolation.options import Isolation
from mendflow.pilot.isolation.trial import why_not_confined


def test_an_error_of_the_trial_is_not_hidden_by_what_it_did_not_come_to_make(tmp_path: Path) -> None:  # SE-1
    (tmp_path / f".trial.{os.getpid()}").write_text("in the way")
    with pytest.raises(FileExistsError):
        why_not_confined(Isolation(), str(tmp_path), str(tmp_path), {})
