"""Which variables of a pilot's environment its jobs get."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mendflow.core.model.errors import InvalidRequest
from mendflow.pilot.isolation.accounts import NoAccount, account_named, account_of_job
from mendflow.pilot.isolation.options import Isolation, isolation_of, why_impossible
from mendflow.pilot.isolation.variables import EVERYTHING, passed_variables

USUAL = {"PATH": "/bin", "HOME": "/h", "LC_ALL": "C", "SLURM_JOB_ID": "7", "CUDA_VISIBLE_DEVICES": "0", "TZ": "UTC"}
SECRET = {
    "MENDFLOW_TOKEN": "t",
    "MENDFLOW_STORE": "postgresql://u:p@h/d",
    "MENDFLOW_SECRETS_KEY": "/k",
    "PGPASSWORD": "p",
    "AWS_SECRET_ACCESS_KEY": "a",
}


def test_a_pilot_that_works_for_others_passes_on_what_is_listed() -> None:  # SE-2
    assert passed_variables([], {}).select({**USUAL, **SECRET, "DATA_ROOT": "/d"}) == USUAL


def test_more_is_passed_on_by_name_by_pattern_and_by_a_variable() -> None:  # SE-2
    has = {**SECRET, "DATA_ROOT": "/d", "DATA_SET": "s", "THIRD": "3", "OTHER": "o"}
    passed = passed_variables(["DATA_*", "PGPASSWORD"], {"MENDFLOW_PASS_ENV": "THIRD, OTHER"})
    assert passed.select(has) == {
        "DATA_ROOT": "/d",
        "DATA_SET": "s",
        "THIRD": "3",
        "OTHER": "o",
        "PGPASSWORD": "p",
    }


def test_whoever_runs_jobs_for_himself_passes_on_everything_but_the_secrets_of_mendflow() -> None:  # SE-2
    passed = passed_variables([EVERYTHING, "MENDFLOW_TOKEN"], {}).select({**USUAL, **SECRET, "OTHER": "o"})
    assert passed == {**USUAL, "OTHER": "o", "PGPASSWORD": "p", "AWS_SECRET_ACCESS_KEY": "a"}


@pytest.mark.full
def test_a_job_of_ones_own_run_has_ones_exported_variables(tmp_path: Path) -> None:  # SE-2
    (tmp_path / "f.yaml").write_text(
        'name: f\njobs:\n  a:\n    run: |\n      echo "seen=$MINE ${MENDFLOW_TOKEN-none} ${MENDFLOW_STORE-none}"'
        " >> $MENDFLOW_OUTPUT\n"
        "outputs: {seen: '${{ jobs.a.outputs.seen }}'}\n"
    )
    env = {**os.environ, "MINE": "exported", "MENDFLOW_TOKEN": "s3cret"}
    words = [sys.executable, "-m", "mendflow", "run", "f.yaml", "--json"]
    ran = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert "exported none none" in ran.stdout, ran.stdout + ran.stderr


def test_what_cannot_be_meant_is_refused() -> None:  # SE-2
    for words in (
        {"sandbox": "jail"},
        {"sandbox": "bubblewrap", "network": "some"},
        {"network": "none"},
        {"jobs_as": "owner"},
        {"jobs_as": "nobody", "accounts": ["ada"]},
    ):
        with pytest.raises(InvalidRequest):
            isolation_of(**words)


def test_no_job_is_root_and_no_owner_gets_an_account_that_is_not_listed() -> None:  # SE-2
    with pytest.raises(NoAccount, match="jobs may not be root"):
        account_named("root")
    with pytest.raises(NoAccount, match="no account 'no-such-account'"):
        account_named("no-such-account")
    with pytest.raises(NoAccount, match="the job belongs to 'ada'"):
        account_of_job("owner", ("nobody",), "ada")
    found = account_of_job("owner", ("nobody",), "nobody")
    assert found is not None and found.name == "nobody"
    assert "may not be root" in why_impossible(Isolation(jobs_as="root")) or os.geteuid() != 0
