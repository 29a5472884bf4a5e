"""Tries once, before the pilot registers, to start something as jobs will be started."""

import logging
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from typing import Final

from mendflow.pilot.isolation.accounts import OWNER, Account
from mendflow.pilot.isolation.confinement import CONFINED_ENDS, JobConfinement
from mendflow.pilot.isolation.installation import unreached_python
from mendflow.pilot.isolation.options import Isolation

log = logging.getLogger("mendflow.pilot")

TRIAL_S: Final = 60
_TRY: Final = 'echo x >file && echo x >"$1"'


def why_not_confined(isolation: Isolation, work: str, attempts: str, environment: dict[str, str]) -> str:
    """Why a job could not run here; empty if one could. `work` is the pilot's folder, `attempts` the one of jobs."""
    for owner in isolation.accounts if isolation.jobs_as == OWNER else ("",):
        folder = os.path.join(attempts, f".trial.{os.getpid()}")
        confinement = JobConfinement(isolation, folder=folder, work=work, owner=owner)
        try:
            if why := _try(confinement, folder, environment):
                return why
        finally:
            for path in (folder, *(folder + end for end in CONFINED_ENDS)):
                shutil.rmtree(path, ignore_errors=True)
            with suppress(FileNotFoundError):  # nothing was tried: the error says why
                os.unlink(f"{folder}.output")
    return ""


def _try(confinement: JobConfinement, folder: str, environment: dict[str, str]) -> str:
    output = f"{folder}.output"
    confinement.prepare(files=[output])
    variables = confinement.variables(environment)
    if told := _run(confinement.words("/bin/sh", ["-eu", "-c", _TRY, "sh", output]), folder, variables):
        whose = f"of {confinement.account.name} " if confinement.account is not None else ""
        return (
            f"a job {whose}could not be started in {folder}: {told}; every folder above must let others pass (chmod"
            " o+x), and bubblewrap needs user namespaces"
        )
    if told := _run(
        confinement.words(sys.executable, ["-P", "-c", "import mendflow.pilot.worker.process"]), folder, variables
    ):
        why = _why_no_python(confinement.account, told)
        log.warning("jobs that are Python functions cannot be started here, others can: %s", why)
    return ""


def _why_no_python(account: Account | None, told: str) -> str:
    if account is None or (unreached := unreached_python()) is None:
        return f"{told}; install Python and mendflow where jobs can see them, such as /opt, or add --sandbox-show PATH"
    return (
        f"Python is in {unreached.place}, and {unreached.closed} does not let the account {account.name} pass: install"
        f" Python and mendflow where every account can read them, such as /opt, or chmod o+x {unreached.closed}"
    )


def _run(words: list[str], folder: str, variables: dict[str, str]) -> str:
    """What a command said that failed; empty if it succeeded."""
    try:
        ran = subprocess.run(
            words,
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TRIAL_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = ran.stderr.decode(errors="replace").strip().splitlines()
    return "" if ran.returncode == 0 else (lines or [f"exit code {ran.returncode}"])[-1]
