"""The check itself can fail, and says what did."""

import os
import sys
from pathlib import Path

import pytest

import check
from tests.servers import slurm


def stage(name: str, code: str, *, nothing_to_do: tuple[int, ...] = ()) -> check.Stage:
    return check.Stage(name, "tests", [sys.executable, "-c", code], nothing_to_do=nothing_to_do)


def test_one_failed_stage_fails_the_check_and_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    environ = dict(os.environ)
    results = [
        check.run(stage("good", "print('unseen')"), environ),
        check.run(stage("bad", "print('what was wrong'); raise SystemExit(3)"), environ),
    ]
    assert check.summary(results, 1.0) == 1
    printed = capsys.readouterr().out
    assert "unseen" not in printed
    assert "what was wrong" in printed
    assert "1 of 2 stages passed" in printed
    assert "FAIL  bad" in printed


def test_a_stage_with_nothing_to_do_is_no_failure() -> None:
    result = check.run(stage("none", "raise SystemExit(5)", nothing_to_do=(5,)), dict(os.environ))
    assert result.ok
    assert check.summary([result], 1.0) == 0


def test_what_a_machine_cannot_do_is_said_to_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert check.possible("slurm", "")
    assert not check.possible("slurm", "slurmctld (apt-get install slurm-wlm munge)")
    assert capsys.readouterr().out == (
        "left out  slurm: this machine lacks slurmctld (apt-get install slurm-wlm munge)\n"
    )


def test_tests_that_need_a_batch_system_run_in_their_own_stage_and_in_no_other() -> None:
    stages = check.stages(Path("programs"), check._options([]))
    chosen = [listed.command[listed.command.index("-m", 3) + 1] for listed in stages if "pytest" in listed.command]
    assert all("not slurm" in each for each in chosen if "alone" in each)
    assert chosen.count("slurm") == (0 if slurm.lacking() else 1)
